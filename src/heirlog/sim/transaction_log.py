"""What the committed records of `__transaction_state` say, and the rules that they obey.

    X1    a decision is never changed: the states of an id follow each other as in `broker/transactions/state.py`
    X11   the epochs of a producer id never fall, no two ids have the same producer id, and no producer gets epoch 32767
    X14   a transaction is complete only once each of its partitions has its marker, below the high watermark

`heirlog.sim.transaction_checker` brings records in the order in which they are committed, and the markers that it finds
in the partitions. A producer id that the log has lost (an election on a lossy basis) is judged no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.transactions.records import StoredTransaction
from heirlog.broker.transactions.state import LAST_PRODUCER_EPOCH, Transaction, TransactionState

Producer = tuple[int, int]
"""Producer id and epoch."""
Broken = tuple[str, str]
"""A rule, and how it is broken."""
Exempt = Callable[[TopicPartition], bool]

_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
_BEFORE = {
    _EMPTY: (None, _EMPTY, *_COMPLETE),
    _ONGOING: (_EMPTY, _ONGOING, *_COMPLETE),
    TransactionState.PREPARE_COMMIT: (_ONGOING,),
    TransactionState.PREPARE_ABORT: (_ONGOING,),
    TransactionState.COMPLETE_COMMIT: (TransactionState.PREPARE_COMMIT,),
    TransactionState.COMPLETE_ABORT: (TransactionState.PREPARE_ABORT,),
}
"""Per state, those that may be before it. None: the id is unknown or deleted."""


@dataclass(slots=True)
class KnownId:
    """One transactional id, as the committed records say."""

    transaction: Transaction
    unmarked: set[TopicPartition] = field(default_factory=set)
    """Partitions of the decided transaction whose marker is not below the high watermark yet."""


class TransactionLog:
    def __init__(self) -> None:
        self.ids: dict[str, KnownId] = {}
        self.added: dict[Producer, set[TopicPartition]] = {}
        """Per producer, the partitions that it has ever added."""
        self.held: dict[str, set[Producer]] = {}
        """Per transactional id, the producers that it had outside of an end of a transaction."""
        self._decided: dict[Producer, list[tuple[bool, frozenset[TopicPartition]]]] = {}
        """Per producer of a Prepare record, in their order: whether it commits, and the partitions."""
        self._unseen: set[tuple[Producer, TopicPartition]] = set()
        """Markers of completed transactions that were not seen, from partitions that were exempt."""
        self._id_of: dict[int, str] = {}
        self._index_of: dict[str, int] = {}
        """The partition of `__transaction_state` with the records of each id."""
        self._lossy: set[int] = set()
        self.aged: dict[str, int] = {}
        """Epochs that the run has given to ids in their coordinators' memories only, before the next record."""
        self.in_doubt: set[int] = set()
        """Partitions whose coordinators may give an id a fresh producer id at any time."""

    def lost(self, index: int) -> None:
        """Records of this partition are gone: nothing is judged of its ids any more."""
        self._lossy.add(index)

    def is_judged(self, producer_id: int) -> bool:
        """Whether the log knows all of the producer."""
        name = self._id_of.get(producer_id)
        return not self._lossy if name is None else self._index_of[name] not in self._lossy

    def id_of(self, producer_id: int) -> str | None:
        return self._id_of.get(producer_id)

    def apply(self, index: int, stored: StoredTransaction, exempt: Exempt) -> Broken | None:
        """A record of this partition is committed. The rule that it breaks, and how. exempt: whether a partition may
        have lost its markers.
        """
        name, now = stored
        self._index_of[name] = index
        before = self.ids.get(name)
        if now is None:
            self.ids.pop(name, None)
            if before is not None and not before.transaction.state.may_expire and index not in self._lossy:
                return "X1", f"{name} is deleted in state {before.transaction.state.text}"
            return None
        broken = None if index in self._lossy else self._judge(name, before, now, exempt)
        self._id_of.setdefault(now.producer_id, name)
        unmarked = set(now.partitions) if now.state in _PREPARED else set()
        self.ids[name] = KnownId(now, unmarked)
        producer = (now.producer_id, now.producer_epoch)
        if before is not None and now.state in _COMPLETE:
            decided = (before.transaction.producer_id, before.transaction.producer_epoch)
            self._unseen.update((decided, partition) for partition in before.unmarked)
        if now.state is _ONGOING:
            self.added.setdefault(producer, set()).update(now.partitions)
        elif now.state in _PREPARED:
            commit = now.state is TransactionState.PREPARE_COMMIT
            self._decided.setdefault(producer, []).append((commit, now.partitions))
        if now.state not in _PREPARED:
            self.held.setdefault(name, set()).add(producer)
        return broken

    def _judge(self, name: str, before: KnownId | None, now: Transaction, exempt: Exempt) -> Broken | None:
        state = None if before is None else before.transaction.state
        is_doubt = now.producer_epoch == LAST_PRODUCER_EPOCH and self._index_of[name] in self.in_doubt
        allowed = (
            state in _BEFORE[now.state]
            or _is_abort_of_nothing(before, now)
            # a coordinator writes its doubts where no election records them
            or (is_doubt and state is now.state and state in _COMPLETE)
        )
        if not allowed:
            former = "nothing" if state is None else state.text
            return "X1", f"{name}: {now.state.text} of producer {_who(now)} follows {former}"
        if self._id_of.get(now.producer_id, name) != name:
            return "X11", f"producer id {now.producer_id} is of {self._id_of[now.producer_id]} and of {name}"
        if now.state in (_EMPTY, _ONGOING) and now.producer_epoch > LAST_PRODUCER_EPOCH:
            return "X11", f"{name}: a producer has epoch {now.producer_epoch}, which only fences"
        if before is None:
            return None
        former_id = before.transaction.producer_id
        if now.producer_id == former_id and now.producer_epoch < before.transaction.producer_epoch:
            return "X11", f"{name}: producer {_who(before.transaction)} becomes {_who(now)}"
        is_early = before.transaction.producer_epoch < LAST_PRODUCER_EPOCH
        if now.producer_id != former_id and is_early and self._index_of[name] not in self.in_doubt:
            return "X11", f"{name}: {_who(before.transaction)} becomes {_who(now)} before its epochs are used up"
        left = {partition for partition in before.unmarked if not exempt(partition)}
        if now.state in _COMPLETE and left:
            return "X14", f"{name}: {now.state.text} of producer {_who(now)}, and {sorted(left)} have no marker"
        return None

    def marked(self, producer: Producer, partition: TopicPartition, *, commit: bool, ends_open: bool) -> Broken | None:
        """A marker is below the high watermark of its partition. ends_open: it ended a transaction there. X2."""
        if not self.is_judged(producer[0]):
            return None
        what = f"a marker ({'commit' if commit else 'abort'}) of producer {producer} in {partition}"
        decided = self._decided.get(producer, [])
        if not any(outcome is commit and partition in partitions for outcome, partitions in decided):
            return "X2", f"{what}: no such decision is committed"
        known = self.ids.get(self._id_of[producer[0]])
        if known is None:
            return None
        now = known.transaction
        if now.state in _PREPARED and (now.producer_id, now.producer_epoch) == producer:
            known.unmarked.discard(partition)
        if (producer, partition) in self._unseen:
            self._unseen.discard((producer, partition))
        elif ends_open and now.state is _ONGOING and (now.producer_id, now.producer_epoch) == producer:
            return "X2", f"{what} ends a transaction that is still open"
        return None


def _is_abort_of_nothing(before: KnownId | None, now: Transaction) -> bool:
    """Of clients that raise the epoch with each transaction; values of version 0 do not say which clients those are."""
    return (
        before is not None
        and now.state is TransactionState.PREPARE_ABORT
        and not now.partitions
        and before.transaction.state in (_EMPTY, *_COMPLETE)
        and now.producer_epoch == before.transaction.producer_epoch + 1
    )


def _who(now: Transaction) -> str:
    return f"{now.producer_id}, epoch {now.producer_epoch}"
