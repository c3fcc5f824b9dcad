"""The books of a long drill: each way to break the promise has a name, and none is taken for another."""

from __future__ import annotations

from heirlog.drill.sequences import Acknowledgements, Id, LastValues, Reading, decode, encode


def read(reading: Reading, *places: tuple[int, int]) -> Reading:
    """(offset, sequence) of producer 1 in partition 0."""
    for offset, sequence in places:
        reading.add(0, offset, Id(1, 0, sequence))
    return reading


def test_an_id_survives_its_value_and_a_changed_byte_does_not() -> None:
    value = encode(Id(7, 3, 1 << 40), 700)
    assert len(value) == 700 and decode(value) == Id(7, 3, 1 << 40)
    assert decode(encode(Id(7, 3, 9), 0)) == Id(7, 3, 9)
    assert decode(value[:-1] + b"?") is None
    assert decode(None) is None and decode(b"short") is None


def test_reading_everything_in_order_finds_nothing() -> None:
    reading = read(Reading("t"), (0, 0), (1, 1), (5, 2))
    assert (reading.read, reading.missing, reading.doubled, reading.out_of_order) == (3, 0, 0, 0)
    assert reading.unread({Id(1, 0, 0): 3}) == 0
    assert reading.unread({Id(1, 0, 0): 5, Id(2, 0, 0): 1}) == 3


def test_a_gap_is_missing() -> None:
    assert read(Reading("t"), (0, 0), (1, 3)).missing == 2


def test_a_sequence_that_comes_late_was_out_of_order_not_missing() -> None:
    reading = read(Reading("t"), (0, 0), (1, 3), (2, 1), (3, 2))
    assert (reading.missing, reading.out_of_order, reading.doubled) == (0, 2, 0)


def test_a_sequence_at_a_second_offset_is_doubled() -> None:
    reading = read(Reading("t"), (0, 0), (1, 1), (2, 1))
    assert (reading.doubled, reading.out_of_order) == (1, 0)


def test_a_group_may_read_an_offset_again_and_a_single_reader_may_not() -> None:
    again = ((0, 0), (1, 1), (0, 0), (1, 1), (2, 2))
    group, single = read(Reading("t", repeats=True), *again), read(Reading("t"), *again)
    assert (group.read_again, group.out_of_order, group.doubled) == (2, 0, 0)
    assert single.out_of_order == 2


def test_compaction_leaves_gaps_and_never_an_older_value_behind_a_newer() -> None:
    reading = read(Reading("t", gaps=True), (0, 0), (7, 7), (9, 9))
    assert reading.missing == 0
    assert read(reading, (10, 8)).doubled == 1


def test_retention_may_have_taken_the_beginning_and_nothing_else() -> None:
    assert read(Reading("t", mid=True), (40, 40), (41, 41)).missing == 0
    assert read(Reading("t", mid=True), (40, 40), (42, 42)).missing == 1


def test_bytes_that_nobody_wrote_and_records_of_another_partition_are_wrong() -> None:
    reading = Reading("t")
    reading.add(0, 0, None)
    reading.add(0, 1, Id(1, 5, 0))
    assert reading.wrong_bytes == 2


def test_acknowledgements_in_order_at_rising_offsets_are_fine() -> None:
    soak_record = Acknowledgements()
    for sequence, offset in ((0, 0), (1, 3), (2, -1), (3, 9)):
        soak_record.add("t", Id(1, 0, sequence), offset)
    assert (soak_record.count, soak_record.out_of_order, soak_record.doubled) == (4, 0, 0)
    assert soak_record.of("t") == {Id(1, 0, 0): 4} and soak_record.of("u") == {}


def test_acknowledgements_out_of_order_or_at_a_former_offset_are_not() -> None:
    soak_record = Acknowledgements()
    for sequence, offset in ((1, 0), (0, 1), (1, 1)):
        soak_record.add("t", Id(1, 0, sequence), offset)
    assert (soak_record.out_of_order, soak_record.doubled) == (2, 1)


def test_the_last_value_of_a_key_must_be_found_and_a_tombstone_may_be_gone() -> None:
    values = LastValues({b"kept": 5, b"older": 9, b"gone": 7, b"dead": None, b"undead": None})
    values.found = {b"kept": 5, b"older": 3, b"undead": 2}
    assert values.lost() == 3
