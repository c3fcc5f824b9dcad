"""The rules of `__transaction_state`: each is broken once."""

from __future__ import annotations

import pytest

from heirlog.broker.transactions.records import StoredTransaction
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.sim.transaction_log import TransactionLog

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
X0 = ("x", 0)
LAST = 32766


def apply(
    log: TransactionLog,
    *states: TransactionState,
    name: str = "id",
    producer: tuple[int, int] = (7, 0),
    exempt: bool = False,
    client_version: int = 0,
) -> str | None:
    """The rule that the last of these records breaks; the others break none."""
    broken = None
    for state in states:
        assert broken is None
        transaction = Transaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            timeout_ms=1,
            state=state,
            partitions=frozenset({X0}) if state in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT) else frozenset(),
            client_version=client_version,
        )
        broken = log.apply(0, StoredTransaction(name, transaction), lambda _: exempt)
    return None if broken is None else broken[0]


@pytest.mark.parametrize(
    "states",
    [
        (EMPTY, PREPARE_COMMIT),
        (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT),
        (EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_ABORT),
        (EMPTY, ONGOING, PREPARE_COMMIT, ONGOING),
        (EMPTY, ONGOING, COMPLETE_COMMIT),
        (EMPTY, ONGOING, EMPTY),
        (ONGOING,),
    ],
)
def test_a_decision_is_not_changed(states: tuple[TransactionState, ...]) -> None:
    assert apply(TransactionLog(), *states) == "X1"


def test_a_transaction_is_complete_once_every_partition_has_its_marker() -> None:
    for is_marked, exempt, rule in ((True, False, None), (False, False, "X14"), (False, True, None)):
        log = TransactionLog()
        assert apply(log, EMPTY, ONGOING, PREPARE_COMMIT) is None
        if is_marked:
            assert log.marked((7, 0), X0, commit=True, ends_open=True) is None
        assert apply(log, COMPLETE_COMMIT, exempt=exempt) == rule


def test_a_marker_that_was_not_seen_in_time_may_be_seen_during_the_next_transaction() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, ONGOING, exempt=True) is None
    assert log.marked((7, 0), X0, commit=True, ends_open=True) is None
    second = log.marked((7, 0), X0, commit=True, ends_open=True)
    assert second is not None and second[0] == "X2", "it is seen once"


def test_an_open_transaction_is_not_deleted() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, ONGOING) is None
    broken = log.apply(0, StoredTransaction("id", None), lambda _: False)
    assert broken is not None
    assert broken[0] == "X1"


def test_epochs_do_not_fall_and_an_id_has_its_producer_ids_for_itself() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, producer=(7, 3)) is None
    assert apply(log, EMPTY, producer=(7, 2)) == "X11"
    assert apply(log, EMPTY, producer=(7, 0), name="other") == "X11"
    assert apply(log, EMPTY, producer=(8, 0)) == "X11", "its epochs are not used up"
    assert apply(TransactionLog(), EMPTY, producer=(7, 32767)) == "X11"


def test_a_producer_gets_another_id_once_its_epochs_are_used_up() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, producer=(7, 32766)) is None
    assert apply(log, EMPTY, producer=(8, 0)) is None


def test_a_coordinator_in_doubt_uses_up_the_epochs_of_an_id_that_is_idle() -> None:
    for in_doubt, epoch, rule in ((True, LAST, None), (False, LAST, "X1"), (True, 1, "X1")):
        log = TransactionLog()
        assert apply(log, EMPTY, ONGOING, PREPARE_ABORT) is None
        assert log.marked((7, 0), X0, commit=False, ends_open=True) is None
        assert apply(log, COMPLETE_ABORT) is None
        if in_doubt:
            log.in_doubt.add(0)
        assert apply(log, COMPLETE_ABORT, producer=(7, epoch)) == rule


def test_a_marker_repeats_a_decision_that_is_committed() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, ONGOING) is None
    for commit in (True, False):
        assert log.marked((7, 0), X0, commit=commit, ends_open=True)
    assert apply(log, PREPARE_COMMIT) is None
    assert log.marked((7, 0), X0, commit=False, ends_open=True)
    assert log.marked((7, 1), X0, commit=True, ends_open=True)
    assert log.marked((7, 0), ("x", 1), commit=True, ends_open=True)
    assert log.marked((7, 0), X0, commit=True, ends_open=True) is None


def test_a_late_marker_must_not_end_the_next_transaction() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, ONGOING, PREPARE_COMMIT) is None
    assert log.marked((7, 0), X0, commit=True, ends_open=True) is None
    assert apply(log, COMPLETE_COMMIT, ONGOING) is None
    assert log.marked((7, 0), X0, commit=True, ends_open=False) is None
    assert log.marked((7, 0), X0, commit=True, ends_open=True)


def test_nothing_is_judged_of_ids_whose_records_are_lost() -> None:
    log = TransactionLog()
    assert apply(log, EMPTY, ONGOING) is None
    log.lost(0)
    assert apply(log, COMPLETE_COMMIT) is None
    assert not log.is_judged(7)
    assert log.marked((7, 0), X0, commit=False, ends_open=True) is None
