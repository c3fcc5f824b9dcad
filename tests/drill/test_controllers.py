"""What the drill of the controllers judges; the drill itself runs in `.ci/run`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.json_shapes import mistakes_of

from heirlog.drill.controllers import ControllerFault, Verdict
from heirlog.drill.metadata_clients import AnsweredChanges, PartitionMover, TopicChanger, settings
from heirlog.drill.servers import Servers

NOBODY_LISTENS = Servers("127.0.0.1:1")


@pytest.fixture
def changer() -> TopicChanger:
    changer = TopicChanger(NOBODY_LISTENS, AnsweredChanges())
    changer.expected = {"changed-1": settings(2)}
    changer.deleted = ["changed-0"]
    return changer


@pytest.fixture
def mover() -> Iterator[PartitionMover]:
    mover = PartitionMover(NOBODY_LISTENS, [1, 2, 3], AnsweredChanges())
    mover.replicas = [2, 3]
    yield mover
    mover.finish()


def test_topics_that_are_as_acknowledged_are_no_finding(changer: TopicChanger) -> None:
    assert changer.findings({"changed-1": (4, settings(2))}) == []


def test_each_half_made_change_is_a_finding(changer: TopicChanger) -> None:
    lost = changer.findings({})
    assert lost == ["changed-1: was created, and is not there"]
    assert changer.findings({"changed-1": (2, settings(2))}) == ["changed-1: has 2 partitions, not 4"]
    one_setting = {**settings(1), "retention.ms": settings(2)["retention.ms"]}
    assert changer.findings({"changed-1": (4, one_setting)}) == ["changed-1: max.message.bytes is 1000001, not 1000002"]
    back = {"changed-1": (4, settings(2)), "changed-0": (4, settings(0)), "changed-9": (2, settings(9))}
    assert changer.findings(back) == [
        "changed-0: was deleted, and is there",
        "changed-9: was never created, and is there",
    ]


def test_a_partition_on_other_brokers_than_acknowledged_is_a_finding(mover: PartitionMover) -> None:
    there = {index: [3, 2] for index in range(4)}
    assert mover.findings(there) == []
    assert mover.findings({**there, 2: [1, 2]}) == ["moved-2: is on brokers [1, 2], not [2, 3]"]


def test_a_gap_lasts_until_the_next_acknowledged_change() -> None:
    answered = AnsweredChanges()
    for at_s in (9.0, 10.1, 10.2, 13.2, 13.3, 21.0):
        answered.add("create", at_s)
    assert answered.longest_gap_s(10.0, 13.25) == pytest.approx(3.0)
    # no change was acknowledged from 13.3 on, and the time of the fault ended meanwhile
    assert answered.longest_gap_s(13.25, 20.0) == pytest.approx(7.7)
    assert answered.longest_gap_s(22.0, 25.0) == pytest.approx(3.0)
    assert answered.kinds == {"create": 6}


def test_a_verdict_passes_only_if_nothing_was_lost_or_half_made() -> None:
    verdict = Verdict(1, 1, faults=[ControllerFault("kill", [100], 0.1, 0.4)])
    assert verdict.passed and verdict.as_json()["faults"][0]["gap_s"] == 0.4
    assert not mistakes_of("drill controllers", {**verdict.as_json(), "picture": "timeline.svg"})
    for broken in ("lost", "doubled", "out_of_order", "wrong_bytes", "skipped", "commits_lost", "half_made"):
        assert not Verdict(1, 1, **{broken: 1}).passed
    assert not Verdict(1, 1, failures=["node 100 ended by itself"]).passed
