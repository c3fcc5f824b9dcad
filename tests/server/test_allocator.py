"""What a process pays for buffers that it frees and needs again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CHURN = """
import resource
from heirlog.server.allocator import keep_freed_memory
keep_freed_memory()

def churn():
    for size in (64 * 1024, 1024 * 1024, 2 * 1024 * 1024):
        buffers = [bytearray(size) for _ in range(6)]

churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    churn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_buffers_that_come_and_go_get_the_same_pages_again() -> None:
    """With glibc's own settings each of the 93,000 pages is a fault."""
    done = subprocess.run([sys.executable, "-c", CHURN], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30_000
