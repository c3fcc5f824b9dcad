"""Each rule of transactions that is a function holds for what is right, and is broken by what is not."""

from __future__ import annotations

import pytest

from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.sim.transaction_rules import (
    Answer,
    Ended,
    KeyedRecord,
    WrittenOffset,
    decided_offsets,
    x7_stable_offset_never_falls,
    x15_offsets_are_those_of_the_log,
    x17_cleaning_keeps_what_is_committed,
    x18_repeated_request_changes_nothing,
    x20_answers_are_kept,
)

PLACE = ("g", ("t", 0))
OTHER = ("g", ("t", 1))


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "", 0)


def written(offset: int | None, by: int | None = None, place: tuple[str, tuple[str, int]] = PLACE) -> WrittenOffset:
    return WrittenOffset(by, place, None if offset is None else at(offset))


@pytest.mark.parametrize(
    ("log", "committed", "unstable"),
    [
        ([written(1), written(2)], {PLACE: 2}, set()),
        ([written(1), written(2, by=7)], {PLACE: 1}, {PLACE}),
        ([written(2, by=7), Ended(7, True)], {PLACE: 2}, set()),
        ([written(1), written(2, by=7), Ended(7, False)], {PLACE: 1}, set()),
        # the order of the records counts, not that of the markers
        ([written(1, by=7), written(2), Ended(7, True)], {PLACE: 2}, set()),
        ([written(1, by=7), written(2, by=8), Ended(8, True), Ended(7, True)], {PLACE: 2}, set()),
        ([written(1, by=7), written(2, by=8), Ended(8, False)], {}, {PLACE}),
        # a deletion counts at once
        ([written(1), written(2, by=7), written(None), Ended(7, True)], {}, set()),
        ([written(None), written(2, by=7), Ended(7, True)], {PLACE: 2}, set()),
        # a transaction ends in every partition, and the next one of its producer is another
        ([written(1, by=7), written(3, by=7, place=OTHER), Ended(7, True)], {PLACE: 1, OTHER: 3}, set()),
        ([written(1, by=7), Ended(7, False), written(2, by=7), Ended(7, True)], {PLACE: 2}, set()),
    ],
)
def test_offsets_of_groups_are_decided_by_their_records(
    log: list[WrittenOffset | Ended], committed: dict[object, int], unstable: set[object]
) -> None:
    known, open_places = decided_offsets(log)
    assert ({place: value.offset for place, value in known.items()}, open_places) == (committed, unstable)


def test_a_coordinator_knows_the_offsets_of_its_log() -> None:
    log = [written(1), written(2, by=7), written(3, place=OTHER)]
    right = {PLACE: at(1), OTHER: at(3)}
    assert x15_offsets_are_those_of_the_log(log, right, [PLACE]) is None
    for committed, unstable in (
        ({PLACE: at(2), OTHER: at(3)}, [PLACE]),
        ({PLACE: at(1)}, [PLACE]),
        ({**right, ("h", ("t", 0)): at(1)}, [PLACE]),
        (right, []),
        (right, [PLACE, OTHER]),
    ):
        assert x15_offsets_are_those_of_the_log(log, committed, unstable)


def test_cleaning_keeps_the_last_committed_record_of_each_key() -> None:
    first, second, other = (KeyedRecord(at, key, b"v") for at, key in ((0, b"a"), (3, b"a"), (4, b"b")))
    committed = [first, second, other]
    for scanned in (committed, [second, other]):
        assert x17_cleaning_keeps_what_is_committed(committed, scanned, 0, 5) is None
    assert x17_cleaning_keeps_what_is_committed(committed, [first, second], 0, 4) is None, "what is read to its end"
    assert x17_cleaning_keeps_what_is_committed(committed, [other], 4, 5) is None
    for scanned in ([first, other], [second], [second, other, KeyedRecord(5, b"c", b"aborted")]):
        assert x17_cleaning_keeps_what_is_committed(committed, scanned, 0, 6)
    assert x17_cleaning_keeps_what_is_committed(committed, [second, KeyedRecord(4, b"b", b"changed")], 0, 5)


def test_a_stable_offset_does_not_fall() -> None:
    assert x7_stable_offset_never_falls("x-0", 5, 5, 1) is None
    assert x7_stable_offset_never_falls("x-0", 6, 5, 1)


def test_a_repeated_request_gets_the_same_answer_or_a_refusal() -> None:
    first = Answer(0, (7, 3))
    assert x18_repeated_request_changes_nothing("EndTxn", first, Answer(0, (7, 3))) is None
    assert x18_repeated_request_changes_nothing("EndTxn", first, Answer(90, (-1, -1))) is None
    assert x18_repeated_request_changes_nothing("EndTxn", first, Answer(0, (7, 4)))


def test_what_a_producer_got_as_an_answer_is_in_the_log() -> None:
    assert x20_answers_are_kept([("id", (7, 0)), ("id", (7, 1))], {"id": {(7, 0), (7, 1), (8, 0)}}) is None
    assert x20_answers_are_kept([("id", (9, 0))], {"id": {(7, 0)}})
    assert x20_answers_are_kept([("lost", (7, 0))], {"id": {(7, 0)}})
