"""How long a node's clean stop may take, and what is shown of its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest
from patience import eventually

from heirlog.local import layout as layouts
from heirlog.local.errors import LocalError
from heirlog.local.fork_server import Child
from heirlog.local.layout import NodeLayout
from heirlog.local.processes import LOG_STOP_S, NodeProcess, stop_all, wait_until_ready


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
    monkeypatch.setattr("heirlog.local.processes.started", _instead(f"print({printed!r}, flush=True)\n{program}"))
    process = NodeProcess(layout)
    assert not process.failed, "never started"
    process.start()
    assert process.wait(30)
    assert process.failed and process.end_sentence() == sentence


@pytest.mark.parametrize(
    ("printed", "program", "sentence"),
    [
        ("", "raise SystemExit(1)", "ended with exit code 1: no space left on device for {}"),
        ("heirlog: /data/l", "raise SystemExit(1)", "ended with exit code 1: /data/l; no space left on device"),
        (
            "heirlog: x: No space left on device",
            "raise SystemExit(1)",
            "ended with exit code 1: x: No space left on device",
        ),
        ("", "import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    ],
)
def test_the_end_of_a_node_whose_reason_does_not_fit_on_its_disk_names_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, program: str, sentence: str
) -> None:
    layout = NodeLayout(1, tmp_path / "broker-1")
    layout.directory.mkdir()
    layout.properties_path.touch()
    monkeypatch.setattr("heirlog.local.processes.started", _instead(f"print({printed!r}, flush=True)\n{program}"))
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=4096))
    process = NodeProcess(layout)
    process.start()
    assert process.wait(30)
    assert process.end_sentence() == f"broker 1 {sentence.format(layout.directory)}"


def test_a_long_start_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = layouts.create(tmp_path, [1], [2])
    said: set[str] = set()
    monkeypatch.setattr("heirlog.local.processes.started", _instead("import sys; sys.stdin.read()"))
    silent = [NodeProcess(node) for node in layout.nodes]
    for process in silent:
        process.start()
    with pytest.raises(LocalError, match="broker 1 knows brokers"):
        wait_until_ready(silent[:1], silent[1:], 0.5, said.add)
    assert said == {"waiting until controller 100, broker 1 listen"}
    monkeypatch.setattr(NodeProcess, "listens", lambda process: True)
    monkeypatch.setattr("heirlog.local.ready.known_brokers", lambda address, security: set())
    with pytest.raises(LocalError, match="broker 1 knows brokers"):
        wait_until_ready(silent[:1], silent[1:], 0.5, said.add)
    assert "waiting until the controllers admit broker 1, which may have to check logs first" in said
    silent[0].kill()
    with pytest.raises(LocalError, match="while it started, broker 1 was killed by SIGKILL; its output: /"):
        wait_until_ready(silent[:1], silent[1:], 60)
    silent[1].kill()


def test_a_long_stop_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = layouts.create(tmp_path, [1], [2])
    ignoring = (
        "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); sys.stdin.read()"
    )
    monkeypatch.setattr("heirlog.local.processes.started", _instead(ignoring))
    monkeypatch.setattr("heirlog.local.processes.WAIT_SAID_S", 0.01)
    process = NodeProcess(layout.brokers[0])
    process.start()
    eventually(lambda: process.last_output() == "{}")
    said: set[str] = set()
    assert stop_all([process], [], 1.0, said.add) == [process]
    assert said == {"waiting until broker 1 has stopped"}


def test_what_a_node_said_is_found_in_a_file_that_was_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (layout,) = layouts.create(tmp_path, [1], [2]).brokers
    layout.output_path.write_text("heirlog: of the start before\n" * 10)
    monkeypatch.setattr("heirlog.local.processes.started", _instead("raise SystemExit(1)"))
    process = NodeProcess(layout)
    process.start()
    assert process.wait(30) and process.last_output() == ""
    layout.output_path.write_text("heirlog: begun anew\n")
    assert process.last_output() == "begun anew"


def _instead(program: str) -> object:
    """Starts `program` instead of a node."""

    def start(_arguments: object, output: BinaryIO, _environment: object, _part: object) -> Child:
        return subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )

    return start
