from __future__ import annotations

import gc
import weakref
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


class Left:
    """A cycle, which only the collector can end."""

    def __init__(self) -> None:
        self.itself = self


def test_what_the_first_task_loaded_is_passed_over_and_what_later_ones_leave_is_collected() -> None:
    TaskContext._setTaskContext(TaskContext())
    loaded = Left()
    worker.settle()
    later = Left()
    worker.settle()
    first, second = weakref.ref(loaded), weakref.ref(later)
    del loaded, later
    gc.collect()
    assert first() is not None
    assert second() is None


def test_a_process_that_runs_no_task_keeps_its_collector() -> None:
    worker.settle()
    assert gc.get_freeze_count() == 0
