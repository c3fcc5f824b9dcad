"""How long a node's clean stop may take, and what is shown of its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heirlog.local.layout import NodeLayout
from heirlog.local.processes import LOG_STOP_S, NodeProcess


def test_a_node_with_many_partitions_gets_the_time_that_their_clean_stop_takes(tmp_path: Path) -> None:
    process = NodeProcess(NodeLayout(1, tmp_path / "broker-1"))
    assert process.stop_timeout_s(60) == 60, "not formatted yet"
    for number in range(500):
        (tmp_path / "broker-1" / "log" / f"t-{number}").mkdir(parents=True)
    assert process.stop_timeout_s(60) == 60 + 500 * LOG_STOP_S


def test_the_last_output_of_a_node_are_its_own_sentence(tmp_path: Path) -> None:
    layout = NodeLayout(1, tmp_path / "broker-1")
    process = NodeProcess(layout)
    assert process.last_output() == ""
    layout.directory.mkdir()
    layout.output_path.write_text('{"event": "metrics-listening"}\n')
    assert process.last_output() == '{"event": "metrics-listening"}'
    assert process.why_it_ended() == ""
    layout.output_path.write_text('{"event": "stopped"}\nheirlog: the log belongs to node 2\n')
    assert process.last_output() == "the log belongs to node 2"
    assert process.why_it_ended() == "the log belongs to node 2"


@pytest.mark.parametrize(
    ("printed", "program", "sentence"),
    [
        ("heirlog: the disk is full", "raise SystemExit(1)", "broker 1 ended with exit code 1: the disk is full"),
        (
            '{"event": "started"}\nMemoryError',
            "raise SystemExit(3)",
            "broker 1 ended with exit code 3: MemoryError",
        ),
        ('{"event": "started"}', "raise SystemExit(1)", "broker 1 ended with exit code 1"),
        ("", "import os; os.kill(os.getpid(), 9)", "broker 1 was killed by SIGKILL"),
    ],
)
def test_the_end_of_a_node_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, program: str, sentence: str
) -> None:
    layout = NodeLayout(1, tmp_path / "broker-1")
    layout.directory.mkdir()
    layout.properties_path.touch()
    monkeypatch.setattr(subprocess, "Popen", _instead(f"print({printed!r}, flush=True)\n{program}"))
    process = NodeProcess(layout)
    assert not process.failed, "never started"
    process.start()
    assert process.wait(30)
    assert process.failed and process.end_sentence() == sentence


def _instead(program: str) -> object:
    """Popen that starts `program` instead of a node."""
    real = subprocess.Popen

    def start(_command: object, **given: object) -> object:
        return real([sys.executable, "-c", program], **given)  # type: ignore[call-overload]

    return start
