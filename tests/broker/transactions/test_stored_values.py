"""Records of `__transaction_state`: bytes by Kafka's layout, and what is skipped or refused."""

from __future__ import annotations

import pytest

from heirlog.broker.transactions.records import read_value
from heirlog.protocol.primitives import Malformed

KEY = bytes.fromhex("0000 0003") + b"app"
"""Version 0, and an int16 before the text: no flexible version."""
FIELDS = bytes.fromhex("0000000000000fa0 0003 0000ea60 01")
"""Producer id 4000, epoch 3, timeout 60000 ms, state 1."""
TIMES = bytes.fromhex("0000000000000007 0000000000000005")


def test_a_value_of_version_0_has_plain_arrays() -> None:
    partitions = bytes.fromhex("00000001 0001") + b"t" + bytes.fromhex("00000002 00000000 00000003")
    stored = read_value(KEY, bytes.fromhex("0000") + FIELDS + partitions + TIMES)
    assert stored is not None and stored.value is not None and stored.transactional_id == "app"
    value = stored.value
    assert (value.producer_id, value.producer_epoch, value.transaction_timeout_ms) == (4000, 3, 60_000)
    assert [(p.topic, list(p.partition_ids)) for p in value.transaction_partitions or []] == [("t", [0, 3])]
    assert (value.transaction_last_update_timestamp_ms, value.transaction_start_timestamp_ms) == (7, 5)
    assert (value.previous_producer_id, value.next_producer_id, value.client_transaction_version) == (-1, -1, 0)


def test_a_value_of_version_1_has_tagged_fields() -> None:
    tagged = bytes.fromhex("02 00 08 0000000000000f9f 02 02 0002")
    stored = read_value(KEY, bytes.fromhex("0001") + FIELDS + b"\x00" + TIMES + tagged)
    assert stored is not None and stored.value is not None
    assert stored.value.transaction_partitions is None
    assert (stored.value.previous_producer_id, stored.value.client_transaction_version) == (3999, 2)


def test_without_a_value_the_id_is_forgotten() -> None:
    assert read_value(KEY, None) == ("app", None)


def test_other_kinds_are_skipped_and_damaged_ones_refused() -> None:
    assert read_value(bytes.fromhex("0001 0003") + b"app", b"") is None
    for key, value in ((None, None), (b"\0", None), (KEY[:-1], None), (KEY, b"\0"), (KEY, b"\0\x63" + FIELDS)):
        with pytest.raises(Malformed):
            read_value(key, value)
