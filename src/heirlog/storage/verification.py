"""Guards of batches that begin a transaction in a partition, while their leader asks the coordinator (KIP-890).

    the first batch of a transaction arrives --> guard --> the coordinator says yes --> appended with that guard
                                                   |
                            a marker or another batch of the producer was appended meanwhile: the guard is gone,
                            and the batch is refused (INVALID_TXN_STATE)

Without this a batch that was delayed until after the marker of its transaction would begin a transaction without an
end. A guard is the permission of one verification: the coordinator's answer says how things were when it was asked.

A second batch that arrives while the first is verified shares the guard, and the lowest sequence of them is remembered:
if the later one was verified first, it must not be appended before the earlier one. A guard of a producer that raises
its epoch with each transaction (transaction.version 2) survives the marker of the transaction before, which may arrive
while the next transaction is verified already (KAFKA-18654).

Guards are in memory only, and of one leadership: a new leader makes its own.
"""

from __future__ import annotations

from heirlog.protocol.batch import BatchHeader
from heirlog.protocol.errors import ErrorCode
from heirlog.storage.errors import LogError


class VerificationGuard:
    """Compared by identity: a later guard of the same producer is another permission."""

    __slots__ = ("created_ms", "epoch", "lowest_sequence", "raises_epoch")

    def __init__(self, epoch: int, lowest_sequence: int, raises_epoch: bool, created_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        self.raises_epoch = raises_epoch
        """Whether the producer speaks transaction.version 2."""
        self.created_ms = created_ms
        """Wall time."""


UNVERIFIED = VerificationGuard(-1, 0, False, 0)
"""For appends that no coordinator has to confirm: `transaction.partition.verification.enable` is false, or a group
coordinator writes offsets.
"""


def is_current_guard(guard: VerificationGuard, held: VerificationGuard | None) -> bool:
    """Guard 25: a verification is void once a marker or another batch of the producer was appended (KIP-890).

    Without it a batch that was delayed until after the marker begins a transaction without an end.
    """
    return held is guard


class VerificationGuards:
    """The guards of one partition, one per producer id."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, VerificationGuard] = {}

    def get(self, producer_id: int) -> VerificationGuard | None:
        return self._guards.get(producer_id)

    def guard(
        self, producer_id: int, epoch: int, first_sequence: int, *, raises_epoch: bool, wall_ms: int
    ) -> VerificationGuard:
        """A new guard, or the current one of this epoch or an older one."""
        known = self._guards.get(producer_id)
        if known is None:
            known = self._guards[producer_id] = VerificationGuard(epoch, first_sequence, raises_epoch, wall_ms)
        elif epoch > known.epoch:
            known.epoch, known.lowest_sequence, known.raises_epoch = epoch, first_sequence, raises_epoch
        elif epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, first_sequence)
        return known

    def check(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """Whether a batch may begin a transaction with this guard. Raises LogError."""
        if guard is None or not is_current_guard(guard, self._guards.get(header.producer_id)):
            raise LogError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id}: the coordinator has not confirmed that this partition takes part in a "
                f"transaction of epoch {header.producer_epoch}, or it has ended meanwhile",
            )
        self.check_order(header)

    def check_order(self, header: BatchHeader) -> None:
        """No batch is appended before an earlier one that is being verified. Raises LogError."""
        guard = self._guards.get(header.producer_id)
        if guard is not None and header.base_sequence > guard.lowest_sequence:
            raise LogError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {header.base_sequence} comes "
                f"before {guard.lowest_sequence}, which is being verified",
            )

    def appended(self, producer_id: int) -> None:
        """A transactional batch of the producer is in the log."""
        if self._guards:
            self._guards.pop(producer_id, None)

    def ended(self, producer_id: int, marker_epoch: int) -> None:
        """A marker of the producer is in the log."""
        guard = self._guards.get(producer_id)
        if guard is not None and not (guard.raises_epoch and guard.epoch == marker_epoch):
            del self._guards[producer_id]

    def expire(self, oldest_ms: int) -> None:
        """Forget guards from before `oldest_ms`, wall time."""
        self._guards = {key: guard for key, guard in self._guards.items() if guard.created_ms > oldest_ms}

    def clear(self) -> None:
        """Another leadership begins."""
        self._guards.clear()
