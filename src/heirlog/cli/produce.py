"""`heirlog produce TOPIC < file`: each line becomes a record.

Lines are sent as they arrive: whatever one read of standard input brings makes one batch per partition, so that a file
goes in big batches and a person's line at once. Batches carry a producer id and sequence numbers (KIP-98), so that a
repeat after a lost answer is not stored twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.input_lines import InputLines
from heirlog.cli.interrupts import Interrupts
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, show_json
from heirlog.protocol.batch import NewRecord, advance_sequence, encode_batch
from heirlog.protocol.compression import CODEC_NAMES
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

REFUSED_BEFORE_THE_LOG = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Errors that prove that this try appended nothing. Leaders answer others after an append too: NOT_LEADER_OR_FOLLOWER
where another leader was elected meanwhile, KAFKA_STORAGE_ERROR where the disk failed."""
ACKNOWLEDGED = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
"""The second: an earlier try is stored and replicated."""


class Acks(StrEnum):
    ALL = "all"
    LEADER = "1"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def produce(
    topic: Annotated[str, typer.Argument(help="The topic; it must exist.")],
    acks: Annotated[Acks, typer.Option(help="all: every in-sync replica has it; 1: the leader has it.")] = Acks.ALL,
    key: Annotated[str | None, typer.Option(help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option(help="Text between key and value: the part of a line before it is the record's key.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="Default: by key; records without a key go to all partitions in turn.")
    ] = None,
    compression: Annotated[Compression, typer.Option()] = Compression.NONE,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Append each line of standard input to TOPIC as a record."""
    if key is not None and key_separator is not None:
        raise UsageError("--key and --key-separator exclude each other")
    fixed_key = key.encode() if key is not None else None
    separator = key_separator.encode() if key_separator else None
    with connected(bootstrap_server) as client, Interrupts() as interrupts:
        lines = InputLines(0, interrupts)
        with interrupts.allowed():
            codec = CODEC_NAMES.index(compression)
            writer = Writer(client, interrupts, topic, partition, -1 if acks is Acks.ALL else 1, codec)
        try:
            for some in lines:
                writer.append([split_key(line, separator) if separator else (fixed_key, line) for line in some])
        finally:
            # at every end: what follows a failure depends on what is stored
            _report(writer, lines.count, topic, as_json)


def _report(writer: Writer, read: int, topic: str, as_json: bool) -> None:
    """read: lines of standard input."""
    not_acknowledged = read - writer.count
    if as_json:
        show_json(
            {
                "topic": topic,
                "records": writer.count,
                "not_acknowledged": not_acknowledged,
                "may_be_stored": writer.may_be_stored,
                "partitions": writer.offsets,
            }
        )
        return
    sentence = f"{topic}: {writer.count} record{'s' if writer.count != 1 else ''} acknowledged"
    if not_acknowledged:
        sentence += f", {not_acknowledged} not acknowledged"
    if writer.may_be_stored:
        sentence += f" ({writer.may_be_stored} of them were sent and may be stored)"
    print(sentence, file=sys.stderr)


def split_key(line: bytes, separator: bytes) -> tuple[bytes | None, bytes]:
    key, found, value = line.partition(separator)
    return (key, value) if found else (None, line)


class Writer:
    """An idempotent producer for one topic; signals interrupt it only while it waits for an answer.

    count: acknowledged records. offsets: partition → [first, last] of those whose offset the leader has named.
    """

    def __init__(
        self,
        client: Client,
        interrupts: Interrupts,
        topic: str,
        partition: int | None,
        acks: int,
        compression: int,
    ) -> None:
        """Raises CommandError if the topic does not exist, KafkaError, OSError."""
        from heirlog.protocol.messages import InitProducerIdRequest

        self._client = client
        self._interrupts = interrupts
        self._topic = topic
        self._partition = partition
        self._acks = acks
        self._compression = compression
        self._partitions = partition_count(client, topic)
        if partition is not None and partition >= self._partitions:
            raise CommandError(f"{topic} has partitions 0 to {self._partitions - 1}, not {partition}")
        identity = client.send_to_any(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
        if identity.error_code:
            raise CommandError(f"the cluster gave no producer id: {error_code(identity.error_code).name}")
        self._producer = (identity.producer_id, identity.producer_epoch)
        self._sequences = [0] * self._partitions
        self._turn = 0
        self.count = 0
        self._sending = 0
        self._tries: list[int | None] = []
        """Of the batch that is not acknowledged, for each request that was made: its error code, None without one."""
        self.offsets: dict[int, list[int]] = {}

    @property
    def may_be_stored(self) -> int:
        """Records of the last batch, unless an error proves for each try that it appended nothing."""
        proven = all(code in REFUSED_BEFORE_THE_LOG for code in self._tries)
        return 0 if proven else self._sending

    def append(self, pairs: Sequence[tuple[bytes | None, bytes]]) -> None:
        """Returns once everything is acknowledged. Raises CommandError, KafkaError, OSError."""
        now_ms = time.time_ns() // 1_000_000
        batches: dict[int, list[NewRecord]] = {}
        for key, value in pairs:
            batches.setdefault(self._place(key), []).append((key, value, (), now_ms))
        for partition, records in batches.items():
            self._send(partition, records)
        self._turn += 1

    def _place(self, key: bytes | None) -> int:
        if self._partition is not None:
            return self._partition
        if key is not None:
            return (murmur2(key) & 0x7FFFFFFF) % self._partitions
        return self._turn % self._partitions

    def _send(self, partition: int, records: list[NewRecord]) -> None:
        producer_id, producer_epoch = self._producer
        batch = encode_batch(
            records,
            compression=self._compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._sequences[partition],
        )
        self._sending, self._tries = len(records), []
        with self._interrupts.allowed():
            answer = self._client.produce(self._topic, partition, batch, acks=self._acks, tries=self._tries)
        if answer.error_code not in ACKNOWLEDGED:
            code = error_code(answer.error_code)
            refused = f"{self._topic}-{partition} refused a batch of {len(records)} records: {code.name}"
            message = f", {answer.error_message}" if answer.error_message else ""
            raise CommandError(with_next_step(f"{refused}{message}", code))
        self._sending = 0
        self._sequences[partition] = advance_sequence(self._sequences[partition], len(records))
        self.count += len(records)
        if answer.base_offset >= 0:
            last = answer.base_offset + len(records) - 1
            self.offsets.setdefault(partition, [answer.base_offset, last])[1] = last


def partition_count(client: Client, topic: str) -> int:
    """Raises CommandError if there is no such topic."""
    found = client.metadata([topic]).topics[0]
    if found.error_code:
        raise CommandError(
            f"topic {topic} cannot be used ({error_code(found.error_code).name}); to create it: heirlog topics "
            f"create {topic}"
        )
    return len(found.partitions)


def murmur2(data: bytes) -> int:
    """Kafka's hash of keys (its default partitioner), so that a key goes where Java clients send it."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * m & mask
        word = (word ^ word >> 24) * m & mask
        value = value * m & mask ^ word
    if tail := data[whole:]:
        value = (value ^ int.from_bytes(tail, "little")) * m & mask
    value = (value ^ value >> 13) * m & mask
    return value ^ value >> 15
