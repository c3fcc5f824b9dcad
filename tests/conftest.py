"""How the tests are dealt out to the processes that run them (PROCESSES in the Makefile).

Fixtures that cost seconds belong to a file, or, for Spark's JVM, to a folder: what shares one stays in one process.
Folders that take minutes come first, so that no process is left with one at the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SHARED_BY_FOLDER = ("spark",)
LONGEST_FIRST = ("spark", "drill", "sim", "processes", "clients")


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # first: xdist reads the groups in the same hook
    if not config.pluginmanager.hasplugin("dsession") and not hasattr(config, "workerinput"):
        return
    for item in items:
        folder = _folder(item)
        group = folder if folder in SHARED_BY_FOLDER else str(item.path.relative_to(TESTS))
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: LONGEST_FIRST.index(_folder(item)) if _folder(item) in LONGEST_FIRST else 9)
