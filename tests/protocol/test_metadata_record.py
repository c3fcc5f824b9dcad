from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.protocol.metadata_record import (
    UnknownRecord,
    control_key,
    control_type,
    decode_control,
    decode_record,
    encode_control,
    encode_record,
    record_version,
    registration_change_version,
)
from heirlog.protocol.primitives import Malformed, Message
from heirlog.protocol.records import (
    METADATA_RECORDS,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    SnapshotHeaderRecord,
    TopicRecord,
    VotersRecord,
)

TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))

int8s = st.integers(-128, 127)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
uuids = st.binary(min_size=16, max_size=16)
brokers = st.lists(int32s, max_size=20)
texts = st.text(max_size=20)

RECORDS: dict[type[Message], st.SearchStrategy[Message]] = {
    PartitionRecord: st.builds(
        PartitionRecord,
        partition_id=int32s,
        topic_id=uuids,
        replicas=brokers,
        isr=brokers,
        removing_replicas=brokers,
        adding_replicas=brokers,
        leader=int32s,
        leader_recovery_state=int8s,
        leader_epoch=int32s,
        partition_epoch=int32s,
        directories=st.lists(uuids, max_size=20),
        eligible_leader_replicas=st.none() | brokers,
        last_known_elr=st.none() | brokers,
    ),
    PartitionChangeRecord: st.builds(
        PartitionChangeRecord,
        partition_id=int32s,
        topic_id=uuids,
        isr=st.none() | brokers,
        leader=int32s,
        replicas=st.none() | brokers,
        removing_replicas=st.none() | brokers,
        adding_replicas=st.none() | brokers,
        leader_recovery_state=int8s,
        eligible_leader_replicas=st.none() | brokers,
        last_known_elr=st.none() | brokers,
        directories=st.none() | st.lists(uuids, max_size=3),
    ),
    RegisterBrokerRecord: st.builds(
        RegisterBrokerRecord,
        broker_id=int32s,
        is_migrating_zk_broker=st.booleans(),
        incarnation_id=uuids,
        broker_epoch=int64s,
        end_points=st.lists(
            st.builds(
                RegisterBrokerRecord.BrokerEndpoint,
                name=texts,
                host=texts,
                port=st.integers(0, 65535),
                security_protocol=int16s,
            ),
            max_size=3,
        ),
        features=st.lists(
            st.builds(
                RegisterBrokerRecord.BrokerFeature,
                name=texts,
                min_supported_version=int16s,
                max_supported_version=int16s,
            ),
            max_size=3,
        ),
        rack=st.none() | texts,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=st.lists(uuids, max_size=3),
    ),
    BrokerRegistrationChangeRecord: st.builds(
        BrokerRegistrationChangeRecord,
        broker_id=int32s,
        broker_epoch=int64s,
        fenced=int8s,
        in_controlled_shutdown=int8s,
        log_dirs=st.lists(uuids, max_size=3),
    ),
    ConfigRecord: st.builds(
        ConfigRecord, resource_type=int8s, resource_name=texts, name=texts, value=st.none() | texts
    ),
}


@settings(max_examples=150, deadline=None)
@given(st.one_of(list(RECORDS.values())))
def test_what_was_written_is_read_again(record: Message) -> None:
    assert decode_record(encode_record(record, record.MAX_VERSION)) == record


@pytest.mark.parametrize("cls", METADATA_RECORDS.values(), ids=lambda cls: cls.__name__)
def test_every_record_has_its_kafka_key_and_survives_in_every_version(cls: type[Message]) -> None:
    for version in range(cls.MAX_VERSION + 1):
        value = encode_record(cls(), version)
        assert value[0] == 1
        assert value[1] == cls.API_KEY
        assert value[2] == version
        assert decode_record(value) == cls()


GOLDEN: list[tuple[Message, int, str]] = [
    (NoOpRecord(), 0, "01 14 00 00"),
    (ClearElrRecord(topic_name="a"), 0, "01 1c 00 02 61 00"),
    (FeatureLevelRecord(name="metadata.version", feature_level=27), 0,
     "01 0c 00 11" + b"metadata.version".hex() + "00 1b 00"),
    (TopicRecord(name="foo", topic_id=TOPIC_ID), 0, "01 02 00 04 66 6f 6f" + TOPIC_ID.hex() + "00"),
    (PartitionChangeRecord(partition_id=2, topic_id=TOPIC_ID, isr=[1], leader=1, eligible_leader_replicas=[2, 3]), 2,
     "01 05 02 00000002" + TOPIC_ID.hex() + "03"
     "00 05 02 00000001"
     "01 04 00000001"
     "06 09 03 00000002 00000003"),
    (PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, last_known_elr=[]), 2,
     "01 05 02 00000000" + TOPIC_ID.hex() + "01 07 01 01"),
    (PartitionRecord(partition_id=1, topic_id=TOPIC_ID, replicas=[1, 2], isr=[1], leader=1, leader_epoch=3,
                     partition_epoch=4, directories=[TOPIC_ID, OTHER_ID], eligible_leader_replicas=[2]), 2,
     "01 03 02 00000001" + TOPIC_ID.hex() + "03 00000001 00000002 02 00000001 01 01"
     "00000001 00000003 00000004 03" + TOPIC_ID.hex() + OTHER_ID.hex() + "01 01 05 02 00000002"),
    (PartitionRecord(partition_id=1, topic_id=TOPIC_ID, leader_recovery_state=1, leader_epoch=0, partition_epoch=0), 0,
     "01 03 00 00000001" + TOPIC_ID.hex() + "01 01 01 01 ffffffff 00000000 00000000 01 00 01 01"),
    (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=-1), 0,
     "01 11 00 00000001 0000000000000009 01 00 01 ff"),
    (RegisterBrokerRecord(
        broker_id=5, incarnation_id=TOPIC_ID, broker_epoch=7, rack=None, log_dirs=[OTHER_ID],
        end_points=[RegisterBrokerRecord.BrokerEndpoint(name="E", host="h", port=9092, security_protocol=0)],
        features=[RegisterBrokerRecord.BrokerFeature(name="f", min_supported_version=0, max_supported_version=1)]), 3,
     "01 00 03 00000005 00" + TOPIC_ID.hex() + "0000000000000007 02 0245 0268 2384 0000 00"
     "02 0266 0000 0001 00 00 01 00 01 00 11 02" + OTHER_ID.hex()),
]  # fmt: skip


@pytest.mark.parametrize(("record", "version", "text"), GOLDEN, ids=[type(row[0]).__name__ for row in GOLDEN])
def test_the_bytes_are_those_of_kafkas_schema(record: Message, version: int, text: str) -> None:
    value = bytes.fromhex(text)
    assert encode_record(record, version) == value
    assert decode_record(value) == record
    for size in range(len(value)):
        with pytest.raises(Malformed):
            decode_record(value[:size])


def test_frame_version_zero_and_trailing_bytes_are_refused() -> None:
    value = encode_record(TopicRecord(name="t"), 0)
    with pytest.raises(Malformed, match="frame version 0"):
        decode_record(b"\0" + value[1:])
    with pytest.raises(Malformed, match="1 bytes too many"):
        decode_record(value + b"\0")


def test_records_from_the_future_are_unknown() -> None:
    with pytest.raises(UnknownRecord, match="key 99"):
        decode_record(b"\x01\x63\x00\x00")
    with pytest.raises(UnknownRecord, match="v7 is newer"):
        decode_record(b"\x01\x05\x07" + encode_record(PartitionChangeRecord(), 2)[3:])


@pytest.mark.parametrize("cls", [PartitionRecord, PartitionChangeRecord])
def test_foreign_tags_of_partition_records_are_skipped(cls: type[Message]) -> None:
    value = encode_record(cls(), 2)
    assert value.endswith(b"\0")
    assert decode_record(value[:-1] + b"\x01\xf3\x4e\x03abc") == cls()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.builds(lambda key, rest: bytes([1, key]) + rest, st.integers(0, 28), st.binary()))
def test_random_bytes_are_a_record_or_malformed(value: bytes) -> None:
    try:
        decode_record(value)
    except Malformed as error:
        assert str(error)


@pytest.mark.parametrize(
    ("cls", "metadata_version", "version"),
    [
        (RegisterBrokerRecord, 7, 1),
        (RegisterBrokerRecord, 16, 2),
        (RegisterBrokerRecord, 17, 3),
        (PartitionRecord, 16, 0),
        (PartitionRecord, 17, 1),
        (PartitionRecord, 22, 1),
        (PartitionRecord, 23, 2),
        (PartitionChangeRecord, 29, 2),
        (PartitionChangeRecord, 18, 1),
        (TopicRecord, 29, 0),
    ],
)
def test_the_version_written_follows_metadata_version(cls: type[Message], metadata_version: int, version: int) -> None:
    assert record_version(cls, metadata_version) == version


def test_a_registration_change_is_written_in_the_lowest_version_that_carries_it() -> None:
    change = BrokerRegistrationChangeRecord(fenced=1)
    assert registration_change_version(change) == 0
    change.in_controlled_shutdown = 1
    assert registration_change_version(change) == 1
    change.log_dirs = [TOPIC_ID]
    assert registration_change_version(change) == 2


@pytest.mark.parametrize(
    ("record", "record_type"),
    [
        (LeaderChangeMessage(leader_id=3, voters=[LeaderChangeMessage.Voter(voter_id=3)]), 2),
        (SnapshotHeaderRecord(last_contained_log_timestamp=5), 3),
        (VotersRecord(voters=[VotersRecord.Voter(voter_id=1, voter_directory_id=TOPIC_ID)]), 6),
    ],
)
def test_control_records_carry_their_type_in_the_key(record: Message, record_type: int) -> None:
    key, value = encode_control(record)
    assert key == b"\0\0" + record_type.to_bytes(2, "big") == control_key(record_type)
    assert control_type(key) == record_type
    assert decode_control(key, value) == record


def test_control_records_of_another_type_or_cut_short_are_refused() -> None:
    with pytest.raises(UnknownRecord):
        decode_control(control_key(1), b"\0\0")
    with pytest.raises(Malformed):
        control_type(b"\0\0\0")
    with pytest.raises(Malformed):
        decode_control(control_key(3), b"\0")
