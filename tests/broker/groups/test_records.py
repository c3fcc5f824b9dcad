from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.broker.groups.group import ClassicGroup
from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.records import StoredGroup, StoredOffset, group_record, offset_record, read_record
from heirlog.protocol.consumer_protocol import subscribed_topics
from heirlog.protocol.primitives import ZERO_UUID, Malformed
from heirlog.protocol.records import GroupMetadataValue

names = st.text(max_size=20)
int64s = st.integers(-(2**63), 2**63 - 1)
committed_offsets = st.builds(
    OffsetAndMetadata,
    int64s,
    st.just(-1),
    st.text(max_size=50),
    int64s,
    st.integers(0, 2**63 - 1),
    st.just(ZERO_UUID),
) | st.builds(
    OffsetAndMetadata,
    int64s,
    st.integers(-1, 2**31 - 1),
    st.text(max_size=50),
    int64s,
    st.just(-1),
    st.binary(min_size=16, max_size=16),
)
"""With an expiry of its own an offset has no leader epoch and no topic id: the record's version has no field for it."""


@given(names, names, st.integers(0, 2**31 - 1), st.none() | committed_offsets)
def test_an_offset_is_read_as_it_was_written(
    group: str, topic: str, partition: int, committed: OffsetAndMetadata | None
) -> None:
    assert read_record(*offset_record(group, (topic, partition), committed)) == StoredOffset(
        group, (topic, partition), committed
    )


def test_an_offset_has_kafkas_bytes() -> None:
    key, value = offset_record("g", ("t", 3), OffsetAndMetadata(7, 2, "m", 1000))
    assert key == struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    assert value == struct.pack(">hqiB1sqB", 4, 7, 2, 2, b"m", 1000, 0)
    _, value = offset_record("g", ("t", 3), OffsetAndMetadata(7, 2, "m", 1000, topic_id=b"sixteen of bytes"))
    assert value == struct.pack(">hqiB1sqBBB", 4, 7, 2, 2, b"m", 1000, 1, 0, 16) + b"sixteen of bytes"
    _, value = offset_record("g", ("t", 3), OffsetAndMetadata(7, -1, "", 1000, 2000))
    assert value == struct.pack(">hqhqq", 1, 7, 0, 1000, 2000)


def test_an_offset_of_an_earlier_version_counts_for_any_topic_of_the_name() -> None:
    key, _ = offset_record("g", ("t", 3), None)
    read = read_record(key, struct.pack(">hqih1sq", 3, 7, 2, 1, b"m", 1000))
    assert read == StoredOffset("g", ("t", 3), OffsetAndMetadata(7, 2, "m", 1000))
    assert OffsetAndMetadata(7, 2, "m", 1000).counts_for(b"any sixteen byte")


@given(
    st.lists(
        st.builds(
            GroupMetadataValue.MemberMetadata,
            member_id=names,
            group_instance_id=st.none() | names,
            client_id=names,
            client_host=names,
            rebalance_timeout=st.integers(1, 2**31 - 1),
            session_timeout=st.integers(1, 2**31 - 1),
            subscription=st.binary(max_size=50),
            assignment=st.binary(max_size=50),
        ),
        unique_by=lambda member: member.member_id,
        max_size=5,
    ),
    st.integers(0, 2**31 - 1),
)
def test_a_loaded_group_is_the_group_that_was_stored(
    members: list[GroupMetadataValue.MemberMetadata], generation: int
) -> None:
    stored = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range" if members else None,
        leader=members[0].member_id if members else None,
        current_state_timestamp=5,
        members=members,
    )
    key, value = group_record("g", stored)
    found = read_record(key, value)
    assert isinstance(found, StoredGroup) and found.value is not None
    group = ClassicGroup("g")
    group.load(found.value)
    again = group.as_record({member.member_id: member.assignment for member in group.members.values()})
    assert group_record("g", again) == (key, value)


def test_a_tombstone_deletes() -> None:
    assert read_record(*group_record("g", None)) == StoredGroup("g", None)


def test_other_kinds_of_groups_are_passed_over_and_damage_is_told() -> None:
    assert read_record(struct.pack(">hh1s", 17, 1, b"g"), b"whatever") is None
    for key, value in [(None, b""), (b"\0", b""), (b"\0\1\0\1g", b""), (struct.pack(">hh1s", 2, 1, b"g"), b"\0")]:
        with pytest.raises(Malformed):
            read_record(key, value)


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_random_bytes_are_malformed_or_nothing(key: bytes, value: bytes | None) -> None:
    try:
        read_record(key, value)
    except Malformed as error:
        assert str(error)


def test_a_subscription_names_topics_in_every_version() -> None:
    assert subscribed_topics(struct.pack(">hih1sh2s", 1, 2, 1, b"t", 2, b"uv") + b"more") == {"t", "uv"}
    assert subscribed_topics(struct.pack(">hi", 0, 0)) == frozenset()


@given(st.binary(max_size=40))
def test_what_is_no_subscription_is_unknown(data: bytes) -> None:
    found = subscribed_topics(data)
    assert found is None or isinstance(found, frozenset)
