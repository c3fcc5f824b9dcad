"""What a partition knows of a producer through its transactions, by the cases of Kafka's ProducerStateManagerTest."""

from __future__ import annotations

import pytest
from storage.logs import batch

from heirlog.protocol.batch import BatchHeader, read_header
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.transaction_marker import TransactionMarker, encode_marker
from heirlog.storage.errors import LogError
from heirlog.storage.producers import NO_TRANSACTION, ProducerStateEntry, ProducerStateManager
from heirlog.storage.transaction_index import AbortedTransaction
from heirlog.storage.verification import UNVERIFIED, VerificationGuard

PRODUCER = 7
COORDINATOR_EPOCH = 1
LATER_MS = 1_000_000


class Partition:
    """Batches and markers of some producers, one after another."""

    def __init__(self) -> None:
        self.states = ProducerStateManager()
        self.end_offset = 0

    def write(
        self,
        sequence: int,
        producer_id: int = PRODUCER,
        *,
        epoch: int = 0,
        transactional: bool = True,
        guard: VerificationGuard | None = UNVERIFIED,
    ) -> int:
        """The offset of the record. Raises LogError."""
        header = self._header(sequence, producer_id, epoch, transactional)
        assert self.states.check(header, guard=guard) is None
        self.states.update(header)
        self.end_offset += 1
        return self.end_offset - 1

    def _header(self, sequence: int, producer_id: int, epoch: int, transactional: bool) -> BatchHeader:
        return read_header(
            batch(
                "v",
                base_offset=self.end_offset,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=transactional,
            )
        )

    def end(
        self,
        producer_id: int = PRODUCER,
        *,
        epoch: int = 0,
        commit: bool = True,
        coordinator_epoch: int = COORDINATOR_EPOCH,
        timestamp_ms: int = 0,
        version: int = 0,
    ) -> AbortedTransaction | None:
        """version: transaction.version, by which the coordinator has ended the transaction. Raises LogError."""
        marker = TransactionMarker(commit, coordinator_epoch)
        self.states.check_marker(marker, producer_id, epoch, version)
        header = read_header(encode_marker(marker, producer_id, epoch, self.end_offset, 0, timestamp_ms))
        self.end_offset += 1
        return self.states.end_transaction(marker, header)

    def reload(self) -> None:
        """As after a restart, from a snapshot of now."""
        again = ProducerStateManager.decode(self.states.encode())
        assert again is not None
        self.states = again

    def unstable(self) -> int | None:
        """The first unstable offset once everything is replicated."""
        self.states.transactions.high_watermark_moved(self.end_offset)
        return self.states.transactions.first_unstable_offset

    def state(self, producer_id: int = PRODUCER) -> ProducerStateEntry:
        return self.states.producers[producer_id]


@pytest.fixture
def partition() -> Partition:
    return Partition()


def refused(refusal: pytest.ExceptionInfo[LogError]) -> ErrorCode:
    return refusal.value.code


def test_a_marker_alone_fences_and_lets_its_epoch_begin_at_zero(partition: Partition) -> None:
    partition.end(epoch=2)
    with pytest.raises(LogError) as older:
        partition.write(0, epoch=0)
    with pytest.raises(LogError) as gap:
        partition.write(17, epoch=2)
    assert (refused(older), refused(gap)) == (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    )
    partition.write(0, epoch=2)
    assert partition.state().batches[-1].last_sequence == 0


def test_a_marker_of_a_higher_epoch_forgets_the_batches_of_the_former_one(partition: Partition) -> None:
    partition.write(0)
    partition.write(1)
    partition.end(epoch=1, commit=False)
    assert (partition.state().epoch, list(partition.state().batches)) == (1, [])
    for epoch in (1, 2):
        with pytest.raises(LogError) as gap:
            partition.write(2, epoch=epoch)
        assert refused(gap) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.write(0, epoch=1)


def test_a_marker_of_the_same_epoch_keeps_the_batches(partition: Partition) -> None:
    first = partition.write(0)
    partition.write(1)
    assert partition.state().transaction_start == first
    assert partition.end() is None
    assert (partition.state().transaction_start, partition.state().batches[-1].last_sequence) == (NO_TRANSACTION, 1)
    partition.write(2)


def test_an_open_transaction_is_open_after_a_restart(partition: Partition) -> None:
    first = partition.write(0)
    partition.write(1)
    partition.reload()
    assert (partition.state().transaction_start, partition.unstable()) == (first, first)
    partition.write(2)
    assert partition.end(commit=False) == AbortedTransaction(PRODUCER, first, 3, 4)


def test_an_ended_transaction_is_ended_after_a_restart(partition: Partition) -> None:
    partition.write(0)
    partition.write(1)
    partition.end(commit=False)
    partition.reload()
    assert (partition.state().transaction_start, partition.unstable()) == (NO_TRANSACTION, None)
    partition.write(2)


def test_a_marker_alone_is_known_after_a_restart_with_its_time_and_its_coordinator(partition: Partition) -> None:
    partition.end(timestamp_ms=50, coordinator_epoch=3)
    partition.reload()
    assert (partition.state().last_timestamp, partition.state().transaction_start) == (50, NO_TRANSACTION)
    with pytest.raises(LogError) as former:
        partition.end(coordinator_epoch=2)
    assert refused(former) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_may_be_repeated_by_its_coordinator_and_by_a_later_one(partition: Partition) -> None:
    partition.write(0)
    for coordinator_epoch in (1, 1, 2):
        partition.end(coordinator_epoch=coordinator_epoch)
    with pytest.raises(LogError) as former:
        partition.end(coordinator_epoch=1)
    assert refused(former) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_at_version_2_a_marker_raises_the_epoch_and_may_be_repeated(partition: Partition) -> None:
    partition.write(0)
    with pytest.raises(LogError) as same:
        partition.end(epoch=0, version=2)
    assert refused(same) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.end(epoch=1, commit=False, version=2) == AbortedTransaction(PRODUCER, 0, 1, 2)
    assert partition.end(epoch=1, commit=False, version=2) is None, "a repetition"
    partition.write(0, epoch=1)
    with pytest.raises(LogError) as late:
        partition.end(epoch=1, commit=False, version=2)
    assert refused(late) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.unstable() == 3


def test_a_producer_with_an_open_transaction_does_not_expire(partition: Partition) -> None:
    partition.write(0)
    partition.write(0, PRODUCER + 1, transactional=False)
    assert partition.states.remove_expired(LATER_MS, 100) == 1
    assert partition.unstable() == 0
    partition.end(timestamp_ms=LATER_MS)
    assert partition.states.remove_expired(LATER_MS + 99, 100) == 0, "the marker is not old"
    assert partition.states.remove_expired(LATER_MS + 100, 100) == 1


def test_markers_without_a_transaction_complete_nothing(partition: Partition) -> None:
    first = partition.write(0)
    partition.end()
    assert [partition.end(commit=commit) for commit in (True, False)] == [None, None]
    second = partition.write(1)
    aborted = partition.end(commit=False)
    assert aborted is not None and (first, aborted.first_offset) == (0, second)
    assert partition.end(commit=False) is None
    third = partition.write(2)
    assert partition.unstable() == third


def test_an_aborted_transaction_is_stored_with_the_start_of_the_next_one_that_is_open(partition: Partition) -> None:
    one, two, three = (partition.write(0, producer_id) for producer_id in (1, 2, 3))
    assert partition.end(1, commit=False) == AbortedTransaction(1, one, 3, two)
    assert partition.unstable() == two
    assert partition.end(3, commit=False) == AbortedTransaction(3, three, 4, two)
    assert partition.unstable() == two
    assert partition.end(2, commit=False) == AbortedTransaction(2, two, 5, 6)
    assert partition.unstable() is None


def test_a_guard_keeps_the_lowest_sequence_of_the_highest_epoch(partition: Partition) -> None:
    def ask(epoch: int, sequence: int) -> tuple[VerificationGuard, int, int]:
        guard = partition.states.guards.guard(PRODUCER, epoch, sequence, raises_epoch=False, wall_ms=0)
        return guard, guard.epoch, guard.lowest_sequence

    guard, *first = ask(0, 1)
    assert first == [0, 1]
    assert ask(0, 0) == (guard, 0, 0)
    assert ask(1, 2) == (guard, 1, 2)
    assert ask(0, 0) == (guard, 1, 2), "an older epoch changes nothing"


def test_a_guard_is_used_up_by_the_batch_that_it_was_made_for(partition: Partition) -> None:
    guard = partition.states.guards.guard(PRODUCER, 0, 0, raises_epoch=False, wall_ms=0)
    partition.write(0, guard=guard)
    assert partition.states.guards.get(PRODUCER) is None
    partition.end()
    with pytest.raises(LogError) as late:
        partition.write(1, guard=guard)
    assert refused(late) is ErrorCode.INVALID_TXN_STATE


def test_the_guard_of_the_next_transaction_survives_the_marker_of_the_one_before_at_version_2(
    partition: Partition,
) -> None:
    """A producer that has its next epoch already may write while the markers are on their way (KAFKA-18654)."""
    partition.write(0)
    guard = partition.states.guards.guard(PRODUCER, 1, 0, raises_epoch=True, wall_ms=0)
    partition.end(epoch=1, version=2)
    assert partition.states.guards.get(PRODUCER) is guard
    partition.write(0, epoch=1, guard=guard)
    partition.states.guards.guard(PRODUCER, 1, 1, raises_epoch=True, wall_ms=0)
    partition.end(epoch=2, version=2)
    assert partition.states.guards.get(PRODUCER) is None, "that of the transaction which it ends does not"


def test_at_version_1_an_unknown_producer_may_begin_a_transaction_anywhere(partition: Partition) -> None:
    """What was known of it may have expired; at version 2 each transaction begins at 0."""
    of_version_1 = partition.states.guards.guard(PRODUCER, 3, 5, raises_epoch=False, wall_ms=0)
    partition.write(5, epoch=3, guard=of_version_1)
    of_version_2 = partition.states.guards.guard(PRODUCER + 1, 3, 5, raises_epoch=True, wall_ms=0)
    with pytest.raises(LogError) as gap:
        partition.write(5, PRODUCER + 1, epoch=3, guard=of_version_2)
    assert refused(gap) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_no_batch_overtakes_one_that_is_being_verified(partition: Partition) -> None:
    guard = partition.states.guards.guard(PRODUCER, 0, 0, raises_epoch=False, wall_ms=0)
    with pytest.raises(LogError) as overtaking:
        partition.write(4, guard=guard)
    assert refused(overtaking) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.states.guards.get(PRODUCER) is guard
    partition.write(0, guard=guard)


def test_a_guard_expires_when_producers_do(partition: Partition) -> None:
    guard = partition.states.guards.guard(PRODUCER, 0, 0, raises_epoch=False, wall_ms=1000)
    partition.states.remove_expired(1050, 100)
    assert partition.states.guards.get(PRODUCER) is guard, "to be asked for does not renew it"
    partition.states.remove_expired(1101, 100)
    assert partition.states.guards.get(PRODUCER) is None


def test_offsets_of_groups_need_no_sequence(partition: Partition) -> None:
    """Each batch of a group coordinator begins at sequence 0."""
    for _ in range(2):
        header = partition._header(0, PRODUCER, 0, transactional=True)
        partition.states.check_offsets(header, UNVERIFIED)
        partition.states.update(header)
        partition.end_offset += 1
    assert partition.state().transaction_start == 0
