from __future__ import annotations

from storage.memory_files import MemoryFiles

from heirlog.storage.checkpoints import parse_checkpoint, read_offsets, render_offsets


def test_offsets_are_kafkas_text_sorted_and_come_back() -> None:
    offsets = {("b", 1): 7, ("a", 10): 0, ("a", 2): 5}
    text = render_offsets(offsets)
    assert text == b"0\n3\na 2 5\na 10 0\nb 1 7\n"
    files = MemoryFiles()
    files.open("/f", create=True).append(text)
    assert read_offsets(files, "/f") == offsets


def test_a_missing_or_damaged_file_counts_as_empty() -> None:
    files = MemoryFiles()
    assert read_offsets(files, "/none") == {}
    for content in (b"", b"0\n", b"0\n2\na 1 1\n", b"7\n1\na 1 1\n", b"0\n1\na 1\n", b"0\n1\na 1 x\n", b"\xff"):
        assert parse_checkpoint(content, 3) is None
