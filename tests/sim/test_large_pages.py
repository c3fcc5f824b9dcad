from __future__ import annotations

import ctypes
import sys

import pytest

from heirlog.sim.large_pages import LARGE_BYTES, large_pages_of_memory, use_large_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")


def test_memory_of_this_process_is_put_into_large_pages_and_keeps_its_content() -> None:
    content = bytes(range(256)) * 32 * 1024
    data = bytearray(content)
    place = ctypes.addressof(ctypes.c_char.from_buffer(data))
    ranges = list(large_pages_of_memory())
    assert all(begin % LARGE_BYTES == end % LARGE_BYTES == 0 for begin, end in ranges)
    assert any(begin < place + len(data) and place < end for begin, end in ranges)
    use_large_pages()
    assert data == content


def test_memory_of_files_is_left_alone() -> None:
    with open("/proc/self/maps") as maps:
        of_files = [line.split()[0] for line in maps if line.split()[5:] not in ([], ["[heap]"])]
    places = [[int(address, 16) for address in place.split("-")] for place in of_files]
    for begin, end in large_pages_of_memory():
        assert not any(begin < last and first < end for first, last in places)
