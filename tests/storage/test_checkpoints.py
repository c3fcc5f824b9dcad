from __future__ import annotations

import re

from storage.memory_files import MemoryFiles

from heirlog.storage.checkpoints import parse_checkpoint, read_offsets, render_offsets


def test_offsets_are_kafkas_text_sorted_and_come_back() -> None:
    offsets = {("b", 1): 7, ("a", 10): 0, ("a", 2): 5}
    text = render_offsets(offsets)
    assert text.rstrip() == b"0\n3\na 2 5\na 10 0\nb 1 7" and len(text.split(b"7")[1]) == 33
    as_kafka_splits = [re.split(r"\s+", line.rstrip()) for line in text.decode().splitlines()]
    assert as_kafka_splits == [["0"], ["3"], ["a", "2", "5"], ["a", "10", "0"], ["b", "1", "7"]]
    files = MemoryFiles()
    files.open("/f", create=True).append(text)
    assert read_offsets(files, "/f") == offsets


def test_a_missing_or_damaged_file_counts_as_empty() -> None:
    files = MemoryFiles()
    assert read_offsets(files, "/none") == {}
    for content in (b"", b"0\n", b"0\n2\na 1 1\n", b"7\n1\na 1 1\n", b"0\n1\na 1\n", b"0\n1\na 1 x\n", b"\xff"):
        assert parse_checkpoint(content, 3) is None


def test_a_file_of_apache_kafka_has_no_checksum_and_is_believed() -> None:
    assert parse_checkpoint(b"0\n1\na 1 1\n", 3) == [["a", "1", "1"]]


def test_no_bit_can_flip_and_no_end_be_missing_or_zeros_without_the_file_counting_as_damaged() -> None:
    text = render_offsets({("orders", 0): 1234, ("orders", 1): 99})
    for bit in range(8 * len(text)):
        flipped = bytearray(text)
        flipped[bit // 8] ^= 1 << bit % 8
        assert parse_checkpoint(bytes(flipped), 3) is None, bytes(flipped)
    for end in range(len(text)):
        assert parse_checkpoint(text[:end], 3) is None
        assert parse_checkpoint(text[:end] + bytes(len(text) - end), 3) is None
