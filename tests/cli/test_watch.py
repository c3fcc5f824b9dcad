"""`--watch`: what a view prints of rows that change, alone and against a cluster whose broker stops."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from cli.conftest import Heirlog
from patience import eventually

from heirlog.cli import watch
from heirlog.cli.errors import CommandError
from heirlog.cli.watch import Watch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.testing import Cluster

COLUMNS = {"topic": "Topic", "isr": "Isr"}


class Played:
    """Answers in turn; then Ctrl-C."""

    def __init__(self, *looks: list[dict[str, Any]] | Exception) -> None:
        self._looks = iter(looks)

    def __call__(self) -> list[dict[str, Any]]:
        look = next(self._looks, None)
        if look is None:
            raise KeyboardInterrupt
        if isinstance(look, Exception):
            raise look
        return look


def row(topic: str, *isr: int) -> dict[str, Any]:
    return {"topic": topic, "isr": list(isr)}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch.time, "sleep", lambda _: None)


def seen(capsys: pytest.CaptureFixture[str], *looks: list[dict[str, Any]] | Exception, as_json: bool = False) -> Any:
    with pytest.raises(KeyboardInterrupt):
        Watch(COLUMNS, ["topic"], 1.0).run(Played(*looks), as_json)
    return capsys.readouterr()


@pytest.mark.usefixtures("quick")
def test_in_a_pipe_each_row_is_printed_once_and_again_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    looks = [row("a", 1, 2), row("b", 1)], [row("a", 1, 2), row("b", 1)], [row("a", 2), row("b", 1)], [row("a", 2)]
    lines = [line.partition("  ")[2] for line in seen(capsys, *looks).out.splitlines()]
    assert lines == ["Topic a  Isr 1,2", "Topic b  Isr 1", "Topic a  Isr 2", "Topic b  Isr 1  DELETED"]


@pytest.mark.usefixtures("quick")
def test_programs_get_a_json_object_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    out = seen(capsys, [row("a", 1)], [row("a")], [], as_json=True).out
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["topic"], one["isr"], one["deleted"]) for one in found] == [
        ("a", [1], False),
        ("a", [], False),
        ("a", [], True),
    ]
    assert all(one["at"].endswith("Z") for one in found)


@pytest.mark.usefixtures("quick")
def test_a_cluster_that_does_not_answer_is_named_once_and_forgets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    away = OSError("connection refused")
    found = seen(capsys, [row("a", 1)], away, away, [row("a", 1)], away, [row("a", 2)])
    assert [line.partition("  ")[2] for line in found.out.splitlines()] == ["Topic a  Isr 1", "Topic a  Isr 2"]
    assert found.err.count("connection refused; still watching") == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("as_json", [False, True])
def test_in_a_pipe_too_a_view_says_once_that_nothing_is_there(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    view = Watch(COLUMNS, ["topic"], 1.0, while_empty="nothing to see")
    with pytest.raises(KeyboardInterrupt):
        view.run(Played(OSError("away"), [], [], [row("a", 1)], []), as_json)
    found = capsys.readouterr()
    assert found.err.count("nothing to see; still watching\n") == 1 and len(found.out.splitlines()) == 2


@pytest.mark.usefixtures("quick")
def test_errors_that_the_cluster_answers_do_not_end_the_view(capsys: pytest.CaptureFixture[str]) -> None:
    answered = [KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller"), CommandError("min.insync.replicas")]
    found = seen(capsys, answered[0], [row("a", 1)], *answered, [row("a", 2)])
    assert [line.partition("  ")[2] for line in found.out.splitlines()] == ["Topic a  Isr 1", "Topic a  Isr 2"]
    assert found.err.count("; still watching") == 3


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "first", [CommandError("no such topic"), KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not yours")]
)
def test_a_first_look_that_fails_for_good_is_an_error(first: Exception) -> None:
    with pytest.raises(type(first)):
        Watch(COLUMNS, ["topic"], 1.0).run(Played(first), as_json=True)


@pytest.mark.usefixtures("quick")
def test_a_view_of_named_things_ends_when_none_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    lagging = [], [row("a", 1)]
    view = Watch(COLUMNS, ["topic"], 1.0, "a: deleted")
    with pytest.raises(CommandError, match="a: deleted"):
        view.run(Played([row("a", 1)], *lagging, [], OSError("away"), []), as_json=False)
    lines = [line.partition("  ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["Topic a  Isr 1", "Topic a  Isr 1  DELETED"] * 2


@pytest.mark.usefixtures("quick")
def test_on_a_terminal_rows_that_changed_last_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    view = Watch(COLUMNS, ["topic"], 1.0)
    first = [row(f"t{number:02}", 1, 2) for number in range(30)]
    view._take(Played(first))
    changed = [*first[:29], row("t29", 2)]
    view._take(Played(changed))
    console = Console(width=80, height=10, record=True, file=io.StringIO())
    console.print(view._view(console))
    text = console.export_text()
    assert "Topic  Isr  Changed" in text and "t29    2" in text and "t28" not in text
    assert "24 more; " in text and len(text.rstrip().splitlines()) < 10


@pytest.mark.usefixtures("quick")
def test_what_appears_after_an_empty_look_has_the_time_of_its_change() -> None:
    from rich.console import Console

    view = Watch(COLUMNS, ["topic"], 1.0, while_empty="nothing to see")
    console = Console(width=80, height=10, record=True, file=io.StringIO())
    view._take(Played([]))
    console.print(view._view(console))
    assert "nothing to see; " in console.export_text()
    view._take(Played([row("a", 1)]))
    console.print(view._view(console))
    text = console.export_text()
    (line,) = (line for line in text.splitlines() if line.startswith("a"))
    assert line.split()[-1].count(":") == 2 and "nothing to see" not in text


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, config={"broker.heartbeat.interval.ms": 500}) as running:
        yield running


@pytest.mark.usefixtures("default_cluster")
def test_the_isr_of_a_stopped_broker_is_seen(cluster: Cluster, heirlog: Heirlog) -> None:
    cluster.create_topic("watched", replication_factor=2)
    command = [sys.executable, "-m", "heirlog", "topics", "describe", "watched", "--watch", "--interval", "0.1"]
    command += ["-b", cluster.bootstrap_servers]
    ours, theirs = pty.openpty()
    on_terminal = subprocess.Popen(command, stdout=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"})
    os.close(theirs)
    in_pipe = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert in_pipe.stdout is not None
        first = json.loads(in_pipe.stdout.readline())
        assert sorted(first["isr"]) == [1, 2] and not first["deleted"]
        terminal = os.read(ours, 65_536)
        cluster.stop(2)
        last = json.loads(in_pipe.stdout.readline())
        while last["isr"] != [1]:
            last = json.loads(in_pipe.stdout.readline())
        while b"watched  0          1       " not in terminal:
            terminal += os.read(ours, 65_536)
        # nothing answers any more: that is said, and the view continues where the cluster does
        assert in_pipe.stderr is not None
        cluster.kill(1)
        assert "; still watching" in in_pipe.stderr.readline()
        cluster.start(1)
        assert json.loads(in_pipe.stdout.readline())["leader_epoch"] > last["leader_epoch"]
        on_terminal.send_signal(2)
        in_pipe.send_signal(2)
        assert on_terminal.wait(60) == in_pipe.wait(60) == 130
    finally:
        for process in (on_terminal, in_pipe):
            process.kill()
            process.wait()
        os.close(ours)
    cluster.start(2)

    def both_in_sync() -> bool:
        (row,) = json.loads(heirlog("topics", "describe", "watched", "--json").out)
        return sorted(row["isr"]) == [1, 2]

    eventually(both_in_sync, "both brokers in the ISR")


@pytest.mark.usefixtures("default_cluster")
def test_the_deletion_of_the_topic_ends_its_view_with_a_sentence(cluster: Cluster, heirlog: Heirlog) -> None:
    cluster.create_topic("short-lived", partitions=1)
    command = [sys.executable, "-m", "heirlog", "topics", "describe", "short-lived", "--watch", "--interval", "0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None and process.stderr is not None
        assert "short-lived" in process.stdout.readline()
        assert heirlog("topics", "delete", "short-lived").code == 0
        assert process.wait(60) == 1
        assert process.stdout.read().splitlines()[-1].endswith("DELETED")
        *missed, last = process.stderr.read().splitlines()
        assert last == "heirlog: short-lived: deleted, so nothing is left to watch"
        # a busy machine may miss answers before that
        assert all(line.endswith("; still watching") for line in missed), missed


@pytest.mark.usefixtures("default_cluster")
def test_the_plan_is_watched_until_the_partition_has_its_leader_again(cluster: Cluster, heirlog: Heirlog) -> None:
    assert heirlog("topics", "create", "recovered", "--replica-assignment", "2").code == 0
    command = [sys.executable, "-m", "heirlog", "recover", "plan", "recovered", "--watch", "--interval", "0.1"]
    processes = []
    try:
        for more in ([], ["--json"]):
            started = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            processes.append(started)
        lines, objects = (process.stdout for process in processes)
        assert lines is not None and objects is not None
        cluster.kill(2)
        lost = json.loads(objects.readline())
        assert (lost["topic"], lost["leader"], lost["deleted"]) == ("recovered", None, False)
        assert "Topic recovered  Partition 0  Leader none" in lines.readline()
        cluster.start(2)
        while lost["leader"] is None:
            lost = json.loads(objects.readline())
        assert (lost["leader"], lost["choices"], lost["state"]) == (2, [], "Led")
        line = lines.readline()
        while "Leader none" in line:
            line = lines.readline()
        assert "Leader 2" in line and line.endswith("State has a leader\n")
        assert heirlog("topics", "delete", "recovered").code == 0
        for process in processes:
            assert process.stderr is not None
            # it does not exist any more: said, and still watched; a busy machine may miss answers before that
            while "topic recovered cannot be described" not in (said := process.stderr.readline()):
                assert said
            process.send_signal(2)
            assert process.wait(60) == 130
    finally:
        for process in processes:
            process.kill()
            process.wait()
