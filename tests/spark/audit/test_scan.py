"""One segment file: what the scan finds in it, and what it must not find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.protocol.batch import encode_batch, read_header
from heirlog.protocol.checksum import crc32c
from heirlog.spark.audit import segment_scan
from heirlog.spark.audit.segment_scan import SegmentScan, Unit
from heirlog.storage.index import OFFSET_ENTRY, TIME_ENTRY

END = 2**63 - 1


def batch(base_offset: int, records: int = 1, epoch: int = 0, **more: Any) -> bytes:
    values = [(None, b"value %d" % (base_offset + i), (), 1000 + base_offset + i) for i in range(records)]
    return bytes(encode_batch(values, base_offset, epoch, **more))


def scan(
    folder: Path,
    *batches: bytes,
    base_offset: int = 0,
    is_last: bool = False,
    trusted_to: int = END,
    log_start_offset: int = 0,
    epochs: list[list[int]] | None = None,
    index: list[tuple[int, int]] | None = None,
    times: list[tuple[int, int]] | None = None,
) -> dict[str, Any]:
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    path.with_suffix(".index").write_bytes(b"".join(OFFSET_ENTRY.pack(*entry) for entry in index or []))
    path.with_suffix(".timeindex").write_bytes(b"".join(TIME_ENTRY.pack(*entry) for entry in times or []))
    unit = Unit(0, str(path), base_offset, is_last, trusted_to, trusted_to == END, log_start_offset, epochs)
    return SegmentScan(unit).run()


def kinds(row: dict[str, Any]) -> list[tuple[str, int]]:
    return [(found["kind"], found["offset"]) for found in row["findings"]]


def gaps(row: dict[str, Any]) -> list[tuple[int, int]]:
    return [(gap["start"], gap["end"]) for gap in row["gaps"]]


def test_a_healthy_segment_is_summed_up(tmp_path: Path) -> None:
    row = scan(tmp_path, batch(5, 3), batch(8, 2, epoch=1), base_offset=5, epochs=[[0, 5], [1, 8]])
    assert (row["findings"], row["gaps"]) == ([], [])
    assert (row["first_offset"], row["end_offset"], row["batches"], row["records"]) == (5, 10, 2, 5)
    assert (row["first_epoch"], row["last_epoch"], row["max_timestamp_ms"]) == (0, 1, 1009)
    assert row["bytes"] == (tmp_path / "00000000000000000005.log").stat().st_size


def test_an_empty_segment_ends_where_it_begins(tmp_path: Path) -> None:
    row = scan(tmp_path, base_offset=7, is_last=True)
    assert (row["findings"], row["end_offset"], row["batches"]) == ([], 7, 0)


@given(bit=st.integers(21 * 8, 10**6), count=st.integers(1, 4))
def test_every_bit_below_the_crc_is_noticed(tmp_path_factory: pytest.TempPathFactory, bit: int, count: int) -> None:
    batches = [bytearray(batch(3 * i, 3)) for i in range(count)]
    broken = batches[bit % count]
    at = 21 * 8 + bit % (len(broken) * 8 - 21 * 8)
    broken[at // 8] ^= 1 << at % 8
    row = scan(tmp_path_factory.mktemp("scan"), *map(bytes, batches))
    assert ("batch-damaged", 3 * (bit % count)) in kinds(row) or "framing" in dict(kinds(row))


@pytest.mark.parametrize("byte", [*range(17, 23), *range(24, 61)])
def test_nothing_that_a_damaged_header_says_is_believed(tmp_path: Path, byte: int) -> None:
    log = [batch(3 * i, 3, producer_id=7, producer_epoch=0, base_sequence=3 * i) for i in range(3)]
    size, times = len(log[0]), [(1002, 2), (1005, 5), (1008, 8)]
    broken = bytearray(log[1])
    broken[byte] ^= 4
    row = scan(tmp_path, log[0], bytes(broken), log[2], index=[(5, size), (8, 2 * size)], times=times)
    assert kinds(row) == [("batch-damaged", 3)]
    assert row["gaps"] == [{"start": 3, "end": 6, "reported": True}]
    assert (row["records"], row["end_offset"], row["rewritten_to"]) == (9, 9, -1)
    runs = [(run["producer_id"], run["first_sequence"], run["last_sequence"]) for run in row["producers"]]
    assert runs == [(7, 0, 2), (7, 6, 8)]  # the missing offsets explain the break


def test_one_batch_of_a_wrong_epoch_is_one_finding(tmp_path: Path) -> None:
    log = [batch(i, epoch=9 if i == 1 else 2) for i in range(20)]
    assert kinds(scan(tmp_path, *log)) == [("epoch-goes-back", 2)]


def test_offsets_that_are_not_there_are_gaps_and_not_yet_findings(tmp_path: Path) -> None:
    row = scan(tmp_path, batch(2), batch(3), batch(10))
    assert gaps(row) == [(0, 2), (4, 10)]
    assert row["findings"] == []


def test_a_batch_that_is_there_twice_is_named_and_another_one_goes_back(tmp_path: Path) -> None:
    assert kinds(scan(tmp_path, batch(0), batch(1), batch(1), batch(2))) == [("batch-doubled", 1)]
    assert kinds(scan(tmp_path, batch(0, 5), batch(2))) == [("offsets-go-back", 2)]


@pytest.mark.parametrize("tail", [b"\0" * 5000, batch(1)[:40], batch(1)[:-1]], ids=["zeros", "header", "records"])
def test_a_torn_tail_is_a_finding_only_where_the_stop_was_clean_or_the_tail_was_flushed(
    tmp_path: Path, tail: bytes
) -> None:
    assert scan(tmp_path, batch(0), tail, is_last=True, trusted_to=1)["findings"] == []
    for more in ({"is_last": True}, {"is_last": True, "trusted_to": 2}, {"is_last": False, "trusted_to": 0}):
        assert kinds(scan(tmp_path, batch(0), tail, **more)) == [("framing", 1)]


def test_after_a_wrong_length_the_scan_continues_where_the_index_knows_a_batch(tmp_path: Path) -> None:
    first, second, third = batch(0), bytearray(batch(1)), batch(2)
    second[10] ^= 0x40
    position = len(first) + len(second)
    row = scan(tmp_path, first, bytes(second), third, batch(3), index=[(2, position)])
    assert kinds(row) == [("framing", 1)]
    assert (gaps(row), row["gaps"][0]["reported"], row["end_offset"]) == ([(1, 2)], True, 4)


def test_epochs_that_go_back_or_contradict_the_checkpoint_are_found(tmp_path: Path) -> None:
    assert kinds(scan(tmp_path, batch(0, epoch=2), batch(1, epoch=1))) == [("epoch-goes-back", 1)]
    log = [batch(0, 4, epoch=1), batch(4, 4, epoch=3)]
    assert scan(tmp_path, *log, epochs=[[1, 0], [3, 4]])["findings"] == []
    for wrong in ([[1, 0], [4, 4]], [[1, 0], [3, 3]], [[1, 0], [3, 6]], [[1, 0], [2, 2], [3, 4]], [[3, 4]]):
        assert kinds(scan(tmp_path, *log, epochs=wrong))[0][0] == "leader-epochs-wrong", wrong
    # what is below the log start is forgotten, and what was not flushed is repaired
    assert scan(tmp_path, *log, epochs=[[3, 4]], log_start_offset=4)["findings"] == []
    assert scan(tmp_path, *log, epochs=[[1, 0]], trusted_to=4)["findings"] == []


def test_indexes_are_compared_with_the_batches(tmp_path: Path) -> None:
    log = [batch(0, 2), batch(2, 2), batch(4, 2)]
    size = len(log[0])
    good_times = [(1003, 3), (1005, 5)]
    assert scan(tmp_path, *log, index=[(3, size), (5, 2 * size)], times=good_times)["findings"] == []
    # Kafka's followers name a later offset
    assert scan(tmp_path, *log, index=[(5, size)])["findings"] == []
    for index in ([(3, size + 1)], [(2, size)], [(5, 2 * size), (3, size)]):
        assert kinds(scan(tmp_path, *log, index=index)) == [("index-wrong", 0)], index
    for times in ([(1000, 3)], [(1003, 3), (1002, 5)]):
        assert kinds(scan(tmp_path, *log, times=times)) == [("index-wrong", 0)], times
    # what they know more than the segment begins where it ends
    assert kinds(scan(tmp_path, *log, index=[(5, 3 * size)])) == [("index-wrong", 6)]
    assert kinds(scan(tmp_path, *log, times=[(2000, 5)])) == [("index-wrong", 6)]
    # they are rebuilt after an unclean stop
    assert scan(tmp_path, *log, index=[(3, 1)], trusted_to=0)["findings"] == []


def test_producers_sequences_are_runs_with_breaks_between_them(tmp_path: Path) -> None:
    row = scan(
        tmp_path,
        batch(0, 3, producer_id=7, producer_epoch=0, base_sequence=0),
        batch(3, 2, producer_id=9, producer_epoch=0, base_sequence=2**31 - 2),
        batch(5, 1, producer_id=7, producer_epoch=0, base_sequence=3),
        batch(6, 1, producer_id=9, producer_epoch=0, base_sequence=0),
        batch(7, 1, producer_id=7, producer_epoch=0, base_sequence=5),
        batch(8, 1, producer_id=7, producer_epoch=1, base_sequence=0),
    )
    runs = [(r["producer_id"], r["producer_epoch"], r["first_sequence"], r["last_sequence"]) for r in row["producers"]]
    assert sorted(runs) == [(7, 0, 0, 3), (7, 0, 5, 5), (7, 1, 0, 0), (9, 0, 2**31 - 2, 0)]


def test_batches_that_the_log_cleaner_has_changed_are_noted(tmp_path: Path) -> None:
    cleaned = bytearray(batch(0, 3))
    assert scan(tmp_path, bytes(cleaned))["rewritten_to"] == -1
    cleaned[57:61] = (1).to_bytes(4, "big")
    cleaned[17:21] = crc32c(memoryview(cleaned)[21:]).to_bytes(4, "big")
    assert scan(tmp_path, bytes(cleaned), batch(3))["rewritten_to"] == 3


def test_digests_do_not_depend_on_pieces_and_notice_every_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = [batch(i * 3, 3) for i in range(2000)]
    whole = scan(tmp_path, *log)
    assert [(bucket["bucket"], bucket["batches"]) for bucket in whole["buckets"]] == [(0, 1366), (1, 634)]
    monkeypatch.setattr(segment_scan, "PIECE_BYTES", 1000)
    assert scan(tmp_path, *log) == whole
    log[700] = batch(2100, 3, epoch=1)
    changed = scan(tmp_path, *log)
    assert changed["buckets"][0] != whole["buckets"][0]
    assert changed["buckets"][1] == whole["buckets"][1]


def test_a_batch_that_is_larger_than_a_piece_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_scan, "PIECE_BYTES", 200)
    large = bytes(encode_batch([(None, b"x" * 5000, (), 1)], 1))
    row = scan(tmp_path, batch(0), large, batch(2))
    assert (row["findings"], row["batches"], row["end_offset"]) == ([], 3, 3)
    assert read_header(large).size > 5000


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    row = SegmentScan(Unit(0, str(tmp_path / "00000000000000000000.log"), 0, True, END, False, 0, None)).run()
    assert kinds(row) == [("unreadable", 0)]
