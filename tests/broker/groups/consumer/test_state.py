"""Records of consumer groups: what is written is read, and any rest that compaction leaves is a group (G13)."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.broker.groups.consumer.heartbeats import group_tombstones
from heirlog.broker.groups.consumer.records import (
    CurrentMember,
    GroupEpoch,
    MemberSubscription,
    OldTopicMetadata,
    RegexTopics,
    TargetEpoch,
    TargetMember,
    is_tombstone,
    write_consumer_record,
)
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.values import (
    ClassicProtocols,
    ConsumerGroupMember,
    ConsumerGroupPhase,
    MemberAssignment,
    MemberState,
    ResolvedRegex,
    assignment_of,
)
from heirlog.broker.groups.records import read_record
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.types import Uuid

A = Uuid(b"a" * 16)
NO_CLASSIC_PROTOCOLS = b"\1\0\1\0"
"""The end of what Kafka writes of a member of the consumer protocol."""
names = st.text(max_size=8)
maybe = st.none() | names
assignments = st.dictionaries(
    st.binary(min_size=16, max_size=16).map(Uuid), st.frozensets(st.integers(0, 99), min_size=1), max_size=3
)
members = st.builds(
    ConsumerGroupMember,
    st.just("m"),
    maybe,
    maybe,
    names,
    names,
    st.frozensets(names, max_size=3),
    st.none() | st.text(min_size=1, max_size=8),
    st.integers(-1, 2**31 - 1),
    maybe,
    st.none()
    | st.builds(
        ClassicProtocols,
        st.integers(0, 2**31 - 1),
        st.lists(st.tuples(names, st.binary(max_size=9)), max_size=3).map(tuple),
    ),
)
currents = st.builds(
    MemberAssignment, st.integers(-2, 99), st.integers(-2, 99), st.sampled_from(MemberState), assignments, assignments
)
resolved = st.builds(ResolvedRegex, st.frozensets(names, max_size=3), st.integers(0, 99), st.integers(0, 99))
records: st.SearchStrategy[Any] = st.one_of(
    st.builds(GroupEpoch, names, st.integers(0, 99), st.integers(-(2**63), 2**63 - 1)),
    names.map(lambda group: GroupEpoch(group, None)),
    names.map(OldTopicMetadata),
    st.builds(MemberSubscription, names, st.just("m"), st.none() | members),
    st.builds(TargetEpoch, names, st.none() | st.integers(0, 99)),
    st.builds(TargetMember, names, st.just("m"), st.none() | assignments),
    st.builds(CurrentMember, names, st.just("m"), st.none() | currents),
    st.builds(RegexTopics, names, st.text(min_size=1, max_size=8), st.none() | resolved),
)


@given(records)
def test_a_record_is_read_as_it_was_written(record: Any) -> None:
    key, value = write_consumer_record(record)
    assert read_record(key, value) == record
    assert (value is None) == is_tombstone(record)


def test_records_have_kafkas_bytes() -> None:
    assert write_consumer_record(GroupEpoch("g", 5)) == (struct.pack(">hh1s", 3, 1, b"g"), b"\0\0\0\0\0\5\0")
    _, value = write_consumer_record(GroupEpoch("g", 5, -2))
    assert value == b"\0\0\0\0\0\5\1\0\x08" + struct.pack(">q", -2)
    current = MemberAssignment(7, 6, MemberState.UNREVOKED_PARTITIONS, assignment_of([(A, [1])]))
    key, value = write_consumer_record(CurrentMember("g", "m", current))
    assert key == struct.pack(">hh1sh1s", 8, 1, b"g", 1, b"m")
    assert value == struct.pack(">hiib", 0, 7, 6, 1) + b"\2" + A + b"\2\0\0\0\1\0" + b"\1\0"
    member = ConsumerGroupMember("m", "i", None, "c", "/h", frozenset({"t"}), None, 9, "range")
    _, value = write_consumer_record(MemberSubscription("g", "m", member))
    assert value == b"\0\0\2i\0\2c\3/h\2\2t\1\0\0\0\x09\6range" + NO_CLASSIC_PROTOCOLS


def test_a_member_is_of_the_classic_protocol_only_if_its_record_says_so() -> None:
    """Kafka's schema has null as the default, its class an empty struct: so null is written, and read in both forms."""
    key, value = write_consumer_record(MemberSubscription("g", "m", ConsumerGroupMember("m")))
    assert value is not None and value.endswith(NO_CLASSIC_PROTOCOLS)
    of_kafka = b"\1\0\7\1" + struct.pack(">i", 5) + b"\1\0"
    for end, classic in ((NO_CLASSIC_PROTOCOLS, None), (b"\0", None), (of_kafka, ClassicProtocols(5, ()))):
        record = read_record(key, value.removesuffix(NO_CLASSIC_PROTOCOLS) + end)
        assert isinstance(record, MemberSubscription) and record.value is not None
        assert record.value.classic == classic
    member = ConsumerGroupMember("m", classic=ClassicProtocols(5, ()))
    _, written = write_consumer_record(MemberSubscription("g", "m", member))
    assert written is not None and written.endswith(of_kafka)


def test_a_value_of_an_unknown_version_is_damage() -> None:
    for value in (b"\0\1\0\0\0\5\0", b"\0"):
        with pytest.raises(Malformed):
            read_record(struct.pack(">hh1s", 3, 1, b"g"), value)


def test_a_state_of_a_later_version_is_unknown() -> None:
    key, value = write_consumer_record(CurrentMember("g", "m", MemberAssignment(7, 6)))
    assert value is not None
    record = read_record(key, value[:10] + b"\x09" + value[11:])
    assert isinstance(record, CurrentMember) and record.value is not None
    assert record.value.state is MemberState.UNKNOWN


def test_a_partition_belongs_to_the_member_that_claimed_it_last() -> None:
    """KAFKA-16147: the former owner does not free it afterwards."""
    group = ConsumerGroupState("g")
    both = assignment_of([(A, [1, 2])])
    for member_id in ("x", "y"):
        group.apply([CurrentMember("g", member_id, MemberAssignment(1, 0, assigned=both))])
    group.apply([CurrentMember("g", "x", None)])
    assert group.owners == {A: {1: "y", 2: "y"}}
    group.apply([CurrentMember("g", "y", MemberAssignment(1, 0, assigned=assignment_of([(A, [1])]), pending=both))])
    assert group.owners == {A: {1: "y", 2: "y"}}
    group.apply([CurrentMember("g", "y", None)])
    assert group.owners == {}


def test_the_phase_follows_from_epochs_and_members() -> None:
    group = ConsumerGroupState("g")
    assert group.phase is ConsumerGroupPhase.DEAD
    group.apply([GroupEpoch("g", 1)])
    assert group.phase is ConsumerGroupPhase.EMPTY
    group.apply([MemberSubscription("g", "m", ConsumerGroupMember("m"))])
    assert group.phase is ConsumerGroupPhase.ASSIGNING
    group.apply([TargetEpoch("g", 1)])
    assert group.phase is ConsumerGroupPhase.RECONCILING
    group.apply([CurrentMember("g", "m", MemberAssignment(1))])
    assert group.phase is ConsumerGroupPhase.STABLE


def a_history(seed: int) -> list[Any]:
    """Records of one group in which members come, move and go."""
    rng = random.Random(seed)
    written: list[Any] = []
    for epoch in range(1, 12):
        member_id = f"m{rng.randrange(3)}"
        if rng.random() < 0.3:
            written += [
                CurrentMember("g", member_id, None),
                TargetMember("g", member_id, None),
                MemberSubscription("g", member_id, None),
                GroupEpoch("g", epoch),
            ]
            continue
        taken = assignment_of([(A, rng.sample(range(4), 2))])
        member = ConsumerGroupMember(member_id, instance_id=rng.choice([None, "i"]), topics=frozenset({"t"}))
        written += [MemberSubscription("g", member_id, member), GroupEpoch("g", epoch)]
        written += [TargetMember("g", member_id, taken), TargetEpoch("g", epoch)]
        written.append(CurrentMember("g", member_id, MemberAssignment(epoch, epoch - 1, assigned=taken)))
    return written


def shown(group: ConsumerGroupState) -> Any:
    group.clean_up()
    return (
        group.epoch,
        group.assignment_epoch,
        group.members,
        group.targets,
        group.currents,
        group.static_members,
        group.subscribers,
        group.members_bytes,
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.data())
def test_a_compacted_log_is_the_same_group(seed: int, data: st.DataObject) -> None:
    written = a_history(seed)
    whole, compacted = ConsumerGroupState("g"), ConsumerGroupState("g")
    whole.apply(written)
    clean_to = data.draw(st.integers(0, len(written)))
    keys = [write_consumer_record(record)[0] for record in written]
    last = {key: number for number, key in enumerate(keys[:clean_to])}
    keep = [last.get(key) == number for number, key in enumerate(keys[:clean_to])]
    dropped = data.draw(st.sampled_from([0.0, 1.0]))
    compacted.apply(
        record
        for number, record in enumerate(written)
        if number >= clean_to or (keep[number] and not (dropped and is_tombstone(record)))
    )
    assert shown(compacted) == shown(whole)


@settings(max_examples=100, deadline=None)
@given(st.lists(records, max_size=12))
def test_no_record_is_refused_whatever_came_before(written: list[Any]) -> None:
    """G13: one group must not block the others of its partition (KAFKA-21102)."""
    group = ConsumerGroupState("g")
    group.apply(written)
    group.clean_up()
    assert set(group.currents) <= set(group.members) and set(group.targets) <= set(group.members)
    assert not group.members or group.epoch >= group.assignment_epoch
    group.apply(group_tombstones(group))
    assert (group.exists, group.members_bytes) == (False, 0)
