"""Which kept files belong to which report, and what of its offsets they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.cli.kept_ranges import by_report, kept_of, sentences
from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.loss_report import LossReport
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.types import Uuid, uuid_text

OURS, OTHER = Uuid(b"o" * 16), Uuid(b"x" * 16)


def report(epoch: int, first: int, end: int, topic_id: Uuid = OURS, answered: bool = True) -> LossReport:
    """Broker 1 leads from `first`; 2 holds up to `end`, if it has answered."""
    other = ReplicaAnswer(2, 20, epoch - 1, end) if answered else ReplicaAnswer(2)
    replicas = (ReplicaAnswer(1, 10, epoch - 1, first), other)
    return LossReport("orders", topic_id, 3, ElectionBasis(Basis.DESIGNATED, 1, epoch, first, replicas=replicas))


def keep(
    folder: Path, epoch: int, *ranges: tuple[int, int], written_epoch: int = 1, topic_id: Uuid | None = None
) -> None:
    directory = folder / "orders-3" / "discarded"
    directory.mkdir(parents=True, exist_ok=True)
    for first, end in ranges:
        batch = encode_batch([(None, b"v", (), 0)] * (end - first), base_offset=first, leader_epoch=written_epoch)
        (directory / f"{first:020d}.{epoch}.log").write_bytes(bytes(batch))
    if topic_id is not None:
        text = f"version: 0\ntopic_id: {uuid_text(topic_id)}\n".encode()
        (directory.parent / "partition.metadata").write_bytes(text)


def said(reports: list[LossReport], folder: Path) -> list[str]:
    return list(sentences(reports, by_report(reports, [folder])))


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(100, 110)], "every offset that was given up is kept"),
        ([(90, 105), (104, 120)], "every offset that was given up is kept"),
        ([(102, 105)], "kept, but not the offsets 100 to 101, 105 to 109"),
        ([(101, 110)], "kept, but not the offsets 100"),
        ([], "nothing is kept in these folders (broker 2 held them)"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, ranges: list[tuple[int, int]], expected: str) -> None:
    keep(tmp_path, 7, *ranges)
    first, *files = said([report(7, 100, 110)], tmp_path)
    assert first == f"orders-3, leader epoch 7: {expected}"
    assert len(files) == len(ranges) and all(str(tmp_path) in line for line in files)


@pytest.mark.parametrize(
    ("written", "removed", "belongs"),
    [(5, 10, [0, 1, 0]), (6, 7, [0, 1, 0]), (4, 20, [1, 0, 0]), (7, 9, [0, 0, 1]), (9, 12, [0, 0, 0])],
)
def test_a_range_belongs_to_the_first_election_after_its_last_record(
    tmp_path: Path, written: int, removed: int, belongs: list[int]
) -> None:
    """The follower may have been away for several elections before it removed the range."""
    keep(tmp_path, removed, (100, 110), written_epoch=written)
    reports = [report(5, 100, 110), report(7, 100, 110), report(9, 100, 110)]
    kept = by_report(reports, [tmp_path])
    assert [len(kept_of(kept, each)) for each in reports] == belongs


def test_files_of_a_topic_that_had_this_name_before_do_not_count(tmp_path: Path) -> None:
    keep(tmp_path, 8, (100, 110), topic_id=OTHER)
    assert said([report(7, 100, 110)], tmp_path)[0].endswith("(broker 2 held them)")
    keep(tmp_path, 8, (100, 110), topic_id=OURS)
    assert said([report(7, 100, 110)], tmp_path)[0].endswith("every offset that was given up is kept")


def test_where_the_loss_is_not_known_exactly_nothing_is_promised(tmp_path: Path) -> None:
    keep(tmp_path, 7, (100, 110))
    (first, _) = said([report(7, 100, 110, answered=False)], tmp_path)
    assert first.endswith("kept, though the report does not say exactly which offsets were given up")


def test_elections_that_gave_nothing_up_are_left_out(tmp_path: Path) -> None:
    assert said([report(7, 100, 100)], tmp_path) == []


def test_a_topic_that_was_created_again_has_reports_of_its_own(tmp_path: Path) -> None:
    """Both may have had an election of the same epoch."""
    keep(tmp_path, 7, (100, 110), topic_id=OURS)
    reports = [report(7, 100, 110, OTHER), report(7, 100, 110, OURS)]
    kept = by_report(reports, [tmp_path])
    assert [len(kept_of(kept, each)) for each in reports] == [0, 1]


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    keep(tmp_path, 7, (100, 105))
    (tmp_path / "orders-3" / "discarded" / f"{105:020d}.7.log").write_bytes(b"")
    assert said([report(7, 100, 110)], tmp_path)[0].endswith("kept, but not the offsets 105 to 109")
