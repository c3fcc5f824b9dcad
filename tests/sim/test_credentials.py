"""Passwords that change while controllers and brokers fail over: a login counts by what was answered.

Once the change of a password is answered, and every broker has had the time that propagation may take, the old password
logs in nowhere and the new one everywhere. The listeners of the simulator have no SASL, so the exchange of each broker
is asked without a connection; requests, forwarding, the quorum and the images are the product's.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.sasl import Scram
from heirlog.env import SendFailure
from heirlog.node.read_your_writes import WAIT_MS
from heirlog.protocol.messages import AlterUserScramCredentialsRequest
from heirlog.protocol.types import Endpoint
from heirlog.security.exchange import Accepted, Refused
from heirlog.security.scram import ITERATIONS_MIN, ScramMechanism, salted_password
from heirlog.sim.cluster import CLIENT_PORT, SimCluster
from heirlog.sim.world import World

SHA_256 = ScramMechanism.SHA_256
CHANGES = 6
LIMIT_MS = 60_000


class Cluster:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.random = Random(seed)
        self.cluster = SimCluster(self.world, brokers=3, controllers=3)
        self.cluster.format()
        self.cluster.start_all()
        self.wait(self.all_serve)
        self.client = self.cluster.machines.boot("client")

    def wait(self, done: Any) -> None:
        assert self.cluster.run_until(done, LIMIT_MS)

    @property
    def names(self) -> list[str]:
        return [*self.cluster.broker_names, *self.cluster.controller_names]

    @property
    def serving(self) -> list[Any]:
        """Brokers that run, serve clients, and are unfenced as far as they know."""
        nodes = [self.cluster.machine(name).running for name in self.cluster.broker_names]
        return [
            node
            for node in nodes
            if node is not None
            and node.serves(node.listener("PLAINTEXT"))
            and not node.image.brokers[node.config.node_id].fenced
        ]

    def all_serve(self) -> bool:
        return len(self.serving) == 3

    def set_password(self, password: str) -> None:
        """Asks brokers, one after the other, until one says that it is done."""
        upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name="alice",
            mechanism=SHA_256.number,
            iterations=ITERATIONS_MIN,
            salt=password.encode(),
            salted_password=salted_password(SHA_256, password, password.encode(), ITERATIONS_MIN),
        )
        while True:
            answers: list[Any] = []
            broker = Endpoint(self.random.choice(self.cluster.broker_names), CLIENT_PORT)
            request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
            self.client.send(broker, "admin", request, answers.append, 5_000)
            self.fail_over()
            self.wait(lambda answers=answers: bool(answers))
            self.mend()
            if not isinstance(answers[0], SendFailure) and not answers[0].results[0].error_code:
                return

    def fail_over(self) -> None:
        """At some moment of the request: the active controller is killed, or any node, or none."""
        self.world.run_for(self.random.randrange(0, 40))
        active = [
            name
            for name in self.cluster.controller_names
            if (node := self.cluster.machine(name).running) is not None and node.quorum.is_leader
        ]
        name = self.random.choice([*active, *self.names, None])
        if name is not None and self.cluster.is_up(name):
            self.cluster.kill(name, lose_unflushed=self.random.random() < 0.5)

    def mend(self) -> None:
        for name in self.names:
            if not self.cluster.is_up(name) and self.random.random() < 0.7:
                self.cluster.start(name)


def logs_in(node: Any, password: str) -> bool:
    client = Scram(SHA_256.mechanism, "alice", password, "nonce")
    exchange = node.exchange(node.listener("PLAINTEXT").security, SHA_256.mechanism, bytes(32))
    token: bytes | None = client.first()
    try:
        while token is not None:
            step = exchange.respond(token)
            if isinstance(step, Accepted):
                return True
            token = client.answer(step.token)
    except (Refused, AuthenticationFailed):
        pass
    return False


@pytest.mark.parametrize("seed", range(5))
def test_after_the_answer_the_new_password_counts_on_every_broker_and_the_old_one_on_none(seed: int) -> None:
    cluster = Cluster(seed)
    checked = 0
    for number in range(CHANGES):
        cluster.set_password(f"password {number}")
        cluster.world.run_for(WAIT_MS)
        for node in cluster.serving:
            assert logs_in(node, f"password {number}"), f"{node.config.node_id} does not know it"
            assert not logs_in(node, f"password {number - 1}"), f"{node.config.node_id} takes the old one"
            checked += 1
        for name in cluster.names:
            if not cluster.cluster.is_up(name):
                cluster.cluster.start(name)
        cluster.wait(cluster.all_serve)
        for node in cluster.serving:
            assert logs_in(node, f"password {number}") and not logs_in(node, f"password {number - 1}")
    assert checked >= CHANGES
