"""Voters of whole nodes are changed through a broker, while topics are created: the active controller too."""

from __future__ import annotations

from typing import Any

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AddRaftVoterRequest,
    CreateTopicsRequest,
    RemoveRaftVoterRequest,
)
from heirlog.protocol.types import Endpoint
from heirlog.raft.control import Voter
from heirlog.sim.cluster import CLIENT_PORT, Machine, SimCluster
from heirlog.sim.world import World

LIMIT_MS = 20_000


class Cluster:
    def __init__(self) -> None:
        self.cluster = SimCluster(World(5), brokers=1, controllers=3)
        self.cluster.format()
        self.cluster.start_all()
        self.wait(lambda: self.leader is not None and self.broker.running is not None)
        self.create_topic("first")

    @property
    def broker(self) -> Machine:
        return self.cluster.broker(1)

    def wait(self, done: Any) -> None:
        assert self.cluster.run_until(done, LIMIT_MS)

    @property
    def leader(self) -> Machine | None:
        found = [one for one in self.cluster.all_machines if one.running and one.running.quorum.is_leader]
        return found[0] if found else None

    def asked(self, request: Any) -> Any:
        """The answer of the broker, which forwards the request."""
        answers: list[Any] = []
        env = self.cluster.machines.boot("client")
        env.send(Endpoint(self.broker.name, CLIENT_PORT), "admin", request, answers.append, 10_000)
        self.wait(lambda: bool(answers))
        self.cluster.machines.kill("client")
        return answers[0]

    def create_topic(self, name: str) -> None:
        """Repeated until a controller leads and the broker can forward to it."""
        nested = CreateTopicsRequest
        topic = nested.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        request = nested(topics=[topic], timeout_ms=5_000)
        created = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        for _ in range(20):
            answer = self.asked(request)
            if getattr(answer, "topics", None) and answer.topics[0].error_code in created:
                return
            self.cluster.run_for(500)
        raise AssertionError(answer)


def removing(voter: Voter) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(voter_id=voter.id, voter_directory_id=voter.directory_id)


def adding(voter: Voter) -> AddRaftVoterRequest:
    listener = AddRaftVoterRequest.Listener(name=voter.listener, host=voter.endpoint.host, port=voter.endpoint.port)
    return AddRaftVoterRequest(
        voter_id=voter.id, voter_directory_id=voter.directory_id, listeners=[listener], timeout_ms=5_000
    )


def test_the_active_controller_is_removed_and_added_again_while_topics_are_created() -> None:
    cluster = Cluster()
    first = cluster.leader
    assert first is not None and first.running is not None
    voter = next(voter for voter in first.running.quorum.voters if voter.id == first.node_id)
    removed = cluster.asked(removing(voter))
    assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
    cluster.wait(lambda: cluster.leader not in (None, first))
    cluster.create_topic("second")
    assert first.running is not None
    cluster.wait(lambda: "second" in {topic.name for topic in first.running.image.topics.values()})
    cluster.cluster.run_for(1_000)
    added = cluster.asked(adding(voter))
    assert (added.error_code, added.error_message) == (ErrorCode.NONE, None)
    cluster.create_topic("third")
    cluster.cluster.run_for(2_000)
    for machine in cluster.cluster.all_machines:
        assert machine.running is not None, "nothing has stopped"
        assert len(machine.running.quorum.voters) == 3
        assert {topic.name for topic in machine.running.image.topics.values()} >= {"first", "second", "third"}


def test_an_endpoint_of_a_broker_is_refused() -> None:
    cluster = Cluster()
    leader = cluster.leader
    assert leader is not None and leader.running is not None
    broker = cluster.broker
    voter = Voter(
        broker.node_id, leader.running.quorum.voters[0].directory_id, Endpoint(broker.name, CLIENT_PORT), "CONTROLLER"
    )
    refused = cluster.asked(adding(voter))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "is not a controller's" in refused.error_message
