"""How long a node's clean stop may take."""

from __future__ import annotations

from pathlib import Path

from heirlog.local.layout import NodeLayout
from heirlog.local.processes import LOG_STOP_S, NodeProcess


def test_a_node_with_many_partitions_gets_the_time_that_their_clean_stop_takes(tmp_path: Path) -> None:
    process = NodeProcess(NodeLayout(1, tmp_path / "broker-1"))
    assert process.stop_timeout_s(60) == 60, "not formatted yet"
    for number in range(500):
        (tmp_path / "broker-1" / "log" / f"t-{number}").mkdir(parents=True)
    assert process.stop_timeout_s(60) == 60 + 500 * LOG_STOP_S
