"""What a reader of committed records may see, and what a producer that was replaced may still do."""

from __future__ import annotations

from heirlog.sim.history import History, InitializedProducer, KnownLoss, Observed, TransactionAttempt
from heirlog.sim.history_checks import transactions

READER, AUDITOR = "committed-1", "auditor"
PARTITIONS = {"x-0", "x-1"}


def history(*attempts: TransactionAttempt, read: dict[int, str] | None = None) -> History:
    """read: by both readers of committed records, with the partitions."""
    found = History(lambda: 0, transactions=list(attempts), read_committed={READER, AUDITOR})
    for offset, (value, partition) in enumerate((read or {}).items()):
        found.observed += [Observed(partition, offset, value, client=client) for client in (READER, AUDITOR)]
    return found


def attempt(*values: int, epoch: int = 0, commit_sent: int = 5, committed: bool | None = True) -> TransactionAttempt:
    """Even values are in x-0, odd ones in x-1; all are acknowledged."""
    made = TransactionAttempt("id", "writer", 7, epoch, began_ms=100, initialized=1, commit_sent=commit_sent)
    made.values = {value: f"x-{value % 2}" for value in values}
    made.acknowledged = dict.fromkeys(values, 3)
    made.committed = committed
    return made


def checks(found: list[transactions.Finding]) -> list[str]:
    return [one.check for one in found]


def test_a_record_of_a_transaction_that_was_never_to_be_committed_is_an_aborted_read() -> None:
    never = attempt(2, commit_sent=-1, committed=None)
    aborted = attempt(4, committed=False)
    unknown = attempt(6, committed=None)
    found = transactions.aborted_read(history(never, aborted, unknown, read={2: "x-0", 4: "x-0", 6: "x-0"}))
    assert len(found) == 4, "two readers read two of them"
    assert set(checks(found)) == {transactions.ABORTED_READ}


def test_readers_of_uncommitted_records_may_read_everything() -> None:
    seen = history(attempt(2, committed=False), read={2: "x-0"})
    seen.read_committed.clear()
    assert transactions.aborted_read(seen) == []


def test_a_loss_excuses_only_transactions_that_had_begun_before_it_and_that_it_touches() -> None:
    seen = history(attempt(2, committed=False), read={2: "x-0"})
    assert transactions.aborted_read(seen, [KnownLoss("x-0", 0, 3, time_ms=99)])
    assert transactions.aborted_read(seen, [KnownLoss("x-1", 0, 3, time_ms=100)])
    assert not transactions.aborted_read(seen, [KnownLoss("x-0", 0, 3, time_ms=100)])
    assert not transactions.aborted_read(seen, [KnownLoss("__transaction_state-1.00", 0, 3, time_ms=100)])


def test_every_acknowledged_record_of_a_committed_transaction_is_readable() -> None:
    seen = history(attempt(2, 3), read={2: "x-0"})
    assert checks(transactions.lost_transaction(seen, AUDITOR, PARTITIONS)) == [transactions.LOST_TRANSACTION]
    assert transactions.lost_transaction(seen, AUDITOR, {"x-0"}) == [], "the other partition was not read"
    assert transactions.lost_transaction(history(attempt(2), read={2: "x-0"}), AUDITOR, PARTITIONS) == []


def test_a_transaction_of_unknown_outcome_is_there_or_not() -> None:
    torn = history(attempt(2, 3, committed=None), read={3: "x-1"})
    assert checks(transactions.torn_transaction(torn, AUDITOR, PARTITIONS)) == [transactions.TORN_TRANSACTION]
    for read in ({}, {2: "x-0", 3: "x-1"}):
        assert (
            transactions.torn_transaction(history(attempt(2, 3, committed=None), read=read), AUDITOR, PARTITIONS) == []
        )


def replaced(answered: int, *, sent: int = 0, producer_id: int = 7) -> InitializedProducer:
    return InitializedProducer("id", "other", producer_id, 1, sent, answered)


def test_what_a_producer_asks_for_after_it_was_replaced_has_no_effect() -> None:
    for answered, found in ((2, 1), (4, 1), (6, 0)):
        seen = history(attempt(2))
        seen.initialized.append(replaced(answered))
        assert len(transactions.zombie(seen)) == found, (
            f"its batch was sent at 3, its commit at 5, not after {answered}"
        )
    seen = history(attempt(2, committed=None))
    seen.initialized.append(replaced(4))
    assert transactions.zombie(seen) == [], "its commit had no success"


def test_another_producer_id_replaces_a_producer_only_if_it_was_asked_for_later() -> None:
    for sent, found in ((0, 0), (2, 1)):
        seen = history(attempt(2))
        seen.initialized.append(replaced(2, sent=sent, producer_id=8))
        assert len(transactions.zombie(seen)) == found


def test_an_epoch_is_given_to_one_producer_whatever_is_lost() -> None:
    seen = history(attempt(2))
    seen.initialized += [replaced(1), replaced(9)]
    seen.transactions[0].producer_epoch = 1
    assert checks(transactions.zombie(seen)) == [transactions.ZOMBIE]
    assert transactions.given_again(seen) == [(7, 1)]
    lost = KnownLoss("__transaction_state-0.00", 0, 1, 0)
    assert checks(transactions.zombie(seen, [lost])) == [transactions.ZOMBIE], "no loss excuses it"


def test_each_input_below_the_committed_offset_is_in_the_committed_output_once() -> None:
    one, two = attempt(2, 3), attempt(4)
    one.inputs, two.inputs = {2: (0, 0), 3: (0, 1)}, {4: (0, 1)}
    read = {2: "x-0", 3: "x-1"}
    assert transactions.copied_once(history(one, two, read=read), AUDITOR, {0: 2}) == []
    for committed in ({0: 1}, {0: 3}, {}):
        assert transactions.copied_once(history(one, two, read=read), AUDITOR, committed)
    twice = history(one, two, read={**read, 4: "x-0"})
    assert checks(transactions.copied_once(twice, AUDITOR, {0: 2})) == [transactions.COPIED_ONCE]
    assert transactions.copied_once(twice, AUDITOR, {0: 2}, [KnownLoss("x-0", 0, 1, 0)]) == []
