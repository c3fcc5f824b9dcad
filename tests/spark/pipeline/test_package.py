from __future__ import annotations

import pkgutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import heirlog.blocking
import heirlog.spark
from heirlog.spark.pipeline.package import package

IMPORTED = """
import importlib, sys
archive, libraries, *names = sys.argv[1:]
sys.path[:0] = [archive, libraries]
for name in names:
    assert importlib.import_module(name).__file__.startswith(archive), name
"""


def test_everything_that_a_task_may_import_is_in_the_archive(tmp_path: Path) -> None:
    archive = package(tmp_path / "heirlog.zip")
    names = [
        found.name
        for root in (heirlog.spark, heirlog.blocking)
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")
    ]
    names.append("pyspark_heirlog")
    # without `site`, the folder of the libraries does not lead to our sources
    command = [sys.executable, "-I", "-S", "-c", IMPORTED, str(archive), sysconfig.get_path("purelib"), *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
