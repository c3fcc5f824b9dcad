from __future__ import annotations

import pytest

from heirlog.storage.check_line import WrongChecksum, checked, with_check_line

CONTENT = "version: 0\ntopic_id: dHR0dHR0dHR0dHR0dHR0dA\n"


@pytest.mark.parametrize("prefix", ["", "# "])
def test_the_content_comes_back(prefix: str) -> None:
    assert checked(with_check_line(CONTENT, prefix), prefix) == CONTENT


def test_a_file_without_the_line_is_believed() -> None:
    assert checked(CONTENT.encode()) == CONTENT


def test_a_bit_that_flips_in_the_content_is_noticed() -> None:
    written = with_check_line(CONTENT)
    for bit in range(8 * len(CONTENT)):
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises((WrongChecksum, UnicodeDecodeError)):
            checked(bytes(flipped))


def test_a_bit_that_flips_in_the_line_changes_no_content() -> None:
    written = with_check_line(CONTENT)
    for bit in range(8 * len(CONTENT), 8 * len(written)):
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert checked(bytes(flipped)).startswith(CONTENT)
        except (WrongChecksum, UnicodeDecodeError):
            pass
