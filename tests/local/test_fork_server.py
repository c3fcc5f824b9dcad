"""A node that is forked cannot be told from one that was started as a process of its own."""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import eventually

from heirlog.local import fork_server
from heirlog.local.fork_server import LOST, Child, ForkedChild, started

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nodes are forked on Linux only")

PROGRAM = """
import gc, json, os, random, resource, signal, sys, threading
if sys.argv[1:] == ["sleep"]:
    print("sleeping", flush=True)
    sys.stdin.read()
elif sys.argv[1:] == ["thread"]:
    threading.Thread(target=lambda: (threading.Event().wait(0.05), print("after the main thread"))).start()
elif sys.argv[1:] == ["fail"]:
    raise ValueError("no")
elif sys.argv[1:] == ["leave"]:
    sys.exit(7)
elif sys.argv[1:] == ["modules"]:
    print(*sys.modules)
else:
    said = {
        "arguments": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "environment": dict(os.environ),
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:-1], "session": os.getsid(0) == os.getpid(),
        "random": random.random(), "path": sys.path, "collects": gc.isenabled(), "threads": threading.active_count(),
        "term": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "orphan": __spec__.name,
        "int": signal.getsignal(signal.SIGINT) == signal.default_int_handler,
        "hup": signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, "umask": os.umask(0),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    }
    print(json.dumps(said), flush=True)
"""


class Runs:
    """Starts PROGRAM."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM)
        self.environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(folder) + ":" + ":".join(sys.path)}

    def start(self, *arguments: str) -> Child:
        with (self.folder / "output").open("wb") as output:
            return started(["program", *arguments], output, self.environment)

    def printed(self) -> str:
        return (self.folder / "output").read_text()

    def sleeper(self) -> Child:
        child = self.start("sleep")
        eventually(lambda: self.printed() == "sleeping\n")
        return child


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_it_finds_what_a_process_of_its_own_finds(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("ONLY_NOW", "a value")
    monkeypatch.chdir(runs.folder)
    runs.environment = {**runs.environment, "ONLY_NOW": "a value"}

    fork_server.prepare(runs.environment)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    umask = os.umask(0o077)
    request.addfinalizer(lambda: (os.umask(umask), resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))

    def said() -> dict[str, Any]:
        child = runs.start("one", "two words", "ü")
        assert child.wait(30) == 0
        found = json.loads(runs.printed())
        assert isinstance(found, dict)
        return found

    forked, again = said(), said()
    assert forked["random"] != again["random"]
    monkeypatch.setattr(fork_server, "prepare", lambda environment: None)
    plain = said()
    for each in (forked, plain):
        del each["random"]
    assert forked == plain
    assert forked["arguments"] == ["one", "two words", "ü"] and forked["session"] and forked["collects"]
    assert (forked["umask"], forked["files"]) == (0o077, [soft - 1, hard])


def test_its_command_line_is_that_of_a_process_of_its_own(runs: Runs) -> None:
    child = runs.sleeper()
    assert isinstance(child, ForkedChild)
    command = [sys.executable, "-P", "-m", "program", "sleep"]
    shown = psutil.Process(child.pid).cmdline()
    assert shown[:5] == command and not any(shown[5:])
    child.stdin.close()
    assert child.wait(30) == 0


@pytest.mark.parametrize(
    ("argument", "code", "printed"),
    [("leave", 7, ""), ("fail", 1, "ValueError: no"), ("thread", 0, "after the main thread")],
)
def test_it_ends_as_a_process_of_its_own_does(runs: Runs, argument: str, code: int, printed: str) -> None:
    child = runs.start(argument)
    assert child.wait(30) == code and child.poll() == code
    assert printed in runs.printed()


def test_signals_reach_it_and_are_its_exit_code(runs: Runs) -> None:
    child = runs.sleeper()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)
    assert child.poll() is None
    child.send_signal(signal.SIGSTOP)
    eventually(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED)
    child.send_signal(signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL
    assert not psutil.pid_exists(child.pid)
    child.send_signal(signal.SIGKILL)  # to nobody


def test_a_signal_before_it_is_looked_at_again_reaches_no_other_process(runs: Runs) -> None:
    child = runs.start("leave")
    eventually(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == 7


def test_the_first_controller_does_not_wait_for_the_modules_of_brokers(runs: Runs) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, open(os.devnull, "rb") as empty:
        for number, part in enumerate((fork_server.CONTROLLERS, fork_server.BROKERS)):
            # both before the server begins, so that it never imports because nothing was asked
            request = fork_server.request_for(["program", "modules"], runs.environment, part)
            with (runs.folder / part).open("wb") as output:
                message = json.dumps({**request, "number": number}).encode()
                socket.send_fds(ours, [message], [empty.fileno(), output.fileno()])
        command = [sys.executable, "-P", "-m", fork_server.__name__]
        server = subprocess.Popen(command, stdin=theirs, env=dict(runs.environment))
        try:
            for node in [json.loads(socket.recv_fds(ours, 1_000, 0)[0])["pid"] for _ in range(2)]:
                eventually(lambda node=node: psutil.Process(node).status() == psutil.STATUS_ZOMBIE)
        finally:
            ours.close()
            server.wait(30)
    controller, broker = (
        (runs.folder / part).read_text().split() for part in (fork_server.CONTROLLERS, fork_server.BROKERS)
    )
    assert set(fork_server.PARTS[fork_server.CONTROLLERS]) <= set(controller)
    assert "heirlog.broker.broker" not in controller and "heirlog.broker.broker" in broker
    assert not {"rich", "typer", "pytest"} & {*controller, *broker}, "no node needs them"


def test_nodes_outlive_their_server_and_another_one_is_begun(runs: Runs) -> None:
    child = runs.sleeper()
    server = psutil.Process(child.pid).parent()
    assert server is not None and server.pid != os.getpid()
    server.kill()
    eventually(lambda: psutil.Process(child.pid).ppid() != server.pid)
    assert child.poll() is None
    later = runs.start("leave")  # finds that it is gone
    assert later.wait(30) == 7
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == LOST
    assert isinstance(runs.start("leave"), ForkedChild)


def descriptors_of_processes() -> set[str]:
    """Those of this process; of the others, any thread may open and close some meanwhile."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            if "pidfd" in os.readlink(f"/proc/self/fd/{number}"):
                found.add(number)
    return found


def test_an_answer_to_a_question_that_was_interrupted_is_not_taken_for_another(runs: Runs) -> None:
    server = fork_server.prepare(runs.environment)
    assert server is not None
    ours, theirs = os.pipe()
    with (runs.folder / "interrupted").open("wb") as output:
        request = {**fork_server.request_for(["program", "sleep"], runs.environment), "number": 0}
        socket.send_fds(server._socket, [json.dumps(request).encode()], [ours, output.fileno()])
    os.close(ours)
    os.close(theirs)
    gc.collect()  # nodes of earlier tests
    before = descriptors_of_processes()
    child = runs.start("leave")
    assert child.wait(30) == 7
    child.stdin.close()
    gc.collect()
    assert descriptors_of_processes() == before
    eventually(lambda: (runs.folder / "interrupted").read_text() == "sleeping\n", "the first one to run, to its end")


def test_how_a_node_ended_can_be_asked_again(runs: Runs) -> None:
    """An exception in the middle of the question, such as that of Ctrl-C, leaves it open."""
    child, other = runs.start("leave"), runs.sleeper()
    assert isinstance(child, ForkedChild)
    eventually(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert child._server.status(child.pid) == 7
    assert child.wait(30) == 7
    other.send_signal(signal.SIGTERM)
    assert other.wait(30) == -signal.SIGTERM


def test_signals_to_all_processes_leave_the_server_until_its_process_has_ended(runs: Runs) -> None:
    child = runs.sleeper()
    server = psutil.Process(child.pid).parent()
    assert server is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server.send_signal(number)
    child.stdin.close()
    assert child.wait(30) == 0
    later = runs.start("sleep")
    later.send_signal(signal.SIGTERM)  # before it has come far
    assert later.wait(30) == -signal.SIGTERM


def test_a_process_that_ignores_the_end_of_its_children_is_told(runs: Runs) -> None:
    program = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from heirlog.local.fork_server import ForkedChild, started; output = open(os.devnull, 'wb')\n"
        "child = started(['program', 'leave'], output, dict(os.environ))\n"
        "print(isinstance(child, ForkedChild), child.wait(30))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=dict(runs.environment)
    )
    assert (ended.stdout, ended.stderr) == ("True 7\n", "")


def test_without_descriptors_of_processes_it_is_a_plain_child(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some interpreters were built for kernels that had none."""
    monkeypatch.delattr(os, "pidfd_open")
    child = runs.start("leave")
    assert isinstance(child, subprocess.Popen) and child.wait(30) == 7


def test_a_request_that_is_too_large_is_for_a_plain_child(runs: Runs) -> None:
    server = fork_server.prepare(runs.environment)
    runs.environment = {**runs.environment, "LARGE": "x" * 100_000, "LARGER": "x" * 100_000}
    child = runs.start("leave")
    assert isinstance(child, subprocess.Popen) and child.wait(30) == 7
    assert server is not None and server.is_usable


def test_no_other_child_gets_the_descriptor_of_a_node(runs: Runs) -> None:
    child = runs.sleeper()
    assert isinstance(child, ForkedChild) and not os.get_inheritable(child._descriptor)
    child.stdin.close()
    assert child.wait(30) == 0


def test_after_an_upgrade_of_heirlog_nodes_come_from_another_server(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fork_server.prepare(runs.environment)
    (runs.folder / "version.py").touch()
    monkeypatch.setattr("heirlog.version.__file__", str(runs.folder / "version.py"))
    assert fork_server.prepare(runs.environment) is not before


def test_threads_start_nodes_at_the_same_time(runs: Runs) -> None:
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(runs.start("leave").wait(60))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert codes == [7] * 10


def test_the_server_ends_with_its_process(runs: Runs) -> None:
    program = (
        "import os, psutil, sys; from heirlog.local import fork_server\n"
        "fork_server.prepare(dict(os.environ)); print(psutil.Process().children()[0].pid, flush=True)\n"
        "os._exit(0) if sys.argv[1:] else None"
    )
    for arguments in ([], ["suddenly"]):
        command = [sys.executable, "-X", "dev", "-W", "error", "-c", program, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(runs.environment))
        assert ended.stderr == ""
        eventually(lambda pid=int(ended.stdout): not psutil.pid_exists(pid))


def test_a_process_that_was_forked_has_a_server_of_its_own(runs: Runs) -> None:
    ours = fork_server.prepare(runs.environment)
    assert ours is not None
    with fork_server._lock:  # of another thread, which the new process does not have
        pid = os.fork()
    if pid == 0:
        child = runs.start("leave")
        os._exit(0 if isinstance(child, ForkedChild) and child.wait(30) == 7 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert ours.is_usable and runs.start("leave").wait(30) == 7


def test_what_an_interpreter_reads_at_its_start_needs_another_server(runs: Runs) -> None:
    before = fork_server.prepare(runs.environment)
    assert fork_server.prepare({**runs.environment, "ANYTHING": "else"}) is before
    assert fork_server.prepare({**runs.environment, "PYTHONUTF8": "1"}) is not before


def test_a_process_that_has_no_room_for_descriptors_says_so(runs: Runs) -> None:
    program = (
        "import os, resource, sys; from heirlog.local.fork_server import prepare, started\n"
        "prepare(dict(os.environ)); output = open(sys.argv[1], 'wb')\n"
        "first = started(['program', 'leave'], output, dict(os.environ)); first.wait(); first.stdin.close()\n"
        "used = max(map(int, os.listdir('/proc/self/fd')))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (used + 9, used + 9))\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(os.open('/', os.O_RDONLY))\n"
        "except OSError: pass\n"
        "for _ in range(4):\n"
        "    try: child = started(['program', 'leave'], output, dict(os.environ))\n"
        "    except OSError as error: print(error.errno)\n"
        "    else: print(child.wait())\n"
        "    os.close(held.pop())\n"
    )
    command = [sys.executable, "-c", program, str(runs.folder / "output")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(runs.environment))
    assert ended.stderr == ""
    # no room for the pipe, for half of it, for the descriptor of the node; and room enough
    assert ended.stdout.split() == [str(errno.EMFILE)] * 3 + ["7"]
