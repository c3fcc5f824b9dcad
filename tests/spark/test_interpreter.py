from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from heirlog.spark import interpreter

ARCHIVE = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"


def test_workers_import_the_installed_pyspark_and_keep_the_rest_of_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    own = tmp_path / "a *"
    own.mkdir()
    (own / "mine.py").touch()
    asked = "import importlib.util, sys; print([importlib.util.find_spec(n).origin for n in sys.argv[1:]])"
    ended = subprocess.run(
        [interpreter.program(), "-c", asked, "mine", "pyspark"],
        env={**os.environ, "PYTHONPATH": f"{ARCHIVE}:{own}:/nowhere"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == str([str(own / "mine.py"), pyspark.__file__])


def test_workers_of_another_installation_of_spark_run_its_own_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert interpreter.program() == sys.executable
