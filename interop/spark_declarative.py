"""The tutorial docs/tutorials/declarative-pipelines.md, command by command, with Spark's own `spark-pipelines`.

Each run starts a JVM, which takes half a minute: too long for `make test`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jars

from heirlog.spark import java
from heirlog.testing.cluster import Cluster

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorials" / "declarative-pipelines.md"
RUN_S = 600


def check() -> str:
    try:
        import yaml  # noqa: F401  # Spark reads its project file with it
    except ModuleNotFoundError as error:
        raise jars.Missing("pip install 'pyspark[pipelines]'") from error
    java.provide()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place, Cluster(nodes=1, ledger=False) as cluster:
        project = Path(place) / "declarative"
        shutil.copytree(ROOT / "examples" / "declarative", project)
        environment = {
            **os.environ,
            "HEIRLOG_BOOTSTRAP": cluster.bootstrap_servers,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        said = ""
        for kind, text in blocks:
            if kind == "sh":
                said = _said(text, project, environment)
                continue
            missing = [line for line in text.splitlines() if line not in said]
            assert not missing, f"{missing} not in: {said[-3000:]}"
        assert not project.exists(), "the last commands remove everything"
        return f"{len(blocks)} blocks"


def _said(block: str, folder: Path, environment: dict[str, str]) -> str:
    command = ["bash", "-e", "-c", block]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_S)
    assert not ended.returncode, f"{block}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout + ended.stderr
