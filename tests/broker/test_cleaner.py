"""The cleaner on a whole broker with a clock that moves by hand."""

from __future__ import annotations

import pytest

from heirlog.broker import cleaner
from heirlog.broker.partition import Partition
from heirlog.metadata.config_def import StaticConfig
from heirlog.protocol.batch import encode_batch, walk
from heirlog.protocol.messages import BrokerHeartbeatResponse
from heirlog.storage.cleaning.offset_map import OffsetMap, keys_within

from .fakes import Rig, state

CHECKPOINT = "/data/cleaner-offset-checkpoint"


def compacted(rig: Rig, topic: str = "foo", **configs: str) -> Partition:
    values = {"cleanup_policy": "compact", "internal_segment_bytes": "300", "file_delete_delay_ms": "50", **configs}
    for name, value in values.items():
        rig.set_config(name.replace("_", "."), value, topic)
    return rig.show(state([1]), topic)


def append(rig: Rig, partition: Partition, *keys: str, timestamp_ms: int | None = None) -> None:
    at = rig.env.wall_ms() if timestamp_ms is None else timestamp_ms
    for key in keys:
        batch = encode_batch([(key.encode(), b"value" * 5, (), at)])
        partition.append(batch, 1, rig.env.wall_ms(), rig.env.now_ms())


def roll(rig: Rig, partition: Partition) -> None:
    partition.log.roll()
    rig.env.advance(1)


def kept(partition: Partition) -> list[int]:
    log = partition.log
    at, found = log.log_start_offset, []
    while at < log.log_end_offset:
        for region in log.read(at, 1 << 20, log.log_end_offset).regions:
            for _, header in walk(region.read()):
                found += [header.base_offset] * (header.record_count > 0)
                at = header.next_offset
    return found


def finished(rig: Rig) -> list[str]:
    return [str(values["topic"]) for event, values in rig.env.events if event == "log-compacted"]


def test_a_compacted_topic_is_compacted_after_the_back_off_and_the_checkpoint_says_how_far() -> None:
    rig = Rig(log_cleaner_backoff_ms="1000").started()
    partition = compacted(rig)
    append(rig, partition, "a", "b", "a", "b", "a")
    roll(rig, partition)
    append(rig, partition, "a")
    rig.env.advance(900)
    assert finished(rig) == []
    rig.env.advance(400)
    assert finished(rig) == ["foo"]
    assert kept(partition) == [3, 4, 5]
    assert rig.env.files.open(CHECKPOINT).pread(100, 0).rstrip() == b"0\n1\nfoo 0 5"
    assert not [n for n in rig.env.files.list("/data/foo-0") if n.endswith((".cleaned", ".swap", ".deleted"))]


def test_a_topic_that_only_deletes_is_left_alone() -> None:
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig, cleanup_policy="delete")
    append(rig, partition, "a", "a", "a")
    roll(rig, partition)
    rig.env.advance(1000)
    assert finished(rig) == [] and kept(partition) == [0, 1, 2]


def test_the_dirtiest_log_is_first() -> None:
    rig = Rig(log_cleaner_backoff_ms="1000").started()
    clean, dirty = compacted(rig, "foo"), compacted(rig, "bar")
    append(rig, clean, *"aabb")
    roll(rig, clean)
    rig.env.advance(1500)
    append(rig, clean, *"ccdd", *"eeff")
    append(rig, dirty, *"aabb")
    for partition in (clean, dirty):
        roll(rig, partition)
    rig.env.advance(2000)
    assert finished(rig) == ["foo", "bar", "foo"]


def test_a_log_that_is_clean_enough_waits_until_it_is_overdue() -> None:
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig, min_cleanable_dirty_ratio="0.9", internal_segment_bytes="100000")
    append(rig, partition, *"abcdefgh")
    roll(rig, partition)
    rig.env.advance(500)
    assert finished(rig) == ["foo"]
    append(rig, partition, "a")
    roll(rig, partition)
    rig.env.advance(500)
    assert finished(rig) == ["foo"]
    compacted(rig, min_cleanable_dirty_ratio="0.9", max_compaction_lag_ms="300")
    rig.env.advance(500)
    assert finished(rig) == ["foo", "foo"] and kept(partition) == [*range(1, 9)]


def test_what_is_younger_than_the_lag_is_not_compacted() -> None:
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig, min_compaction_lag_ms="60000")
    append(rig, partition, "a", "a")
    roll(rig, partition)
    rig.env.advance(50_000)
    assert finished(rig) == []
    rig.env.advance(20_000)
    assert finished(rig) == ["foo"] and kept(partition) == [1]


def test_max_compaction_lag_closes_the_active_segment() -> None:
    rig = Rig().started()
    assert compacted(rig, max_compaction_lag_ms="5000").log.config.segment_ms == 5000
    assert compacted(rig, "bar", cleanup_policy="delete", max_compaction_lag_ms="5000").log.config.segment_ms > 5000


def test_a_damaged_log_is_named_once_and_left_alone() -> None:
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig)
    append(rig, partition, "a", "a")
    roll(rig, partition)
    file = partition.log.segments[0].log
    file.pwrite(b"\xff", file.size - 1)
    rig.env.advance(2000)
    assert [event for event, _ in rig.env.events].count("log-uncleanable") == 1
    assert not partition.offline
    assert not [n for n in rig.env.files.list("/data/foo-0") if n.endswith(".cleaned")]


def test_a_slice_ends_and_the_next_one_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "MAX_STEPS_PER_SLICE", 3)
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig, internal_segment_bytes="100000")
    append(rig, partition, *"ab" * 50)
    roll(rig, partition)
    rig.env.advance(200)
    assert finished(rig) == []
    rig.env.advance(2000)
    assert finished(rig) == ["foo"]


def test_a_truncation_and_a_deletion_end_the_pass_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "MAX_STEPS_PER_SLICE", 3)
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig, internal_segment_bytes="100000")
    append(rig, partition, *"ab" * 50)
    roll(rig, partition)
    rig.env.advance(150)
    partition.truncate_to(50)
    rig.env.advance(5000)
    assert finished(rig) == [] and partition.log.log_end_offset == 50
    roll(rig, partition)
    rig.env.advance(150)
    rig.delete_topic()
    rig.publish()
    rig.env.advance(120_000)
    assert finished(rig) == [] and rig.env.stopped is None


def test_a_stop_under_way_leaves_a_clean_log_and_what_was_clean_is_known_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(log_cleaner_backoff_ms="100").started()
    partition = compacted(rig)
    append(rig, partition, *"aabb")
    roll(rig, partition)
    rig.env.advance(1000)
    monkeypatch.setattr(cleaner, "MAX_STEPS_PER_SLICE", 3)
    append(rig, partition, *"ab" * 20)
    roll(rig, partition)
    rig.env.advance(120)
    rig.broker.shutdown(lambda: None)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(should_shut_down=True))
    rig.env.advance(100)
    rig.env.sent.clear()
    again = Rig(1, rig.env, log_cleaner_backoff_ms="100")
    again.set_partition(state([1]))
    again.started()
    assert again.directories[0].was_clean
    log = again.partition().log
    assert (log.first_dirty_offset, log.log_end_offset) == (4, 44)


def test_the_buffers_size_is_a_bound_on_keys() -> None:
    assert keys_within(200_000, 0.9) == 900 and keys_within(0, 0.9) == 1
    few = OffsetMap(2)
    assert few.put(b"a", 1) and few.put(b"b" * 100, 2) and not few.put(b"c", 3)
    assert few.put(b"a", 4) and (few.get(b"a"), few.get(b"b" * 100), few.get(b"c"), len(few)) == (4, 2, -1, 2)


def test_no_cleaner_runs_where_it_is_switched_off() -> None:
    rig = Rig(log_cleaner_backoff_ms="100", log_cleaner_enable="false").started()
    assert isinstance(rig.static, StaticConfig)
    partition = compacted(rig)
    append(rig, partition, "a", "a")
    roll(rig, partition)
    rig.env.advance(2000)
    assert finished(rig) == []
