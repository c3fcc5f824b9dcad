"""What must survive compaction, on histories written by hand."""

from __future__ import annotations

from heirlog.protocol.batch import Record
from heirlog.sim.compaction_checker import (
    COLD_EVERY,
    KEYS,
    LOST_KEY,
    NUMBER_HEADER,
    is_tombstone,
    key_of,
    lost_key,
    number_in,
)
from heirlog.sim.history import AcknowledgedRecord, KnownLoss

FIRST = 1
SECOND = FIRST + KEYS
assert key_of(FIRST) == key_of(SECOND) and not is_tombstone(FIRST) and not is_tombstone(SECOND)
TOMBSTONE = next(number for number in range(FIRST, 1000) if key_of(number) == key_of(FIRST) and is_tombstone(number))


def acknowledged(*numbers: int) -> list[AcknowledgedRecord]:
    return [AcknowledgedRecord("c-0.x", offset, number, time_ms=offset) for offset, number in enumerate(numbers)]


def lost(numbers: tuple[int, ...], read: int | None, *losses: KnownLoss, sent_end: int = SECOND + 1) -> list[str]:
    last_read = {} if read is None else {"c-0.x": {key_of(FIRST): read}}
    return [finding.check for finding in lost_key(acknowledged(*numbers), last_read, sent_end, losses)]


def test_the_last_acknowledged_value_of_a_key_or_a_later_one_is_read() -> None:
    assert lost((FIRST, SECOND), SECOND) == []
    assert lost((FIRST,), SECOND) == []


def test_an_older_value_or_none_is_a_lost_key() -> None:
    assert lost((FIRST, SECOND), FIRST) == [LOST_KEY]
    assert lost((FIRST, SECOND), None) == [LOST_KEY]


def test_a_tombstone_may_be_gone_and_what_was_before_it_may_not_come_back() -> None:
    assert lost((FIRST, TOMBSTONE), None, sent_end=TOMBSTONE + 1) == []
    assert lost((FIRST, TOMBSTONE), FIRST, sent_end=TOMBSTONE + 1) == [LOST_KEY]


def test_a_tombstone_of_unknown_fate_may_have_taken_the_key() -> None:
    assert lost((FIRST,), None, sent_end=TOMBSTONE + 1) == []


def test_a_lossy_election_excuses_what_was_sent_before() -> None:
    assert lost((FIRST, SECOND), FIRST, KnownLoss("c-0.x", 1, 3, time_ms=1)) == []
    assert lost((FIRST, SECOND), FIRST, KnownLoss("c-0.x", 1, 3, time_ms=0)) == [LOST_KEY]


def test_some_keys_are_written_rarely() -> None:
    assert [key_of(number) for number in (COLD_EVERY, 2 * COLD_EVERY)] == [KEYS + 1, KEYS + 2]


def test_a_tombstone_carries_its_number_in_a_header() -> None:
    assert number_in(Record(0, 0, b"1", b"13", ())) == 13
    assert number_in(Record(0, 0, b"1", None, ((NUMBER_HEADER, b"22"),))) == 22
    assert number_in(Record(0, 0, b"1", None, ())) is None
