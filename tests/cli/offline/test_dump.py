"""Every kind of file, whole and torn; anything at all under each of their names."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heirlog.broker.groups.consumer.records import CurrentMember, GroupEpoch, write_consumer_record
from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.records import group_record, offset_record
from heirlog.broker.share_coordinator.batches import StateBatch
from heirlog.broker.share_coordinator.records import write_record
from heirlog.broker.share_coordinator.state import SharePartitionKey, ShareRecord, ShareState, ShareUpdate
from heirlog.broker.share_partitions.delivery_window import RecordState
from heirlog.cli.offline.decode import Decoder, Stopped
from heirlog.protocol.batch import encode_batch, read_header
from heirlog.protocol.metadata_record import encode_record
from heirlog.protocol.primitives import encode_bytes
from heirlog.protocol.records import (
    ConfigRecord,
    GroupMetadataValue,
    TopicRecord,
    TransactionLogKey,
    TransactionLogValue,
)
from heirlog.protocol.types import Uuid
from heirlog.raft.quorum_state import QuorumState
from heirlog.raft.quorum_state import encode as encode_quorum_state
from heirlog.raft.snapshot import encode as encode_snapshot
from heirlog.storage.checkpoints import render_checkpoint, render_offsets
from heirlog.storage.index import OffsetIndex, TimeIndex
from heirlog.storage.producers import ProducerStateManager
from heirlog.storage.transaction_index import TRANSACTION_ENTRY

NOW_MS = int(time.time() * 1000)
TOPIC = TopicRecord(name="orders", topic_id=b"t" * 16)


def batch(*values: bytes, base_offset: int = 0) -> bytes:
    records = [(b"k", value, (("h", b"\xff"),), NOW_MS) for value in values]
    return bytes(encode_batch(records, base_offset, 3, producer_id=9, producer_epoch=1, base_sequence=0))


def rows(heirlog: Heirlog, path: Path, *options: str, code: int = 0) -> list[dict[str, Any]]:
    outcome = heirlog("dump", "--json", str(path), *options)
    assert outcome.code == code, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


def put(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    data = batch(b"a", b"b") + batch(b"c", base_offset=2)
    return put(tmp_path / "orders-0", "00000000000000000000.log", data)


def test_a_segment_is_its_batches_and_records_when_asked(heirlog: Heirlog, segment: Path) -> None:
    first, second = rows(heirlog, segment)
    assert (first["type"], first["base_offset"], first["last_offset"], first["count"]) == ("batch", 0, 1, 2)
    assert (first["leader_epoch"], first["producer_id"], first["crc_is_right"]) == (3, 9, True)
    assert second["position"] == first["size"] and second["compression"] == "none"
    deep = rows(heirlog, segment, "--deep")
    assert [row["type"] for row in deep] == ["batch", "record", "record", "batch", "record"]
    assert [row["value"] for row in deep if row["type"] == "record"] == ["a", "b", "c"]
    assert deep[1]["headers"] == [["h", {"base64": "/w=="}]]
    assert [row["offset"] for row in rows(heirlog, segment, "--deep", "--offset", "1") if "offset" in row] == [1, 2]
    assert [row["base_offset"] for row in rows(heirlog, segment, "--offset", "2")] == [2]
    assert len(rows(heirlog, segment, "--deep", "--max", "2")) == 2


def test_a_torn_tail_is_named_and_what_is_before_it_printed(heirlog: Heirlog, segment: Path) -> None:
    os.truncate(segment, segment.stat().st_size - 1)
    first, stopped = rows(heirlog, segment, code=1)
    assert first["base_offset"] == 0
    assert (stopped["type"], stopped["position"]) == ("stopped", first["size"])
    received = heirlog("dump", str(segment))
    assert received.code == 1 and f"stopped at byte {first['size']}: a batch of" in received.out


def test_a_wrong_crc_is_said_and_passed_over(heirlog: Heirlog, segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[62] ^= 1
    segment.write_bytes(data)
    assert [row["crc_is_right"] for row in rows(heirlog, segment, code=1)] == [False, True]
    assert "it is damaged" in heirlog("dump", str(segment)).err


def test_metadata_is_decoded_by_name_and_secrets_are_not(heirlog: Heirlog, tmp_path: Path) -> None:
    config = ConfigRecord(resource_type=4, resource_name="1", name="log.level", value="DEBUG")
    data = bytes(encode_batch([(None, encode_record(record, 0), (), NOW_MS) for record in (TOPIC, config)], 7, 1))
    path = put(tmp_path / "__cluster_metadata-0", "00000000000000000007.log", data)
    _, topic, stored = rows(heirlog, path)
    assert (topic["offset"], topic["record"]) == (7, "TopicRecord")
    assert topic["fields"] == {"name": "orders", "topic_id": "dHR0dHR0dHR0dHR0dHR0dA"}
    assert stored["fields"]["value"] == "DEBUG"
    elsewhere = put(tmp_path / "copies", "00000000000000000007.log", data)
    assert len(rows(heirlog, elsewhere)) == 1
    assert rows(heirlog, elsewhere, "--cluster-metadata-decoder")[1]["record"] == "TopicRecord"


@pytest.mark.parametrize(
    ("name", "is_shown"),
    [
        ("ssl.keystore.password", False),
        ("listener.name.clients.ssl.keystore.password", False),
        ("listener.name.clients.ssl.keystore.key", False),
        ("listener.name.clients.scram-sha-512.sasl.jaas.config", False),
        ("listener.name.other.oauthbearer.sasl.jaas.config", False),
        ("a.plug-in.of.kafka.token", False),
        ("listener.name.clients.ssl.keystore.location", True),
        ("max.connections", True),
    ],
)
def test_no_password_in_metadata_that_kafka_wrote_is_shown(
    heirlog: Heirlog, tmp_path: Path, name: str, is_shown: bool
) -> None:
    config = ConfigRecord(resource_type=4, resource_name="1", name=name, value="hunter2")
    data = bytes(encode_batch([(None, encode_record(config, 0), (), NOW_MS)], 7, 1))
    path = put(tmp_path / "__cluster_metadata-0", "00000000000000000007.log", data)
    received = heirlog("dump", "--deep", "--json", str(path))
    assert received.code == 0 and ("hunter2" in received.out) == is_shown


def test_offsets_and_groups_are_decoded(heirlog: Heirlog, tmp_path: Path) -> None:
    stored = [
        offset_record("g", ("orders", 1), OffsetAndMetadata(42, 3, "m", NOW_MS, topic_id=bytes(15) + b"\1")),
        offset_record("g", ("orders", 1), None),
        group_record("g", GroupMetadataValue(protocol_type="consumer", generation=5)),
        (b"\x00\x63?", b"v"),
        write_consumer_record(GroupEpoch("g", 7)),
        write_consumer_record(CurrentMember("g", "m", None)),
    ]
    data = bytes(encode_batch([(key, value, (), NOW_MS) for key, value in stored]))
    path = put(tmp_path / "__consumer_offsets-7", "00000000000000000000.log", data)
    _, offset, forgotten, group, unknown, epoch, member = rows(heirlog, path)
    assert (offset["record"], offset["group"], offset["topic"], offset["partition"]) == (
        "OffsetCommit",
        "g",
        "orders",
        1,
    )
    assert (offset["fields"]["offset"], offset["fields"]["topic_id"]) == (42, "AAAAAAAAAAAAAAAAAAAAAQ")
    assert forgotten["fields"] is None
    assert group["record"] == "GroupMetadata" and group["fields"]["generation"] == 5
    assert unknown["record"] == "unknown"
    assert (epoch["record"], epoch["group"], epoch["fields"]["epoch"]) == ("ConsumerGroupMetadata", "g", 7)
    assert (member["record"], member["member_id"], member["fields"]) == (
        "ConsumerGroupCurrentMemberAssignment",
        "m",
        None,
    )


def test_transactions_are_decoded_in_their_topic_and_elsewhere_on_request(heirlog: Heirlog, tmp_path: Path) -> None:
    value = TransactionLogValue(producer_id=4000, producer_epoch=2, transaction_status=1, transaction_partitions=None)
    key = b"\0\0" + encode_bytes(TransactionLogKey(transactional_id="app"), 0)
    stored = [(key, b"\0\1" + encode_bytes(value, 1), (), NOW_MS), (key, None, (), NOW_MS)]
    data = bytes(encode_batch(stored))
    _, ongoing, forgotten = rows(heirlog, put(tmp_path / "__transaction_state-7", "00000000000000000000.log", data))
    assert (ongoing["record"], ongoing["transactional_id"], ongoing["state"]) == (
        "TransactionMetadata",
        "app",
        "Ongoing",
    )
    assert ongoing["fields"]["producer_id"] == 4000
    assert forgotten["fields"] is None
    elsewhere = put(tmp_path / "copy-7", "00000000000000000000.log", data)
    assert rows(heirlog, elsewhere, "--transaction-log-decoder")[1]["state"] == "Ongoing"
    refused = heirlog("dump", "--transaction-log-decoder", "--offsets-decoder", str(elsewhere))
    assert refused.code == 2 and "exclude each other" in refused.err


def test_states_of_share_groups_are_decoded_in_their_topic_and_elsewhere_on_request(
    heirlog: Heirlog, tmp_path: Path
) -> None:
    key = SharePartitionKey("g", Uuid(b"t" * 16), 1)
    batches = (StateBatch(40, 49, RecordState.ACKNOWLEDGED, 2),)
    stored = [
        write_record(ShareRecord(key, ShareState(1, 2, 3, 40, 0, batches, NOW_MS, NOW_MS))),
        write_record(ShareRecord(key, ShareUpdate(1, 3, 50, 10, ()))),
        write_record(ShareRecord(key, None)),
        (b"\x00\x63?", b"v"),
    ]
    data = bytes(encode_batch([(key, value, (), NOW_MS) for key, value in stored]))
    path = put(tmp_path / "__share_group_state-7", "00000000000000000000.log", data)
    _, snapshot, update, deleted, unknown = rows(heirlog, path)
    where = {"group": "g", "topic_id": "dHR0dHR0dHR0dHR0dHR0dA", "partition": 1}
    assert (snapshot["record"], update["record"]) == ("ShareSnapshot", "ShareUpdate")
    assert snapshot.items() >= where.items() and update.items() >= where.items()
    assert snapshot["fields"]["state_batches"] == [
        {"first_offset": 40, "last_offset": 49, "delivery_state": 2, "delivery_count": 2}
    ]
    assert (update["fields"]["start_offset"], update["fields"]["delivery_complete_count"]) == (50, 10)
    assert (deleted["record"], deleted["fields"], unknown["record"]) == ("ShareSnapshot", None, "unknown")
    elsewhere = put(tmp_path / "copy-7", "00000000000000000000.log", data)
    assert rows(heirlog, elsewhere, "--share-group-state-decoder")[2]["record"] == "ShareUpdate"


def whole_files() -> dict[str, bytes]:
    offsets, times = OffsetIndex(100), TimeIndex(100)
    offsets.append(105, 4200)
    times.maybe_append(NOW_MS, 105)
    states = ProducerStateManager()
    states.update(read_header(encode_batch([(b"k", b"v", (), NOW_MS)], 90, 3, 0, 7, 2, 0, transactional=True)))
    aborted = TRANSACTION_ENTRY.pack(0, 7, 90, 105, 106)
    return {
        "00000000000000000100.index": offsets.encode(),
        "00000000000000000100.timeindex": times.encode(),
        "00000000000000000100.txnindex": aborted,
        "00000000000000000100.snapshot": states.encode(),
        "00000000000000000008-0000000001.checkpoint": b"".join(encode_snapshot([TOPIC], 1, NOW_MS, ())),
        "leader-epoch-checkpoint": render_checkpoint([(0, 0), (4, 17)]),
        "replication-offset-checkpoint": render_offsets({("orders", 0): 12}),
        "quorum-state": encode_quorum_state(QuorumState(1, 5)),
        "meta.properties": b"version=1\nnode.id=1\ncluster.id=c\n",
        "partition.metadata": b"version: 0\ntopic_id: x\n",
        ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":7}',
        ".heirlog_boot": b'{"version":0,"bootId":"a","mayLackRecords":["x-0"]}',
        "00000000000000000100.log": batch(b"a"),
    }


def test_the_other_files_are_rows_too(heirlog: Heirlog, tmp_path: Path) -> None:
    found = {name: rows(heirlog, put(tmp_path / "x-0", name, data)) for name, data in whole_files().items()}
    assert found["00000000000000000100.index"][0]["offset"] == 105
    assert found["00000000000000000100.timeindex"][0]["timestamp_ms"] == NOW_MS
    (aborted,) = found["00000000000000000100.txnindex"]
    assert (aborted["producer_id"], aborted["first_offset"], aborted["last_offset"]) == (7, 90, 105)
    assert found["00000000000000000100.snapshot"][0]["transaction_start_offset"] == 90
    assert found["00000000000000000008-0000000001.checkpoint"][3]["record"] == "TopicRecord"
    assert [row["start_offset"] for row in found["leader-epoch-checkpoint"]] == [0, 17]
    assert found["replication-offset-checkpoint"][0]["offset"] == 12
    assert found["quorum-state"][0]["leaderEpoch"] == 5
    assert found["meta.properties"][0]["cluster.id"] == "c"
    assert found["partition.metadata"][0]["topic_id"] == "x"
    assert found[".kafka_cleanshutdown"][0]["brokerEpoch"] == 7
    assert found[".heirlog_boot"][0]["mayLackRecords"] == ["x-0"]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_whatever_is_in_a_file_the_end_is_orderly(tmp_path: Path, data: st.DataObject) -> None:
    files = whole_files()
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    path = put(tmp_path / "__consumer_offsets-0", name, bytes(content))
    try:
        for row in Decoder(str(path), deep=True).rows():
            json.dumps(row)
    except Stopped as stopped:
        assert 0 <= stopped.position <= len(content)


def test_an_unknown_file_is_refused_in_one_sentence(heirlog: Heirlog, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    refused = heirlog("dump", str(tmp_path / "notes.txt"))
    assert refused.code == 2 and ".timeindex" in refused.err and refused.err.count("\n") == 1
    assert heirlog("dump", str(tmp_path / "nowhere.log")).code == 1
    folder = heirlog("dump", str(tmp_path))
    assert folder.code == 2 and "is a folder" in folder.err
