"""Which code a run is of: the same seed gives the same run only with the same code.

A release has a version, but a clone changes between two commits, and a Spark worker may have other code than the
driver. So what a run executes is identified by a checksum of its sources, in a directory or in an archive.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

EXECUTED = (
    "apis",
    "broker",
    "client",
    "context.py",
    "controller",
    "env.py",
    "failure_log.py",
    "log_levels.py",
    "metadata",
    "node",
    "pending.py",
    "rate_limited_log.py",
    "rates.py",
    "protocol",
    "raft",
    "security",
    "sim",
    "storage",
    "version.py",
)
"""What a simulated run imports of heirlog."""


@functools.cache
def code_version() -> str:
    """Twelve hexadecimal digits."""
    digest = sha256()
    root = resources.files("heirlog")
    for name in EXECUTED:
        for path, content in _sources(name, root / name):
            digest.update(b"%s\0%d\0%s" % (path.encode(), len(content), content))
    return digest.hexdigest()[:12]


def _sources(path: str, entry: Traversable) -> Iterator[tuple[str, bytes]]:
    if entry.is_dir():
        for inner in sorted(entry.iterdir(), key=lambda each: each.name):
            yield from _sources(f"{path}/{inner.name}", inner)
    elif path.endswith(".py"):
        yield path, entry.read_bytes()
