"""Three controllers in processes of their own: the active one is killed, cut off from power, paused and stopped.

Clients create topics meanwhile: each one that was acknowledged is there in the end, and more can be created.
"""

from __future__ import annotations

from collections.abc import Sequence

from patience import eventually

from heirlog.blocking import Client
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing import Cluster


def create(cluster: Cluster, name: str, replicas: int = 3) -> None:
    """Until it is there: the first request may meet a cluster without an active controller."""

    def created() -> bool:
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=3, replication_factor=replicas)
        with Client(cluster.bootstrap_servers, timeout_s=20.0) as client:
            answer = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
        return answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    eventually(created, f"topic {name} is created")


def topics(cluster: Cluster) -> set[str]:
    with Client(cluster.bootstrap_servers, timeout_s=20.0) as client:
        return {topic.name for topic in client.metadata(None).topics}


def active(cluster: Cluster, other_than: int | None = None) -> int:
    found: list[int] = []

    def elected() -> bool:
        leader = cluster.active_controller()
        found.append(-1 if leader is None else leader)
        return leader not in (None, other_than)

    eventually(elected, "a controller is active")
    return found[-1]


def lost_one_after_the_other(cluster: Cluster, ways: Sequence[str]) -> None:
    """The active controller is lost in each of these ways; the others take changes, and it returns."""
    for number, way in enumerate(ways):
        first = active(cluster)
        getattr(cluster, way)(first)
        assert active(cluster, other_than=first) in cluster.controllers
        create(cluster, f"t{number}")
        cluster.start(first)
    cluster.wait_until_ready()
    assert topics(cluster) == {f"t{number}" for number in range(len(ways))}


def test_the_cluster_changes_on_whichever_controller_is_lost() -> None:
    with Cluster(nodes=3, controllers=3) as cluster:
        assert cluster.controllers == [100, 101, 102]
        lost_one_after_the_other(cluster, ["kill", "stop", "lose_unflushed", "kill"])


def test_brokers_that_are_controllers_too_replace_each_other() -> None:
    with Cluster(nodes=3, combined=True) as cluster:
        assert cluster.controllers == [1, 2, 3]
        lost_one_after_the_other(cluster, ["stop", "kill"])


def test_a_paused_controller_is_replaced_and_leads_no_more_when_it_returns() -> None:
    with Cluster(nodes=3, controllers=3) as cluster:
        first = active(cluster)
        cluster.pause(first)
        create(cluster, "meanwhile")
        second = active(cluster, other_than=first)
        cluster.resume(first)
        create(cluster, "afterwards")
        assert active(cluster) == second
        assert topics(cluster) == {"meanwhile", "afterwards"}


def test_without_a_majority_nothing_changes_and_clients_are_served() -> None:
    with Cluster(nodes=3, controllers=3) as cluster:
        create(cluster, "before")
        last, *lost = cluster.controllers
        for node in lost:
            cluster.kill(node)
        assert topics(cluster) == {"before"}
        eventually(lambda: cluster.active_controller() is None, "the last controller has resigned")
        for node in lost:
            cluster.start(node)
        create(cluster, "after")
        assert topics(cluster) == {"before", "after"}
        assert last in cluster.controllers
