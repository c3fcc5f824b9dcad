"""Formatting the nodes of a local cluster that already has files."""

from __future__ import annotations

from pathlib import Path

from heirlog.local import layout as layouts
from heirlog.local.format import format_cluster
from heirlog.raft.snapshot import BOOTSTRAP


def test_controllers_that_have_removed_their_first_checkpoint_stay_as_they_are(tmp_path: Path) -> None:
    layout = layouts.create(tmp_path, [9092], [9094, 9095, 9096])
    format_cluster(layout, {})
    first = list(tmp_path.rglob(BOOTSTRAP.file_name))
    assert len(first) == 3
    for path in first:
        path.unlink()
    before = sorted(tmp_path.rglob("*"))
    format_cluster(layout, {})
    assert sorted(tmp_path.rglob("*")) == before
