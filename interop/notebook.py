"""The notebook of docs/reference/spark.md, executed by Jupyter: its cells are those of the page.

The kernel runs as one that a user chooses in a menu: the `python3` of PATH is a Python without heirlog.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import environments
import jars

from heirlog.spark import java
from heirlog.testing import Cluster

PAGE = jars.HERE.parent / "docs" / "reference" / "spark.md"
SECTION = re.compile(r"^## Notebooks\n(.*?)^## ", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
RUN_S = 300
EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient
cells = [nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""
WRITTEN = 1000


def cells(page: str) -> list[str]:
    (section,) = SECTION.findall(page)
    return CELL.findall(section)


def check() -> str:
    """For `make interop`. Raises jars.Missing, AssertionError."""
    jars.need("java", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    java.provide()
    python = environments.prepared("notebook", with_tree=True) / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place, Cluster(nodes=1, ledger=False) as cluster:
        cluster.create_topic("numbers")
        given = [cell.replace("localhost:9092", cluster.bootstrap_servers) for cell in cells(PAGE.read_text())]
        ended = subprocess.run(
            [python, "-c", EXECUTE],
            cwd=place,
            env=_environment(Path(place)),
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
    assert not ended.returncode, ended.stderr[-3000:]
    outputs: list[list[dict[str, Any]]] = json.loads(ended.stdout.splitlines()[-1])
    tables = [found for found in map(_shown, outputs) if found]
    assert len(tables) == 2, outputs
    table, count = tables
    assert f"{WRITTEN} rows" in table["text/html"], table
    assert count["text/plain"] == str(WRITTEN), count
    return f"{len(given)} cells, {WRITTEN} rows written, read as a table and as a stream"


def _shown(outputs: list[dict[str, Any]]) -> dict[str, str]:
    """What a cell shows as its value."""
    return next((output["data"] for output in outputs if output["output_type"] == "execute_result"), {})


def _environment(place: Path) -> dict[str, str]:
    """Of a terminal in which no environment is activated."""
    (place / "bin").mkdir()
    (place / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    own = str(Path(sys.executable).parent)
    path = [str(place / "bin"), *(part for part in os.environ["PATH"].split(os.pathsep) if part != own)]
    environment = {**os.environ, "PATH": os.pathsep.join(path), "SPARK_LOCAL_IP": "127.0.0.1"}
    for name in ("PYSPARK_PYTHON", "PYTHONPATH", "VIRTUAL_ENV"):
        environment.pop(name, None)
    return environment
