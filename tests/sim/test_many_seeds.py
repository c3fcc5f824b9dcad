"""Many seeds in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.sim.many_seeds import in_processes

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
