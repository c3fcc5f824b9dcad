"""The files for containers, judged by hadolint, a parser of Compose files and the schemas of Kubernetes.

They are in packaging/ and examples/kubernetes. tests/processes/test_container.py runs the nodes of packaging/, without
an engine.
"""

from __future__ import annotations

import subprocess

import environments
import jars

ROOT = jars.HERE.parent
PACKAGING = ROOT / "packaging"
EXAMPLE = ROOT / "examples" / "kubernetes"
COMPOSE = """
import sys
from compose_spec import PyCompose, PyOptions
options = PyOptions()
options.apply_merge = True
found = options.from_yaml(open(sys.argv[1]).read())
found.validate()
print(len(found.services))
"""


def check() -> str:
    """For `make interop`. Raises AssertionError."""
    programs = environments.prepared("packaging") / "bin"
    _run(programs / "hadolint", PACKAGING / "Containerfile")
    _run(programs / "hadolint", EXAMPLE / "Containerfile")
    manifests = (PACKAGING / "kubernetes.yaml", EXAMPLE / "pipeline.yaml")
    kinds = [_run(programs / "kubernetes-validate", "--strict", file).count(" passed ") for file in manifests]
    services = int(_run(programs / "python", "-c", COMPOSE, PACKAGING / "compose.yaml"))
    assert (kinds, services) == ([7, 3], 6)
    return f"two container files, {services} services, {sum(kinds)} objects of Kubernetes"


def _run(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
