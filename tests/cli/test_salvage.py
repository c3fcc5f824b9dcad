"""What brokers have kept, listed and written to files. Appending it again: tests/processes/test_recovery.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Heirlog

from heirlog.protocol.batch import encode_batch


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """With a range of orders-3 that the election of leader epoch 7 gave up."""
    folder = tmp_path / "broker" / "orders-3" / "discarded"
    folder.mkdir(parents=True)
    (tmp_path / "broker" / "meta.properties").write_text("")
    (folder / "00000000000000000988.7.log").write_bytes(kept(988, "a", "b") + kept(990, "c"))
    (folder / "00000000000000001000.7.log.tmp").write_bytes(b"half")
    (tmp_path / "broker" / "orders-3" / "00000000000000000000.log").write_bytes(kept(0, "x"))
    return tmp_path / "broker"


def kept(base_offset: int, *values: str) -> bytes:
    records = [(b"key", value.encode(), (("h", b"\xff"),), 1_700_000_000_000) for value in values]
    return bytes(encode_batch(records, base_offset=base_offset, leader_epoch=5))


def the_file(log_directory: Path) -> Path:
    return log_directory / "orders-3" / "discarded" / "00000000000000000988.7.log"


def test_what_a_broker_has_kept_is_listed(heirlog: Heirlog, log_directory: Path) -> None:
    outcome = heirlog("recover", "salvage", "list", log_directory, "--json")
    (row,) = json.loads(outcome.out)
    assert (row["topic"], row["partition"], row["leader_epoch"]) == ("orders", 3, 7)
    assert (row["first_offset"], row["end_offset"], row["records"]) == (988, 991, 3)
    assert row["file"] == str(the_file(log_directory))
    assert "988" in heirlog("recover", "salvage", "list", log_directory).out


def test_a_folder_of_several_brokers_is_listed_as_a_whole(heirlog: Heirlog, log_directory: Path) -> None:
    assert len(json.loads(heirlog("recover", "salvage", "list", log_directory.parent, "--json").out)) == 1


def test_where_nothing_is_kept_that_is_said(heirlog: Heirlog, tmp_path: Path) -> None:
    assert "no kept records found" in heirlog("recover", "salvage", "list", tmp_path).out


def test_kept_records_are_written_as_lines(heirlog: Heirlog, log_directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    outcome = heirlog("recover", "salvage", "write", the_file(log_directory), "--to", target)
    assert outcome.code == 0 and "3 records" in outcome.err
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [(line["offset"], line["value"]) for line in lines] == [(988, "a"), (989, "b"), (990, "c")]
    assert lines[0] == {
        "topic": "orders",
        "partition": 3,
        "offset": 988,
        "timestamp_ms": 1_700_000_000_000,
        "key": "key",
        "value": "a",
        "headers": [["h", {"base64": "/w=="}]],
    }
    again = heirlog("recover", "salvage", "write", the_file(log_directory), "--to", target)
    assert again.code == 1 and "exists already" in again.err
    shown = heirlog("recover", "salvage", "write", the_file(log_directory), "--to", "-")
    assert shown.out == target.read_text()


def test_a_file_that_cannot_be_written_is_named(heirlog: Heirlog, log_directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "none" / "lost.jsonl"
    outcome = heirlog("recover", "salvage", "write", the_file(log_directory), "--to", target)
    assert outcome.code == 1 and "cannot write" in outcome.err


def test_a_damaged_file_is_named_with_the_place(heirlog: Heirlog, log_directory: Path) -> None:
    path = the_file(log_directory)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    outcome = heirlog("recover", "salvage", "list", log_directory)
    assert outcome.code == 1 and f"{path} cannot be read from byte {len(kept(988, 'a', 'b'))} on" in outcome.err


def test_other_files_are_refused(heirlog: Heirlog, log_directory: Path) -> None:
    segment = log_directory / "orders-3" / "00000000000000000000.log"
    outcome = heirlog("recover", "salvage", "produce", segment, "--yes")
    assert outcome.code == 2 and "is not a file of kept records" in outcome.err
    assert heirlog("recover", "salvage", "write", log_directory / "nothing", "--to", "-").code == 1


def test_kept_files_can_be_dumped(heirlog: Heirlog, log_directory: Path) -> None:
    outcome = heirlog("dump", the_file(log_directory), "--deep", "--json")
    assert outcome.code == 0 and '"offset": 990' in outcome.out
