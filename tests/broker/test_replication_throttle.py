"""Replication throttles: which replicas are held back, on the leader's side and on the follower's."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.replication_throttle import LEADER
from heirlog.metadata.state import BROKER_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.survey import at_once
from heirlog.protocol.types import BrokerId

from .fakes import Rig, answer_of, batch, state
from .test_replica_fetcher import answer, asked, taken

LARGE = b"x" * 5000


def throttled(rig: Rig, side: str, rate: int | None, replicas: str = "*") -> None:
    value = None if rate is None else str(rate)
    rig.image.set_config(BROKER_RESOURCE, "1", f"{side}.replication.throttled.rate", value, rig.journal)
    rig.set_config(f"{side}.replication.throttled.replicas", replicas)
    rig.publish()


def leader(rate: int | None = 1000, replicas: str = "*", isr: list[int] | None = None) -> Rig:
    """Broker 1 leads, 2 is in the ISR, 3 is not."""
    rig = Rig().started()
    rig.show(state([1, 2, 3], isr=isr or [1, 2]))
    throttled(rig, "leader", rate, replicas)
    rig.produce(1, batch(value=LARGE))
    # the watermark moves behind the record, so that 3 cannot join
    rig.fetch(1, replica=2)
    return rig


def sent(result: Any) -> int:
    """Bytes of records."""
    (data,) = answer_of(result).responses[0].partitions
    return sum(part.size for part in data.records)


def test_a_replica_that_catches_up_gets_nothing_while_the_leader_sends_too_fast() -> None:
    rig = leader()
    assert sent(rig.fetch(replica=3)) > 5000, "nothing was sent before"
    assert sent(rig.fetch(replica=3)) == 0
    rig.env.advance(6000)
    assert sent(rig.fetch(replica=3)) > 5000, "5 kB in six seconds are below 1 kB/s"


def test_a_replica_in_the_isr_gets_everything_and_its_bytes_count() -> None:
    rig = leader()
    assert sent(rig.fetch(replica=2)) > 5000
    assert sent(rig.fetch(replica=2)) > 5000
    assert sent(rig.fetch(replica=3)) == 0


def test_a_fetch_that_is_held_back_still_tells_the_watermark_and_waits_no_longer_than_asked() -> None:
    rig = leader()
    rig.fetch(replica=3)
    waiting = rig.fetch(replica=3, max_wait_ms=500)
    rig.produce(1, batch(value=LARGE))
    assert answer_of(waiting) is None, "new records are no reason to answer without them"
    rig.env.advance(500)
    (data,) = answer_of(waiting).responses[0].partitions
    assert (data.error_code, data.high_watermark, sent(waiting)) == (0, rig.partition().high_watermark, 0)


@pytest.mark.parametrize(
    ("replicas", "is_held_back"), [("0:1", True), ("0:1,1:1", True), ("0:2", False), ("1:1", False), ("", False)]
)
def test_a_partition_is_listed_with_the_leader_s_id(replicas: str, is_held_back: bool) -> None:
    rig = leader(replicas=replicas)
    rig.fetch(replica=3)
    assert (sent(rig.fetch(replica=3)) == 0) is is_held_back


def test_without_a_rate_or_once_it_is_removed_nothing_is_held_back() -> None:
    rig = leader(rate=None)
    rig.fetch(replica=3)
    assert sent(rig.fetch(replica=3)) > 5000
    rig = leader()
    rig.fetch(replica=3)
    throttled(rig, "leader", None)
    assert sent(rig.fetch(replica=3)) > 5000


def test_a_rate_of_zero_sends_nothing_after_the_first_answer() -> None:
    rig = leader(rate=0)
    rig.fetch(replica=3)
    assert sent(rig.fetch(replica=3)) == 0


def follower(rate: int | None = 1000, isr: list[int] | None = None) -> Rig:
    """Broker 1 follows 2."""
    rig = Rig().started()
    rig.show(state([1, 2], isr=isr or [2], leader=2))
    throttled(rig, "follower", rate)
    return rig


def named(rig: Rig) -> list[Any]:
    """The partitions of the requests that wait at the leader."""
    return [topic for one in rig.env.sent if one.channel == "replica-fetch-0" for topic in one.request.topics]


def test_a_follower_that_fetches_too_fast_leaves_the_partition_out_for_a_while() -> None:
    rig = follower()
    answer(taken(rig), records=batch(1, 0, 5, LARGE))
    assert not named(rig)
    rig.env.advance(4000)
    assert not named(rig), "5 kB in four seconds are more than 1 kB/s"
    assert at_once(rig.broker.fetchers.lags()) == (0, 0), "it has not failed"
    rig.env.advance(2000)
    assert asked(taken(rig)).fetch_offset == 1


def test_a_follower_in_the_isr_is_never_held_back() -> None:
    rig = follower(isr=[1, 2])
    answer(taken(rig), records=batch(1, 0, 5, LARGE))
    assert asked(taken(rig)).fetch_offset == 1


def test_without_a_rate_a_follower_asks_on() -> None:
    rig = follower(rate=None)
    answer(taken(rig), records=batch(1, 0, 5, LARGE))
    assert asked(taken(rig)).fetch_offset == 1


def test_a_listed_topic_that_is_deleted_is_nobody_s_any_more() -> None:
    rig = leader()
    rig.fetch(replica=3)
    assert rig.broker.replicas.leader_throttle.holds_back(rig.partition(), BrokerId(3), [BrokerId(1)])
    rig.set_config("leader.replication.throttled.replicas", "")
    rig.publish()
    assert not rig.broker.replicas.leader_throttle.holds_back(rig.partition(), BrokerId(3), [BrokerId(1)])


@pytest.mark.parametrize("replicas", [" *", " 0:1 ", "0:1, 1:1"])
def test_white_space_in_a_list_is_as_good_as_none(replicas: str) -> None:
    rig = leader(replicas=replicas)
    rig.fetch(replica=3)
    assert sent(rig.fetch(replica=3)) == 0


@pytest.mark.parametrize("replicas", ["0", "x:1", ":", "0:1:2", "*,0:2"])
def test_a_list_that_no_controller_of_ours_would_store_throttles_nothing(replicas: str) -> None:
    rig = leader(replicas="")
    rig.image.set_config(TOPIC_RESOURCE, "foo", LEADER[1], replicas)
    rig.broker.replicas.leader_throttle.on_image(rig.image, None)
    rig.fetch(replica=3)
    assert sent(rig.fetch(replica=3)) > 5000
