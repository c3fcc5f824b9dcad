from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from pyspark import TaskContext

from heirlog.spark import worker


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    worker.settle.cache_clear()
    yield
    gc.unfreeze()
    TaskContext._setTaskContext(None)
    worker.settle.cache_clear()


def test_what_the_first_task_loaded_is_passed_over_and_what_later_ones_leave_is_collected() -> None:
    TaskContext._setTaskContext(TaskContext())
    worker.settle()
    kept = gc.get_freeze_count()
    assert kept > 0
    left = [object()]
    left.append(left)
    worker.settle()
    assert gc.get_freeze_count() == kept


def test_a_process_that_runs_no_task_keeps_its_collector() -> None:
    worker.settle()
    assert gc.get_freeze_count() == 0
