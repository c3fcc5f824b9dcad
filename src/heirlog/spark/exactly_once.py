"""A batch of the sink as one Kafka transaction, whichever tasks, drivers and brokers are killed on the way.

    driver   initialize: fence and settle earlier runs --> read the ledger --> opened, committed
    tasks    claim --> write in the driver's transaction, each partition from one task
    driver   all tasks done --> ledger entry into the transaction --> note of the batch --> commit

One transaction for all tasks, because only a transaction is atomic: with one for each task, a driver that dies between
two commits leaves half a batch, and only two-phase commit (KIP-939) would keep the other half from being aborted by its
timeout. All tasks write with the driver's producer id and epoch, so a partition must have one writer in a batch:
sequence numbers are counted for each partition, and two writers would count the same ones. `arranged.py` arranges
that; the driver checks it before it commits.

The ledger is an offset of the group with the name of the transactional id. Its metadata name the batch, and it is
committed with the records. So a batch that Spark runs again, because it did not learn of the commit, is recognised.
The driver reads the ledger after `initialize`, and by then every earlier transaction is decided and visible. The ledger
expires as offsets do; `ledger.py` says how a batch of which nothing is known any more is recognised and refused.

Only one attempt of each task may write, as the batches of two attempts would be taken for each other's repetitions.
Spark starts another attempt after a failure, for a slow task (speculation), and after a lost shuffle file while the
first one may still run. So an attempt claims its task before it writes: it initialises the transactional id of the task
and must be the first to do so in this batch. The coordinator's epochs make that a compare-and-set, and the timeout of
that id, which nothing else uses, tells batches apart: it is CLAIM_MS plus the driver's epoch. An attempt that comes
second fails. Spark then fails the job, the driver aborts, and the batch runs again as a whole.

Source: KIP-98 (fencing by epochs), KIP-447 (stable offsets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from heirlog.blocking import Client, CommittedOffset, OpenTransaction, TopicPartition
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from heirlog.protocol.types import CoordinatorType
from heirlog.spark import clients, ledger
from heirlog.spark.ledger import KnownBatches, LedgerLost, described
from heirlog.spark.sink_options import ExactlyOnce, SinkOptions

CLAIM_MS = 10_000
"""Plus an epoch, at most 32767, it stays far below the default of transaction.max.timeout.ms."""
RUN_AGAIN = "The batch is aborted and has to run again"
"""In the message of a batch that was aborted because a task had several attempts."""


class BatchAborted(Exception):
    """Nothing of this batch is visible to consumers with read_committed."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A batch's transaction, as the driver sends it to the tasks."""

    opened: OpenTransaction
    known: KnownBatches


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    records: int
    partitions: frozenset[TopicPartition] = frozenset()
    opened: OpenTransaction | None = field(default=None, repr=False)
    batch: str | None = None
    """The name of the batch."""


def begin(options: SinkOptions, settings: ExactlyOnce) -> Begun:
    """Raises LedgerLost, KafkaError, OSError."""
    with clients.lend(options.properties) as client:
        is_named = settings.is_stream or settings.batch_id is not None
        before = ledger.read(client, settings.transactional_id) if is_named else KnownBatches(frozenset())
        producer = client.transactional_producer(
            settings.transactional_id, transaction_timeout_ms=settings.transaction_timeout_ms
        )
        producer.initialize()
        producer.begin()
        entries = client.committed(settings.transactional_id)
        committed = frozenset(entry.metadata for entry in entries.values())
        # what was decided meanwhile has an entry
        known = KnownBatches(committed, None if committed else before.unknown)
        refuse_unknown(known, settings.batch_id, settings.transactional_id)
        return Begun(producer.opened, known)


def refuse_unknown(known: KnownBatches, name: str | None, transactional_id: str) -> None:
    """Raises LedgerLost."""
    if name is not None and name == known.unknown:
        raise LedgerLost.of(transactional_id)


def batch_name(settings: ExactlyOnce) -> str | None:
    """How this batch is called in the ledger; None: it has no name, so it is not recognised when it runs again."""
    if settings.batch_id is not None:
        return settings.batch_id
    if not settings.is_stream:
        return None
    context = TaskContext.get()
    assert context is not None, "only tasks write"
    query, number = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
    if query is None or number is None:
        raise BatchAborted("Spark does not name the query and the batch of this task, so exactlyOnce cannot work")
    return f"{query}/{number}"


def claim(client: Client, opened: OpenTransaction) -> None:
    """Make this attempt the one that writes for its task. Raises BatchAborted if another one was first."""
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    name = f"{opened.transactional_id}-task-{task}"
    timeout_ms = CLAIM_MS + opened.producer.epoch
    before = described(client, name)
    is_first = before is None or before.transaction_timeout_ms != timeout_ms
    if is_first:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        got: InitProducerIdResponse = client.send_to_coordinator(
            name, request, error_code=lambda answer: int(answer.error_code), key_type=CoordinatorType.TRANSACTION
        )
        if got.error_code:
            code = error_code(got.error_code)
            why = ": the brokers' transaction.max.timeout.ms is below 43 seconds; raise it"
            why = why if code is ErrorCode.INVALID_TRANSACTION_TIMEOUT else ""
            raise KafkaError(code, f"transactional id {name}: the task cannot be claimed{why}")
        # a rotated producer id starts at 0 again
        next_epoch = 0 if before is None or got.producer_id != before.producer_id else before.producer_epoch + 1
        is_first = got.producer_epoch == next_epoch
    if not is_first:
        raise BatchAborted(
            f"task {task} has written in this batch before: an earlier attempt failed (Spark's log says why) or still "
            f"runs (spark.speculation must be false). {RUN_AGAIN}: start the query or the write again"
        )


def commit(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Commit what the tasks wrote, all of it or nothing. Raises BatchAborted, KafkaError, OSError.

    After a KafkaError or OSError the outcome may be unknown; the next run of the batch knows it from the ledger.
    """
    written = [message for message in messages if isinstance(message, Written)]
    counts = Counter(partition for message in written for partition in message.partitions)
    if not counts:
        return
    shared = sorted(f"{topic}-{index}" for (topic, index), count in counts.items() if count > 1)
    (opened,) = {message.opened for message in written if message.opened is not None}
    if shared or len(written) < len(messages):
        abort(options, messages)
        raise BatchAborted(
            f"several tasks wrote to {', '.join(shared[:5])}: with exactlyOnce each partition needs one task, which "
            "heirlog.spark.by_partition(rows, **options) arranges"
            if shared
            else "not every task of the batch has finished"
        )
    place, name = (min(counts)[0], 0), written[0].batch
    # also without a name: an id that has committed has an entry
    entry = {place: CommittedOffset(0, metadata=name or "")}
    with clients.lend(options.properties) as client:
        producer = client.transactional_producer(opened.transactional_id, opened=opened)
        # fails if the transaction was aborted meanwhile, and then there must be no note of it
        producer.send_offsets(opened.transactional_id, entry)
        if name is not None:
            ledger.note(client, opened.transactional_id, place, name)
        producer.commit()


def abort(options: SinkOptions, messages: Sequence[WriterCommitMessage | None], begun: Begun | None = None) -> None:
    """Abort, as far as the transaction is known. Otherwise the next run does it, or the coordinator in time."""
    known = [message.opened for message in messages if isinstance(message, Written) and message.opened is not None]
    opened = begun.opened if begun is not None else next(iter(known), None)
    if opened is None:
        return
    with clients.lend(options.properties) as client:
        producer = client.transactional_producer(opened.transactional_id, opened=opened)
        try:
            producer.abort()
        except (KafkaError, OSError):
            # fenced: it is aborted; no answer: as above
            return
