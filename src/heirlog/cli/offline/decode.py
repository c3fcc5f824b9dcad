"""The files of a log directory as rows: what a name says a file is, and what is in it.

    .log                                 a batch per row, and, where asked or known, a row per record
    .index .timeindex .txnindex .snapshot    an entry per row
    .checkpoint                          a metadata snapshot, as a log of metadata records
    leader-epoch-checkpoint, *-offset-checkpoint, quorum-state,
    meta.properties, partition.metadata, .kafka_cleanshutdown, .heirlog_boot

Records of `__cluster_metadata`, `__consumer_offsets`, `__transaction_state` and `__share_group_state` are decoded
wherever they are. A file that was cut or damaged gives its rows up to there, and then `Stopped` says where and why.
Secrets that metadata may hold are not shown.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from heirlog.broker.groups.consumer.records import as_messages
from heirlog.broker.groups.records import StoredGroup, StoredOffset, read_record
from heirlog.broker.groups.share.records import ShareGroupRecord
from heirlog.broker.groups.share.records import as_messages as share_messages
from heirlog.broker.share_coordinator.records import read_messages
from heirlog.broker.transactions.records import read_value
from heirlog.broker.transactions.state import TransactionState
from heirlog.cli.offline.overlay import read_real
from heirlog.cli.render import text_or_base64
from heirlog.metadata.image import BROKER_RESOURCE
from heirlog.metadata.listener_security import is_secret
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from heirlog.protocol.batch import (
    HEADER_SIZE,
    BatchHeader,
    InvalidBatch,
    Record,
    crc_matches,
    decode_records,
    read_header,
)
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.metadata_record import decode_control, decode_record
from heirlog.protocol.primitives import Struct
from heirlog.protocol.records import ConfigRecord
from heirlog.protocol.transaction_marker import marker_of
from heirlog.protocol.types import METADATA_TOPIC, Uuid, uuid_text
from heirlog.storage.check_line import WrongChecksum, checked
from heirlog.storage.checkpoints import without_checksum
from heirlog.storage.index import OFFSET_ENTRY, TIME_ENTRY
from heirlog.storage.producers import NO_COORDINATOR_EPOCH, NO_TRANSACTION, ProducerStateManager
from heirlog.storage.transaction_index import TRANSACTION_ENTRY, AbortedTransaction

Row: TypeAlias = dict[str, Any]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
GROUP_TOPIC: Final = "__consumer_offsets"
DECODED_TOPICS: Final = (METADATA_TOPIC, GROUP_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
REDACTED: Final = "(redacted)"
SECRET_FIELDS: Final = frozenset({"salt", "stored_key", "server_key", "hmac"})
UUID_FIELDS: Final = frozenset({"directories", "log_dirs", "id"})
READABLE: Final = (
    ".log, .index, .timeindex, .txnindex and .snapshot of a partition, .checkpoint of the metadata quorum, "
    "leader-epoch-checkpoint, the offset checkpoints, quorum-state, meta.properties, partition.metadata, "
    ".kafka_cleanshutdown and .heirlog_boot"
)

# a segment, or what a truncation has discarded: with the leader epoch that gave it up
_LOG_NAME = re.compile(r"\d+(\.\d+)?\.log(\.swap|\.cleaned|\.deleted)?")
_SEGMENT_NAME = re.compile(r"\d+\.(index|timeindex|txnindex)(\.swap|\.cleaned|\.deleted)?")


class Stopped(Exception):
    """The rest of the file cannot be read; the message says why."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position


class UnknownFile(ValueError):
    """The name says nothing that is known here."""


class Decoder:
    """Of one file. `rows` raises Stopped where the file cannot be read on, and OSError."""

    def __init__(self, path: str, *, deep: bool = False, records_of: str | None = None, from_offset: int = 0) -> None:
        """deep: records as well as batches. records_of: the topic whose records these are, else by the folder's name.

        from_offset: leave out what lies wholly below it. Raises UnknownFile.
        """
        self.path = path
        self._name = os.path.basename(path)
        folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
        topic = records_of or folder.rpartition("-")[0]
        self._topic = METADATA_TOPIC if self._name.endswith(".checkpoint") else topic
        self._deep = deep or self._topic in DECODED_TOPICS
        self._from_offset = from_offset
        self._read = self._reader()

    def rows(self) -> Iterator[Row]:
        return self._read()

    def _reader(self) -> Callable[[], Iterator[Row]]:
        name = self._name
        if _LOG_NAME.fullmatch(name) or name.endswith((".checkpoint", ".checkpoint.part")):
            return self._batches
        if _SEGMENT_NAME.fullmatch(name):
            kind = name.split(".")[1]
            return {"index": self._index, "timeindex": self._time_index, "txnindex": self._transaction_index}[kind]
        if name.endswith(".snapshot"):
            return self._producers
        if name == "leader-epoch-checkpoint":
            return lambda: self._checkpoint("epoch", "start_offset")
        if name.endswith("-offset-checkpoint"):
            return lambda: self._checkpoint("topic", "partition", "offset")
        if name in ("quorum-state", ".kafka_cleanshutdown", ".heirlog_boot"):
            return self._json
        if name in ("meta.properties", "partition.metadata"):
            return self._properties
        raise UnknownFile(name)

    # logs

    def _batches(self) -> Iterator[Row]:
        size = os.path.getsize(self.path)
        position = 0
        while position < size:
            try:
                header = read_header(read_real(self.path, HEADER_SIZE, position))
            except InvalidBatch as error:
                raise Stopped(position, error.message) from error
            there = size - position
            if header.size > there:
                raise Stopped(position, f"a batch of {header.size} bytes, of which {there} are there")
            if header.last_offset >= self._from_offset:
                batch = read_real(self.path, header.size, position)
                yield batch_row(header, position, crc_matches(batch, 0, header))
                if self._deep:
                    yield from self._records(header, batch, position)
            position += header.size

    def _records(self, header: BatchHeader, batch: bytes, position: int) -> Iterator[Row]:
        try:
            records = decode_records(batch) if header.record_count else []
        except (KafkaError, ValueError) as error:
            yield {"type": "record", "base_offset": header.base_offset, "error": str(error)}
            return
        for record in records:
            if record.offset >= self._from_offset:
                yield {"type": "record", "offset": record.offset, **self._record(header, record)}

    def _record(self, header: BatchHeader, record: Record) -> Row:
        try:
            if header.is_control:
                return _control(record)
            if self._topic == METADATA_TOPIC:
                return _named(decode_record(record.value or b""))
            if self._topic == GROUP_TOPIC:
                return _group(record)
            if self._topic == TRANSACTIONS_TOPIC:
                return _transaction(record)
            if self._topic == SHARE_STATE_TOPIC:
                return _share_state(record)
        except (KafkaError, ValueError) as error:
            return {"error": str(error), **_payload(record)}
        return _payload(record)

    # indexes

    def _base_offset(self) -> int:
        return int(self._name.partition(".")[0])

    def _index(self) -> Iterator[Row]:
        base = self._base_offset()
        for relative, position in self._entries(OFFSET_ENTRY.size, OFFSET_ENTRY.unpack):
            if base + relative >= self._from_offset:
                yield {"type": "entry", "offset": base + relative, "position": position}

    def _time_index(self) -> Iterator[Row]:
        base = self._base_offset()
        for timestamp_ms, relative in self._entries(TIME_ENTRY.size, TIME_ENTRY.unpack):
            if base + relative >= self._from_offset:
                yield {"type": "entry", "timestamp_ms": timestamp_ms, "offset": base + relative}

    def _transaction_index(self) -> Iterator[Row]:
        for version, *fields in self._entries(TRANSACTION_ENTRY.size, TRANSACTION_ENTRY.unpack):
            aborted = AbortedTransaction(*fields)
            if aborted.last_offset >= self._from_offset:
                yield {"type": "aborted", "version": version, **aborted._asdict()}

    def _entries(self, size: int, unpack: Callable[[bytes], tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        data = self._whole()
        for position in range(0, len(data) - size + 1, size):
            yield unpack(data[position : position + size])
        torn = len(data) % size
        if torn:
            raise Stopped(len(data) - torn, f"{torn} bytes are no whole entry of {size}")

    # small files

    def _whole(self) -> bytes:
        return read_real(self.path, os.path.getsize(self.path), 0)

    def _producers(self) -> Iterator[Row]:
        states = ProducerStateManager.decode(self._whole())
        if states is None:
            raise Stopped(0, "the snapshot of producers is torn, of another version, or fails its CRC")
        for producer_id, state in sorted(states.producers.items()):
            row: Row = {"type": "producer", "producer_id": producer_id, "producer_epoch": state.epoch}
            if state.batches:
                last = state.batches[-1]
                row |= {
                    "last_sequence": last.last_sequence,
                    "last_offset": last.last_offset,
                    "offset_delta": last.offset_delta,
                }
            row["timestamp_ms"] = state.last_timestamp
            if state.coordinator_epoch != NO_COORDINATOR_EPOCH:
                row["coordinator_epoch"] = state.coordinator_epoch
            if state.transaction_start != NO_TRANSACTION:
                row["transaction_start_offset"] = state.transaction_start
            yield row

    def _checkpoint(self, *names: str) -> Iterator[Row]:
        text = self._text()
        shown = without_checksum(text) if text.endswith("\n") else text
        if shown is None:
            raise Stopped(0, "the checksum, which is the blanks after the last entry, does not match")
        lines = [*shown.split("\n"), ""] if text.endswith("\n") else shown.split("\n")
        if lines[0] != "0":
            raise Stopped(0, f"version {lines[0]!r} instead of '0'")
        position = len(lines[0]) + 1
        count = 0
        for line in lines[2:-1] if len(lines) > 1 else []:
            fields = line.split(" ")
            numbers = fields[-2:]
            if len(fields) != len(names) or not all(text.removeprefix("-").isdecimal() for text in numbers):
                raise Stopped(position + len(lines[1]) + 1, f"the line {line!r} is no entry")
            count += 1
            yield {"type": "entry", **dict(zip(names, [*fields[:-2], *map(int, numbers)], strict=True))}
        if len(lines) < 3 or lines[1] != str(count) or lines[-1]:
            announced = lines[1] if len(lines) > 1 else "nothing"
            raise Stopped(os.path.getsize(self.path), f"{count} whole entries, announced are {announced}")

    def _json(self) -> Iterator[Row]:
        try:
            found = json.loads(checked(self._whole()))
        except UnicodeDecodeError as error:
            raise Stopped(error.start, "no text") from error
        except WrongChecksum as error:
            raise Stopped(0, str(error)) from error
        except ValueError as error:
            raise Stopped(0, f"no JSON: {error}") from error
        yield {"type": "file", **(found if isinstance(found, dict) else {"value": found})}

    def _properties(self) -> Iterator[Row]:
        row: Row = {"type": "file"}
        for line in self._text().splitlines():
            name, separator, value = re.split(r"(=|: )", line, maxsplit=1) if re.search("=|: ", line) else ("", "", "")
            if separator and not line.startswith(("#", "!")):
                row[name.strip()] = value.strip()
        yield row

    def _text(self) -> str:
        try:
            return self._whole().decode()
        except UnicodeDecodeError as error:
            raise Stopped(error.start, "no text") from error


def batch_row(header: BatchHeader, position: int, crc_is_right: bool) -> Row:
    row: Row = {
        "type": "batch",
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "position": position,
        "size": header.size,
        "leader_epoch": header.leader_epoch,
        "timestamp_ms": header.max_timestamp,
        "timestamp_type": "LogAppendTime" if header.log_append_time else "CreateTime",
        "compression": CODECS[header.compression] if header.compression < len(CODECS) else header.compression,
        "control": header.is_control,
        "transactional": header.is_transactional,
        "crc": header.crc,
        "crc_is_right": crc_is_right,
    }
    if header.producer_id >= 0:
        row |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "last_sequence": header.last_sequence,
        }
    if header.delete_horizon_ms is not None:
        row["delete_horizon_ms"] = header.delete_horizon_ms
    return row


def _payload(record: Record) -> Row:
    return {
        "timestamp_ms": record.timestamp_ms,
        "key": text_or_base64(record.key),
        "value": text_or_base64(record.value),
        "headers": [[name, text_or_base64(value)] for name, value in record.headers],
    }


def _control(record: Record) -> Row:
    marker = marker_of(record)
    if marker is not None:
        return {
            "record": f"EndTransactionMarker ({'commit' if marker.commit else 'abort'})",
            "fields": {"coordinator_epoch": marker.coordinator_epoch},
        }
    return _named(decode_control(record.key or b"", record.value or b""))


def _named(message: Struct) -> Row:
    return {"record": message.KIND.__name__, "fields": _fields(message)}


def _group(record: Record) -> Row:
    stored = read_record(record.key, record.value)
    if isinstance(stored, StoredOffset):
        topic, partition = stored.partition
        row: Row = {"record": "OffsetCommit", "group": stored.group, "topic": topic, "partition": partition}
        fields = None if stored.value is None else stored.value._asdict()
        return {**row, "fields": fields and {name: _value(name, value) for name, value in fields.items()}}
    if isinstance(stored, StoredGroup):
        fields = None if stored.value is None else _fields(stored.value)
        return {"record": "GroupMetadata", "group": stored.group, "fields": fields}
    if stored is not None:
        key, value = share_messages(stored) if isinstance(stored, ShareGroupRecord) else as_messages(stored)
        names = {name: text for name, text in _fields(key).items() if name != "group_id"}
        fields = None if value is None else _fields(value)
        return {"record": type(key).__name__.removesuffix("Key"), "group": stored.group, **names, "fields": fields}
    return {"record": "unknown", **_payload(record)}


def _transaction(record: Record) -> Row:
    stored = read_value(record.key, record.value)
    if stored is None:
        return {"record": "unknown", **_payload(record)}
    row: Row = {"record": "TransactionMetadata", "transactional_id": stored.transactional_id}
    if stored.value is None:
        return {**row, "fields": None}
    state = stored.value.transaction_status
    row["state"] = TransactionState(state).text if state in set(TransactionState) else "unknown"
    return {**row, "fields": _fields(stored.value)}


def _share_state(record: Record) -> Row:
    stored = read_messages(record.key, record.value)
    if stored is None:
        return {"record": "unknown", **_payload(record)}
    key, value = stored
    names = {"group" if name == "group_id" else name: text for name, text in _fields(key).items()}
    fields = None if value is None else _fields(value)
    return {"record": type(key).__name__.removesuffix("Key"), **names, "fields": fields}


def _fields(struct: Struct) -> Row:
    fields = {name: _value(name, getattr(struct, name)) for name in struct.FIELDS}
    if isinstance(struct, ConfigRecord) and struct.resource_type == BROKER_RESOURCE and is_secret(struct.name):
        fields["value"] = REDACTED
    return fields


def _value(name: str, value: Any) -> Any:
    if name in SECRET_FIELDS:
        return REDACTED
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, list | tuple):
        return [_value(name, member) for member in value]
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        is_uuid = len(data) == 16 and (name in UUID_FIELDS or name.endswith("_id"))
        return uuid_text(Uuid(data)) if is_uuid else text_or_base64(data)
    return value


def as_line(row: Mapping[str, Any]) -> str:
    """A row for a person: `name: value` pairs, records indented below their batch."""
    pairs = (f"{name}: {_shown(value)}" for name, value in row.items() if name != "type")
    return ("  " if row["type"] == "record" else "") + " ".join(pairs)


def _shown(value: object) -> str:
    if isinstance(value, str) and value.isprintable():
        return value
    return json.dumps(value)
