"""Many seeds in processes of their own."""

from __future__ import annotations

import math
import multiprocessing
import os
import struct
import threading
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from heirlog.sim.many_seeds import CallFailed, ProcessKilled, _received, in_processes

CTRL_C_WHILE_IT_STARTS = """
import os, signal, sys
if "--multiprocessing-fork" in sys.orig_argv:
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_ctrl_c_reaches_no_process_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a terminal sends it to all of them: each would end with a traceback
    (tmp_path / "sitecustomize.py").write_text(CTRL_C_WHILE_IT_STARTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert sorted(in_processes(abs, [-1, -2, -3], jobs=2)) == [1, 2, 3]


def test_the_caller_has_no_thread_that_an_interrupt_could_leave_without_its_lock() -> None:
    before = set(threading.enumerate())
    with closing(in_processes(abs, count(1), jobs=1)) as results:
        assert [next(results) for _ in range(5)] == [1, 2, 3, 4, 5]
        # (fewer: those of an earlier test may end)
        assert set(threading.enumerate()) <= before


def test_a_few_calls_have_a_process_each() -> None:
    calls = ["__import__('os').getpid()"] * 3
    assert len(set(in_processes(eval, calls, jobs=3))) == 3


def test_what_a_call_raises_comes_with_its_trace() -> None:
    with pytest.raises(CallFailed, match=r"(?s)many_seeds\.py.*ValueError: math domain error"):
        list(in_processes(math.sqrt, [4, -1], jobs=2))


def test_a_process_that_ends_before_its_call_is_noticed() -> None:
    with pytest.raises(ProcessKilled):
        list(in_processes(os._exit, [0], jobs=1))


def test_a_process_that_ends_while_it_answers_is_noticed() -> None:
    pipe, its_pipe = multiprocessing.Pipe()
    os.write(its_pipe.fileno(), struct.pack("!i", 100) + b"only a part")
    its_pipe.close()
    with pytest.raises(ProcessKilled):
        _received(pipe)
