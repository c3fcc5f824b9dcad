"""How the tests are dealt out to the processes that run them (PROCESSES in the Makefile).

A file stays in one process, since its fixtures may cost seconds. Folders that take minutes come first, so that no
process is left with one at the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONGEST_FIRST = ("spark", "drill", "sim", "processes", "clients")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folders = {item: item.path.relative_to(TESTS).parts[0] for item in items}
    items.sort(key=lambda item: LONGEST_FIRST.index(folders[item]) if folders[item] in LONGEST_FIRST else 9)
