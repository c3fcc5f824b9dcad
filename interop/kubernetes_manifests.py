"""The manifests of examples/kubernetes against Kubernetes' own schemas, without a cluster.

The schemas are in the package kubernetes-validate, 70 MB with those of all versions: so it is in an environment of its
own below .cache, from requirements/kubernetes.txt.
"""

from __future__ import annotations

import hashlib
import subprocess
import venv
from pathlib import Path

import jars

ROOT = jars.HERE.parent
LOCK = ROOT / "requirements" / "kubernetes.txt"
MANIFESTS = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
VERSIONS = ("1.31", "1.37")
"""The oldest and the newest that the example is meant for."""


def check() -> str:
    place = _environment()
    for file in MANIFESTS:
        for version in VERSIONS:
            _validated(place, file.read_text(), version)
            # a check that accepts everything would pass as well
            broken = file.read_text().replace("backoffLimit: 2", "backoffLimits: 2")
            try:
                _validated(place, broken, version)
            except AssertionError:
                continue
            raise AssertionError(f"{file}: a field that does not exist was accepted")
    return f"{len(MANIFESTS)} file, Kubernetes {' and '.join(VERSIONS)}"


def _validated(place: Path, text: str, version: str) -> None:
    command = [place / "bin" / "kubernetes-validate", "--strict", "--kubernetes-version", version, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@jars.one_at_a_time
def _environment() -> Path:
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    place = jars.CACHE / f"kubernetes-{digest}"
    if not (place / "done").exists():
        venv.create(place, with_pip=True, clear=True)
        jars.retried([str(place / "bin" / "pip"), "install", "-q", "--require-hashes", "-r", str(LOCK)])
        (place / "done").touch()
    return place
