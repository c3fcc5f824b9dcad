"""Brokers with more replicas than descriptors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_a_broker_serves_restarts_and_deletes_more_replicas_than_it_has_descriptors() -> None:
    script = Path(__file__).with_name("few_descriptors_process.py")
    path = os.pathsep.join([str(script.parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script), "320"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
