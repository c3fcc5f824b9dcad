from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.broker.transactions.records import StoredTransaction, read_record, transaction_key, transaction_value
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.protocol.primitives import Malformed

int64s = st.integers(-1, 2**63 - 1)
epochs = st.integers(-1, 2**15 - 1)
partitions = st.frozensets(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 50)), max_size=8)
transactions = st.builds(
    Transaction,
    transactional_id=st.text(min_size=1, max_size=20),
    producer_id=int64s,
    producer_epoch=epochs,
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from([state for state in TransactionState if state is not TransactionState.EMPTY]),
    partitions=partitions,
    start_ms=int64s,
    last_update_ms=int64s,
    previous_producer_id=int64s,
    next_producer_id=int64s,
    last_producer_epoch=epochs,
    client_version=st.integers(0, 2),
)


@given(transactions)
def test_a_state_is_read_as_it_was_written(stored: Transaction) -> None:
    key = transaction_key(stored.transactional_id)
    assert read_record(key, transaction_value(stored, 2)) == StoredTransaction(stored.transactional_id, stored)


@given(transactions)
def test_without_the_feature_what_has_no_room_is_left_out(stored: Transaction) -> None:
    read = read_record(transaction_key(stored.transactional_id), transaction_value(stored, 0))
    assert read is not None
    assert read.transaction == replace(
        stored, previous_producer_id=-1, next_producer_id=-1, last_producer_epoch=-1, client_version=0
    )


def test_a_state_has_kafkas_bytes() -> None:
    assert transaction_key("t") == struct.pack(">hh1s", 0, 1, b"t")
    empty = Transaction(transactional_id="t", producer_id=5, producer_epoch=1, timeout_ms=9, last_update_ms=7)
    assert transaction_value(empty, 0) == struct.pack(">hqhibiqq", 0, 5, 1, 9, 0, -1, 7, -1)
    ongoing = replace(empty, state=TransactionState.ONGOING, partitions=frozenset({("a", 0), ("a", 2)}), start_ms=6)
    assert transaction_value(ongoing, 0) == struct.pack(">hqhibih1siiiqq", 0, 5, 1, 9, 1, 1, 1, b"a", 2, 0, 2, 7, 6)


def test_a_record_without_a_value_deletes_the_id() -> None:
    assert read_record(transaction_key("t"), None) == StoredTransaction("t", None)


def test_records_of_other_kinds_are_skipped() -> None:
    assert read_record(struct.pack(">hh1s", 1, 1, b"t"), b"") is None


@pytest.mark.parametrize("value", [b"", struct.pack(">h", 2), struct.pack(">hqhibiqq", 0, 5, 1, 9, 8, -1, 7, -1)])
def test_a_value_that_cannot_be_understood_is_an_error(value: bytes) -> None:
    with pytest.raises(Malformed):
        read_record(transaction_key("t"), value)
