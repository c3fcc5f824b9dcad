"""Which batch of a transactional id was committed last: an offset in the transaction, and a note in another group.

    group ID               offset in the transaction: the name of the batch. Deleted after offsets.retention.minutes
    group ID-committing    committed after that, before the transaction is: name and time. Kept for KEPT_MS

    of a batch that comes again
    ID has its name                                  it was committed: it is not written again
    ID has another name, or none ever                it was not committed: it is written
    ID has no entry, and ID-committing has its name  committed, unless the transaction was aborted at the last moment:
                                                     not known once the entry may have expired, so it is refused

The second group is needed because a transaction cannot say how long its offsets are kept, and because the coordinator
forgets an id as well (transactional.id.expiration.ms). Without it a query that was killed between the two commits, and
was started again after a week, wrote its last batch twice. What each kill leaves is in docs/internals/transactions.md.

Source: KIP-98; the retention of OffsetCommit 2 to 4.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from heirlog.blocking import Client, CommittedOffset, TopicPartition
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse
from heirlog.protocol.types import CoordinatorType

COMMITTED = "CompleteCommit"
"""The state of a transactional id whose last transaction was committed."""
_OPEN = "Ongoing"
KEPT_MS = 20 * 365 * 24 * 3_600_000
MAY_HAVE_EXPIRED_MS = 3_600_000
"""Brokers keep offsets for a week by default. So soon after a commit a missing entry was never there."""
_WAS_COMMITTED = "committed"


class LedgerLost(Exception):
    """It cannot be known whether this batch was committed before. Nothing of it was written now."""

    @classmethod
    def of(cls, transactional_id: str) -> LedgerLost:
        return cls(
            f"the batch is not written: it was about to be committed with transactional id {transactional_id} before, "
            f"and the offset of group {transactional_id} that would say whether it was is gone (it expired after "
            "offsets.retention.minutes, or the group or the topic was deleted). If this batch is not in the topic yet, "
            "continue with another kafka.transactional.id"
        )


@dataclass(frozen=True, slots=True)
class KnownBatches:
    """What is known before a transaction begins.

    committed: names of the last batches that were committed. unknown: the one of which nothing can be known.
    """

    committed: frozenset[str]
    unknown: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class _Note:
    """was_committed: the coordinator said so of the last transaction, at a time when the ledger had no entry."""

    at_ms: int
    name: str
    place: TopicPartition
    was_committed: bool = False


def read(client: Client, transactional_id: str) -> KnownBatches:
    """Call it before InitProducerId, after which the coordinator does not say how the last transaction ended. Read the
    entries again behind it: what is unknown is so only if there are none. Raises LedgerLost for an id whose ledger an
    older heirlog wrote, KafkaError, OSError."""
    last = described(client, transactional_id)
    # the entries of an open transaction would be waited for, until its timeout: InitProducerId aborts it
    entries = {} if last is not None and last.transaction_state == _OPEN else client.committed(transactional_id)
    if entries:
        return KnownBatches(frozenset(entry.metadata for entry in entries.values()))
    is_committed = last is not None and last.transaction_state == COMMITTED
    found = _newest_note(client, transactional_id)
    if found is None:
        if is_committed:
            raise LedgerLost.of(transactional_id)
        return KnownBatches(frozenset())
    is_unknown = found.was_committed or _now_ms() - found.at_ms >= MAY_HAVE_EXPIRED_MS
    if is_committed and not is_unknown:
        # the coordinator will have forgotten it when the next run asks. The time stays: it says which note is newest
        _write(client, transactional_id, replace(found, was_committed=True))
    return KnownBatches(frozenset(), found.name if is_committed or is_unknown else None)


def note(client: Client, transactional_id: str, place: TopicPartition, name: str) -> None:
    """This batch is about to be committed, and its entry is in the transaction. place: a partition that exists; with
    its topic the note is deleted. Raises KafkaError, OSError."""
    _write(client, transactional_id, _Note(_now_ms(), name, place))


def described(client: Client, transactional_id: str) -> DescribeTransactionsResponse.TransactionState | None:
    """None for an id that the coordinator does not know. Raises KafkaError, OSError."""
    response: DescribeTransactionsResponse = client.send_to_coordinator(
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        error_code=lambda answer: int(answer.transaction_states[0].error_code),
        key_type=CoordinatorType.TRANSACTION,
    )
    found = response.transaction_states[0]
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if found.error_code:
        raise KafkaError(error_code(found.error_code), f"transactional id {transactional_id} cannot be described")
    return found


def _write(client: Client, transactional_id: str, note: _Note) -> None:
    flag = f",{_WAS_COMMITTED}" if note.was_committed else ""
    entry = CommittedOffset(0, metadata=f"{note.at_ms}{flag} {note.name}")
    client.commit(_committing(transactional_id), {note.place: entry}, retention_ms=KEPT_MS)


def _newest_note(client: Client, transactional_id: str) -> _Note | None:
    """A query with a column of topics leaves one in several of them."""
    entries = client.committed(_committing(transactional_id)).items()
    notes = (_parsed(entry.metadata, place) for place, entry in entries)
    return max((note for note in notes if note is not None), default=None)


def _parsed(metadata: str, place: TopicPartition) -> _Note | None:
    head, _, name = metadata.partition(" ")
    at_ms, _, flag = head.partition(",")
    return _Note(int(at_ms), name, place, flag == _WAS_COMMITTED) if at_ms.isdecimal() else None


def _committing(transactional_id: str) -> str:
    return f"{transactional_id}-committing"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
