"""Every API in every version against kio, and what must not get through."""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest
from protocol import oracle

from heirlog.env import Region
from heirlog.protocol.api import ApiSchema
from heirlog.protocol.messages import (
    AlterPartitionResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
)
from heirlog.protocol.primitives import (
    SMALL_REGIONS_BYTES,
    Malformed,
    Part,
    UnsupportedVersion,
    decode,
    decode_with_end,
    encode,
    encode_bytes,
    records_size,
    records_view,
    uvarint,
)
from heirlog.protocol.records import CONTROL_RECORDS

CASES = oracle.cases()
each_case = pytest.mark.parametrize(
    ("api", "kind", "version"), CASES, ids=[f"{api.name}-{kind}-v{version}" for api, kind, version in CASES]
)


def test_the_list_of_versions_that_kio_lacks_is_what_kio_lacks() -> None:
    lacks = {(api.name, version) for api, version in oracle.versions_of_kafka() if not oracle.kio_has(api, version)}
    assert lacks == set(oracle.NOT_IN_KIO), "kio cannot check these: see docs/internals/adding-an-api.md, Add a version"


@each_case
def test_reads_and_writes_what_kio_writes_and_reads(api: ApiSchema, kind: str, version: int) -> None:
    rng = random.Random(f"{api.name} {kind} {version}")
    cls = oracle.our_class(api, kind)
    theirs = oracle.kio_class(api, kind, version)
    for _ in range(15):
        entity = oracle.random_entity(rng, theirs)
        data = oracle.kio_bytes(entity)
        message, end = decode_with_end(cls, data, version)
        assert end == len(data)
        assert oracle.same(message, oracle.plain(entity))
        written = oracle.ours_bytes(encode(message, version))
        assert written == data
        assert oracle.plain(oracle.kio_parse(theirs, written)) == oracle.plain(oracle.kio_parse(theirs, data))


@each_case
def test_every_prefix_of_a_message_is_malformed(api: ApiSchema, kind: str, version: int) -> None:
    rng = random.Random(f"prefix {api.name} {kind} {version}")
    cls = oracle.our_class(api, kind)
    data = b""
    for _ in range(5):
        candidate = oracle.random_message_bytes(rng, api, kind, version)
        data = candidate if len(candidate) < 1500 else data
    for size in range(len(data)):
        with pytest.raises(Malformed):
            decode(cls, data[:size], version)


@each_case
def test_broken_bytes_raise_malformed_or_nothing(api: ApiSchema, kind: str, version: int) -> None:
    rng = random.Random(f"broken {api.name} {kind} {version}")
    cls = oracle.our_class(api, kind)
    valid = oracle.random_message_bytes(rng, api, kind, version)[:2000]
    for turn in range(80):
        if turn % 2:
            data = bytearray(rng.randbytes(rng.randrange(60)))
        else:
            data = bytearray(valid)
            for _ in range(rng.randrange(1, 4)):
                if data:
                    data[rng.randrange(len(data))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        try:
            decode(cls, bytes(data), version)
        except Malformed as error:
            assert str(error)


@pytest.mark.parametrize("key", sorted(CONTROL_RECORDS))
def test_control_records_are_those_of_kio(key: int) -> None:
    cls = CONTROL_RECORDS[key]
    name = {
        "LeaderChangeMessage": "leader_change_message",
        "SnapshotHeaderRecord": "snapshot_header_record",
        "SnapshotFooterRecord": "snapshot_footer_record",
        "KRaftVersionRecord": "k_raft_version_record",
        "VotersRecord": "voters_record",
    }[cls.__name__]
    rng = random.Random(name)
    for version in range(cls.MAX_VERSION + 1):
        theirs: Any = getattr(importlib.import_module(f"kio.schema.{name}.v{version}.data"), cls.__name__)
        for _ in range(20):
            entity = oracle.random_entity(rng, theirs)
            data = oracle.kio_bytes(entity)
            record, end = decode_with_end(cls, data, version)
            assert end == len(data)
            assert oracle.same(record, oracle.plain(entity))
            assert encode_bytes(record, version) == data


@each_case
def test_a_message_of_defaults_survives_the_wire(api: ApiSchema, kind: str, version: int) -> None:
    cls = oracle.our_class(api, kind)
    assert decode(cls, oracle.ours_bytes(encode(cls(), version)), version) == cls()


def test_our_own_tag_is_written_only_if_set_and_skipped_by_who_does_not_know_it() -> None:
    partition = AlterPartitionResponse.PartitionData(partition_index=3, committed_offset=77)
    message = AlterPartitionResponse(topics=[AlterPartitionResponse.TopicData(partitions=[partition])])
    data = encode_bytes(message, 3)
    # one tag: number 10000, eight bytes
    assert b"\x01\x90\x4e\x08" + (77).to_bytes(8, "big") in data
    assert decode(AlterPartitionResponse, data, 3) == message
    from_stranger = data.replace(b"\x90\x4e", b"\x91\x4e")
    assert decode(AlterPartitionResponse, from_stranger, 3).topics[0].partitions[0].committed_offset == -1
    partition.committed_offset = -1
    assert b"\x90\x4e" not in encode_bytes(message, 3)


def test_a_tagged_field_with_a_wrong_size_is_malformed() -> None:
    request = FetchRequest(cluster_id="c")
    data = encode_bytes(request, 17)
    assert data.endswith(b"\x01\x00\x02\x02c")
    with pytest.raises(Malformed, match="ClusterId"):
        decode(FetchRequest, data[:-3] + b"\x03\x02cc", 17)


def test_null_where_it_must_not_be_names_the_field() -> None:
    data = bytearray(encode_bytes(FetchRequest(), 17))
    topics_at = 4 + 4 + 4 + 1 + 4 + 4
    assert data[topics_at] == 1
    data[topics_at] = 0
    with pytest.raises(Malformed, match="Topics is null"):
        decode(FetchRequest, data, 17)
    with pytest.raises(ValueError, match="Topics is None"):
        encode(MetadataRequest(topics=None), 0)


def test_a_count_beyond_the_bytes_costs_nothing() -> None:
    data = bytearray(encode_bytes(MetadataRequest(topics=None), 1))
    data[:4] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(Malformed):
        decode(MetadataRequest, data, 1)
    data[:4] = (-2).to_bytes(4, "big", signed=True)
    with pytest.raises(Malformed, match="length -2"):
        decode(MetadataRequest, data, 1)


def test_a_version_outside_the_range_is_refused_both_ways() -> None:
    with pytest.raises(UnsupportedVersion, match="versions 4 to 18, not version 19"):
        encode(FetchRequest(), 19)
    with pytest.raises(UnsupportedVersion):
        decode(ProduceRequest, b"", 2)


def test_a_number_that_its_field_cannot_hold_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="FetchRequest v17 has a value that its field cannot hold"):
        encode(FetchRequest(max_wait_ms=2**31), 17)


def _produce(records: Any) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=1, records=records)
    return ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[data, data])])


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("size", [0, 10, 5000])
def test_record_sets_are_views_when_read_and_buffers_or_parts_when_written(version: int, size: int) -> None:
    raw = bytes(range(256)) * 20
    raw = raw[:size]
    expected = oracle.ours_bytes(encode(_produce(raw), version))
    for form in (bytearray(raw), memoryview(raw), [raw[: size // 2], memoryview(raw[size // 2 :])]):
        assert oracle.ours_bytes(encode(_produce(form), version)) == expected
    message = decode(ProduceRequest, expected, version)
    records = message.topic_data[0].partition_data[1].records
    assert isinstance(records, memoryview)
    assert records.obj is expected
    assert records == raw


def test_a_big_record_set_is_not_copied() -> None:
    raw = bytes(100_000)
    assert any(part is raw for part in encode(_produce(raw), 9))


class _File:
    path = "/f"

    def __init__(self, size: int = 100) -> None:
        self.size = size
        self.error: OSError | None = None

    def pread(self, size: int, position: int) -> bytes:
        if self.error is not None:
            raise self.error
        return bytes(n % 256 for n in range(position, min(position + size, self.size)))


def _fetched(*record_sets: list[Part]) -> FetchResponse:
    partitions = [FetchResponse.PartitionData(records=records) for records in record_sets]
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=partitions)])


def test_a_large_region_stays_a_region_and_counts_with_its_size() -> None:
    region = Region(_File(), 5, SMALL_REGIONS_BYTES)  # type: ignore[arg-type]  # only what a region needs
    parts = encode(_fetched([b"ab", region]), 17)
    assert parts[1:3] == [b"ab", region]
    size = uvarint(2 + SMALL_REGIONS_BYTES + 1)
    assert bytes(parts[0])[-len(size) :] == size  # type: ignore[arg-type]  # the joined bytes before the records


def test_small_regions_are_read_and_joined_until_a_message_has_enough_of_them() -> None:
    file: Any = _File(SMALL_REGIONS_BYTES)
    half = SMALL_REGIONS_BYTES // 2
    (whole,) = encode(_fetched([b"ab", Region(file, 5, 7)], [Region(file, 0, half)]), 17)
    assert b"\x0aab\x05\x06\x07\x08\x09\x0a\x0b" in whole  # type: ignore[operator]  # bytes
    assert records_view([b"ab", Region(file, 5, 7)]) == b"ab\x05\x06\x07\x08\x09\x0a\x0b"
    third = Region(file, 1, half)
    parts = encode(_fetched([Region(file, 0, half)], [Region(file, half, half)], [third]), 17)
    assert [part for part in parts if isinstance(part, Region)] == [third]
    assert records_size(parts[:1]) > SMALL_REGIONS_BYTES


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_region_that_cannot_be_read_is_left_to_the_one_who_sends_it(is_cut: bool) -> None:
    file: Any = _File(size=10)
    region = Region(file, 5, 7)
    if not is_cut:
        file.error = OSError(5, "Input/output error")
    assert region in encode(_fetched([region]), 17)


def test_structs_are_compared_by_fields_printed_with_them_and_not_hashable() -> None:
    one = FetchRequest.ForgottenTopic(topic="t", partitions=[1])
    assert one == FetchRequest.ForgottenTopic(topic="t", partitions=[1])
    assert one != FetchRequest.ForgottenTopic(topic="t")
    assert one != FetchRequest.FetchTopic(topic="t")
    assert "FetchRequest.ForgottenTopic(topic_id=" in repr(one)
    with pytest.raises(TypeError):
        hash(one)


def test_default_arrays_are_fresh_and_default_tagged_structs_refuse_changes() -> None:
    first = FetchRequest()
    first.topics.append(FetchRequest.FetchTopic())
    assert FetchRequest().topics == []
    assert first.replica_state == FetchRequest.ReplicaState()
    assert isinstance(first.replica_state, FetchRequest.ReplicaState)
    with pytest.raises(AttributeError, match="assign a new one"):
        first.replica_state.replica_id = 4
