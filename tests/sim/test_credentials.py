"""Passwords that change, and tokens that come and go, while controllers and brokers fail over: a login counts by what
was answered.

Once the change of a password is answered, and every broker has had the time that propagation may take, the old password
logs in nowhere and the new one everywhere. Likewise for a delegation token that was created, and one that was ended.
The listeners of the simulator have no SASL, so the exchange of each broker is asked without a connection; requests,
forwarding, the quorum and the images are the product's.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Collection, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from apis.guarded import ALICE, Wire

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.sasl import Scram
from heirlog.env import SendFailure
from heirlog.node.read_your_writes import WAIT_MS
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
)
from heirlog.protocol.types import Endpoint
from heirlog.security.exchange import Accepted, Refused
from heirlog.security.scram import ITERATIONS_MIN, ScramMechanism, salted_password
from heirlog.sim.cluster import CLIENT_PORT, SimCluster
from heirlog.sim.world import World

SHA_256 = ScramMechanism.SHA_256
CHANGES = 6
TOKENS = 4
NOTHING: Mapping[str, str] = MappingProxyType({})
WITH_TOKENS = {
    "delegation.token.secret.key": "known to all nodes",
    # no listener on the way may be PLAINTEXT
    "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
}
LIMIT_MS = 60_000


class Cluster:
    def __init__(self, seed: int, config: Mapping[str, str] = NOTHING) -> None:
        self.world = World(seed)
        self.random = Random(seed)
        self.cluster = SimCluster(self.world, brokers=3, controllers=3, config=config)
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

    def ask_as_alice(self, request: Any, enough: Collection[int]) -> Any:
        """Asks brokers, one after the other, until an answer has one of these error codes."""
        while True:
            self.wait(lambda: bool(self.serving))
            node = self.random.choice(self.serving)
            wire = Wire("PLAINTEXT", "10.0.0.1")
            connection = node.connected(wire)
            connection.principal = ALICE
            header = RequestHeader(request.API_KEY, request.MAX_VERSION, 1, "alice")
            frame = b"".join(encode_request(header, request))[4:]  # type: ignore[arg-type]
            connection.received_frame(memoryview(bytearray(frame)))
            self.fail_over()
            self.wait(lambda node=node, wire=wire: bool(wire.answers) or not self.runs(node))
            self.mend()
            if wire.answers:
                answer = decode_response(header.api_key, header.api_version, memoryview(wire.answers[0][1])[4:])[1]
                if answer.error_code in enough:
                    return answer

    def runs(self, node: Any) -> bool:
        return any(self.cluster.machine(name).running is node for name in self.cluster.broker_names)

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

    def start_all_again(self) -> None:
        for name in self.names:
            if not self.cluster.is_up(name):
                self.cluster.start(name)
        self.wait(self.all_serve)


def logs_in(node: Any, password: str) -> bool:
    return is_let_in(node, Scram(SHA_256.mechanism, "alice", password, "nonce"))


def bears(node: Any, made: Any) -> bool:
    """Whether the token lets its bearer in."""
    password = b2a_base64(made.hmac, newline=False).decode()
    return is_let_in(node, Scram(SHA_256.mechanism, made.token_id, password, "nonce", delegation_token=True))


def is_let_in(node: Any, client: Scram) -> bool:
    exchange = node.exchange(node.listener("PLAINTEXT").security, SHA_256.mechanism, bytes(32))
    token: bytes | None = client.first()
    try:
        while token is not None:
            step = exchange.respond(token)
            if isinstance(step, Accepted):
                assert f"User:{step.name}" == ALICE
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
        cluster.start_all_again()
        for node in cluster.serving:
            assert logs_in(node, f"password {number}") and not logs_in(node, f"password {number - 1}")
    assert checked >= CHANGES


@pytest.mark.parametrize("seed", range(3))
def test_after_the_answer_a_new_token_counts_on_every_broker_and_one_that_was_ended_on_none(seed: int) -> None:
    cluster = Cluster(seed, WITH_TOKENS)
    checked = 0
    for _ in range(TOKENS):
        made = cluster.ask_as_alice(CreateDelegationTokenRequest(max_lifetime_ms=-1), [ErrorCode.NONE])
        end = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
        cluster.world.run_for(WAIT_MS)
        assert all(bears(node, made) for node in cluster.serving)
        checked += len(cluster.serving)
        cluster.start_all_again()
        assert all(bears(node, made) for node in cluster.serving)
        # the second time, where the first answer was lost
        cluster.ask_as_alice(end, [ErrorCode.NONE, ErrorCode.DELEGATION_TOKEN_NOT_FOUND])
        cluster.world.run_for(WAIT_MS)
        assert not any(bears(node, made) for node in cluster.serving)
        checked += len(cluster.serving)
        cluster.start_all_again()
        assert not any(bears(node, made) for node in cluster.serving)
    assert checked >= 2 * TOKENS
