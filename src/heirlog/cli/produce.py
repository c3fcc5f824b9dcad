"""`heirlog produce TOPIC < file`: each line becomes a record; with FILE arguments, each file.

Lines (`line_records.py`) are sent as they arrive: whatever one read of standard input brings makes one batch per
partition, so that a file goes in big batches and a person's line at once. Batches carry a producer id and sequence
numbers (KIP-98), so that a repeat after a lost answer is not stored twice. With `--transactional-id` they go in
transactions (`produce_transactions.py`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli import complete
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.input_files import LinesOfFiles, WholeFiles
from heirlog.cli.input_lines import InputLines
from heirlog.cli.interrupts import Interrupts
from heirlog.cli.line_records import InputFormat, LineRecord, parser_of
from heirlog.cli.names import given_once
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.places import Places
from heirlog.cli.progress import counted
from heirlog.cli.record_format import unescaped
from heirlog.cli.render import Json, show_json
from heirlog.cli.waiting import LOOKED_EVERY_S, SAID_AFTER_S, SAID_EVERY_S, Saying, Unanswered
from heirlog.protocol.batch import NewRecord, advance_sequence, encode_batch
from heirlog.protocol.compression import CODEC_NAMES
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.cli.produce_transactions import TransactionalWriter

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
    ALL_AS_NUMBER = "-1"

    @property
    def required(self) -> int:
        """As in a request."""
        return 1 if self is Acks.LEADER else -1


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def produce(
    topic_argument: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC", help="The topic; it must exist.", show_default=False, autocompletion=complete.topics
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Each becomes a record, instead of the lines of standard input."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", help="The same in Kafka's words.", autocompletion=complete.topics),
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", "-l", help="Each line of the files becomes a record.")] = False,
    acks: Annotated[
        Acks, typer.Option(help="all (or -1): every in-sync replica has it; 1: the leader has it.")
    ] = Acks.ALL,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            help="Text between key and value: the part of a line before it is the record's key. \\t is a tab, as in "
            "consume --format.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="Of every record; NAME alone: null. May be repeated."
        ),
    ] = None,
    tombstones: Annotated[
        bool, typer.Option("--tombstones", "-Z", help="An empty value is sent as null, which deletes its key.")
    ] = False,
    input_format: Annotated[
        InputFormat,
        typer.Option(
            help="json: each line is an object as heirlog consume --json prints them. Its partition counts if it has "
            "no offset: with one, it says where the record was read."
        ),
    ] = InputFormat.LINES,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition", "-p", min=0, help="Default: by key; records without a key go to all partitions in turn."
        ),
    ] = None,
    compression: Annotated[Compression, typer.Option("--compression", "-z")] = Compression.NONE,
    transactional_id: Annotated[
        str | None,
        typer.Option(
            "--transactional-id",
            help="Write in transactions of this id: consumers with read_committed see each whole or not at all.",
        ),
    ] = None,
    transaction_size: Annotated[
        int | None,
        typer.Option(
            "--transaction-size", min=1, help="Records of a transaction. Without it, one transaction for all lines."
        ),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Append each line of standard input, or each file, to TOPIC as a record."""
    if topic is not None and topic_argument is not None:
        # with --topic all arguments are files
        files = [Path(topic_argument), *(files or ())]
        topic_argument = None
    topic = given_once("topic", "TOPIC", topic_argument, "--topic", topic)
    if lines and not files:
        raise UsageError("--lines is for files: name them after the topic")
    if transaction_size is not None and transactional_id is None:
        raise UsageError("--transaction-size needs --transactional-id")
    if transactional_id is not None and acks is Acks.LEADER:
        raise UsageError("--acks 1 and --transactional-id exclude each other: transactions need --acks all")
    if transactional_id == "":
        raise UsageError("--transactional-id must not be empty")
    if key is not None and key_separator is not None:
        raise UsageError("--key and --key-separator exclude each other")
    parse = parser_of(
        input_format,
        key=key.encode() if key is not None else None,
        key_separator=unescaped(key_separator) if key_separator else None,
        headers=header or (),
        tombstones=tombstones,
    )
    with connected(bootstrap_server, says_waiting=False) as client, Interrupts() as interrupts:
        given = _input(files or (), lines or input_format is InputFormat.JSON, interrupts)
        with interrupts.allowed():
            codec = CODEC_NAMES.index(compression)
            places = Places(client, topic, partition)
            writer: Writer | TransactionalWriter
            if transactional_id is None:
                writer = Writer(client, interrupts, places, acks.required, codec)
            else:
                from heirlog.cli.produce_transactions import TransactionalWriter

                writer = TransactionalWriter(client, interrupts, places, transactional_id, transaction_size, codec)
        is_typed = not files and sys.stdin.isatty()
        if is_typed and sys.stderr.isatty():
            print(f"each line becomes a record of {topic}; Ctrl-D ends", file=sys.stderr, flush=True)
        try:
            # a person who types lines sees them; a bar would be drawn over what is typed
            with (
                counted(f"{topic}: acknowledged", as_json or is_typed) as show,
                Saying(writer.unanswered.said, LOOKED_EVERY_S),
            ):
                for some in given:
                    records: list[LineRecord] = []
                    try:
                        records.extend(map(places.checked, map(parse, some)))
                    except CommandError as error:
                        raise CommandError(f"{given.place(len(some) - len(records))}: {error}") from error
                    finally:
                        # also what is before a line that is not a record
                        if records:
                            with _named(given):
                                writer.append(records)
                    show(writer.count)
                writer.finish()
        finally:
            # at every end: what follows a failure depends on what is stored
            writer.close()
            writer.report(given.count, as_json)


@contextmanager
def _named(given: InputLines | WholeFiles | LinesOfFiles) -> Iterator[None]:
    """A record that is too large is one of a file, which the error names."""
    try:
        yield
    except CommandError as error:
        if not isinstance(given, WholeFiles) or ErrorCode.MESSAGE_TOO_LARGE.name not in str(error):
            raise
        raise CommandError(f"{given.largest}: {error}") from error


def _input(files: Sequence[Path], by_line: bool, interrupts: Interrupts) -> InputLines | WholeFiles | LinesOfFiles:
    """Raises CommandError."""
    if not files:
        return InputLines(0, interrupts)
    return LinesOfFiles(files, interrupts) if by_line else WholeFiles(files, interrupts)


class Writer:
    """An idempotent producer for one topic; signals interrupt it only while it waits for an answer.

    count: acknowledged records. offsets: partition → [first, last] of those whose offset the leader has named.
    """

    def __init__(self, client: Client, interrupts: Interrupts, places: Places, acks: int, compression: int) -> None:
        """Raises CommandError, KafkaError, OSError."""
        from heirlog.protocol.messages import InitProducerIdRequest

        self._client = client
        self._interrupts = interrupts
        self._places = places
        self._topic = places.topic
        self._acks = acks
        self._compression = compression
        identity = client.send_to_any(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
        if identity.error_code:
            raise CommandError(f"the cluster gave no producer id: {error_code(identity.error_code).name}")
        self._producer = (identity.producer_id, identity.producer_epoch)
        self._sequences = [0] * places.count
        self.count = 0
        self._sending = 0
        self._tries: list[int | None] = []
        """Of the batch that is not acknowledged, for each request that was made: its error code, None without one."""
        self.offsets: dict[int, list[int]] = {}
        self._sending_to = 0
        self.unanswered = Unanswered(self._waits_for, SAID_AFTER_S)

    def _waits_for(self) -> str | None:
        """None while a first answer may only be slow."""
        place = f"{self._topic}-{self._sending_to}"
        refused = [code for code in self._tries if code is not None]
        if refused:
            return f"{place} refuses records now ({error_code(refused[-1]).name}): trying again"
        if len(self._tries) != 1:
            return f"no leader of {place} answers: trying again"
        asked_at_s = self.unanswered.asked_at_s
        is_slow = asked_at_s is not None and time.monotonic() - asked_at_s >= SAID_EVERY_S
        return f"the leader of {place} has not answered yet: waiting" if is_slow else None

    @property
    def may_be_stored(self) -> int:
        """Records of the last batch, unless an error proves for each try that it appended nothing."""
        proven = all(code in REFUSED_BEFORE_THE_LOG for code in self._tries)
        return 0 if proven else self._sending

    def append(self, lines: Sequence[LineRecord]) -> None:
        """Returns once everything is acknowledged. Raises CommandError, KafkaError, OSError."""
        for partition, records in self._places.batches(lines).items():
            self._send(partition, records)

    def finish(self) -> None:
        """At the end of the input: everything is acknowledged already."""

    def close(self) -> None:
        """After a failure too: nothing is left open."""

    def report(self, read: int, as_json: bool) -> None:
        """read: lines or files of the input."""
        not_acknowledged = read - self.count
        if as_json:
            show_json(
                {
                    "topic": self._topic,
                    "records": self.count,
                    "not_acknowledged": not_acknowledged,
                    "may_be_stored": self.may_be_stored,
                    "partitions": self.offsets,
                }
            )
            return
        sentence = f"{self._topic}: {self.count} record{'s' if self.count != 1 else ''} acknowledged"
        if not_acknowledged:
            sentence += f", {not_acknowledged} not acknowledged"
        if self.may_be_stored:
            sentence += f" ({self.may_be_stored} of them were sent and may be stored)"
        print(sentence, file=sys.stderr)

    def _send(self, partition: int, records: list[NewRecord]) -> None:
        producer_id, producer_epoch = self._producer
        batch = encode_batch(
            records,
            compression=self._compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._sequences[partition],
        )
        self._sending, self._tries, self._sending_to = len(records), [], partition
        with self.unanswered, self._interrupts.allowed():
            answer = self._client.produce(self._topic, partition, batch, acks=self._acks, tries=self._tries)
        if answer.error_code not in ACKNOWLEDGED:
            code, plural = error_code(answer.error_code), "s" if len(records) != 1 else ""
            refused = f"{self._topic}-{partition} refused a batch of {len(records)} record{plural}: {code.name}"
            message = f", {answer.error_message}" if answer.error_message else ""
            sentence = with_next_step(f"{refused}{message}", code)
            raise CommandError(sentence.replace("topic TOPIC ", f"topic {self._topic} "))
        self._sending = 0
        self._sequences[partition] = advance_sequence(self._sequences[partition], len(records))
        self.count += len(records)
        if answer.base_offset >= 0:
            last = answer.base_offset + len(records) - 1
            self.offsets.setdefault(partition, [answer.base_offset, last])[1] = last
