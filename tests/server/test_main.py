"""What a process does around its node."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heirlog.metadata.config_def import parse_static
from heirlog.server.main import LOCK_NAME, StartRefused, directories_of, lock_directories, watched_directories


def test_a_directory_belongs_to_one_process(tmp_path: Path) -> None:
    held = lock_directories([str(tmp_path)], {})
    with pytest.raises(StartRefused, match="in use by another process"):
        lock_directories([str(tmp_path)], {})
    for lock in held:
        os.close(lock)
    for lock in lock_directories([str(tmp_path)], {}):
        os.close(lock)
    assert os.listdir(tmp_path) == [LOCK_NAME]


def test_a_refused_lock_lets_go_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    held = lock_directories([str(tmp_path / "b")], {})
    with pytest.raises(StartRefused):
        lock_directories([str(tmp_path / "a"), str(tmp_path / "b")], {})
    for lock in lock_directories([str(tmp_path / "a")], {}) + held:
        os.close(lock)


def test_a_directory_that_is_not_there_is_left_to_the_node(tmp_path: Path) -> None:
    assert lock_directories([str(tmp_path / "nowhere")], {}) == []


def test_the_directory_of_the_metadata_log_is_locked_once(tmp_path: Path) -> None:
    """Two processes with log directories of their own could write one metadata log."""
    (tmp_path / "log").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "log")
    roles = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "C"}
    known = roles | {"controller.quorum.bootstrap.servers": "localhost:1", "log.dirs": str(tmp_path / "log")}
    for own, more in (("", []), ("log", []), ("alias", []), ("own", ["own"])):
        config = parse_static(known | ({"metadata.log.dir": str(tmp_path / own)} if own else {}))
        assert directories_of(config) == [str(tmp_path / name) for name in ("log", *more)]


def test_the_directory_of_the_metadata_log_is_watched_by_its_own_name(tmp_path: Path) -> None:
    """A node that knows it by another name would only take a log directory offline, and write metadata into it."""
    (tmp_path / "log").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "log")
    roles = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "C"}
    known = roles | {"controller.quorum.bootstrap.servers": "localhost:1", "log.dirs": str(tmp_path / "log")}
    for own, watched in (("log", ["log"]), ("alias", ["log", "alias"])):
        config = parse_static(known | {"metadata.log.dir": str(tmp_path / own)})
        assert watched_directories(config) == [str(tmp_path / name) for name in watched]


CHILD = """
import sys
import heirlog.server.main as main
from heirlog.metadata.config_def import parse_static
from heirlog.protocol.types import Endpoint

class Node:
    def __init__(self, env, config, unusable, log_levels, now_ns, signatures, stores):
        self.env = env
        self.listeners = [(each.name, each.endpoint) for each in config.all_listeners]

    def start(self):
        START

    def shutdown(self):
        SHUTDOWN

    def directory_replaced(self, path, error):
        self.env.stop(1, f"replaced: {error}")

    def accepted(self, transport):
        raise AssertionError

main.Node = Node
config = parse_static({
    "process.roles": "broker", "node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:" + sys.argv[2],
    "controller.listener.names": "C", "controller.quorum.voters": "2@localhost:1", "log.dirs": sys.argv[1],
})
sys.exit(main.run_node(config, on_listening=lambda: print("listening", flush=True)))
"""


class Running:
    """`run_node` in a child, around a node whose `start` and `shutdown` are these lines."""

    def __init__(self, directory: Path, *, start: str = "pass", shutdown: str = "pass", port: int = 0) -> None:
        code = CHILD.replace("START", start).replace("SHUTDOWN", shutdown)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(directory), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def wait_until_listening(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "listening\n"

    def end(self) -> tuple[int, str]:
        """Exit code and the last line on stderr."""
        _, errors = self.process.communicate(timeout=120)
        return self.process.returncode, (errors.splitlines() or [""])[-1]


def test_a_signal_asks_the_node_to_shut_down_and_its_exit_code_is_the_process_s(tmp_path: Path) -> None:
    running = Running(tmp_path, shutdown="self.env.call_later(1, lambda: self.env.stop(0, 'done'))")
    running.wait_until_listening()
    running.process.send_signal(signal.SIGTERM)
    code, last = running.end()
    assert code == 0
    assert '"exit_code": 0, "reason": "done"' in last


def test_a_second_signal_does_not_wait_for_the_clean_stop(tmp_path: Path) -> None:
    running = Running(tmp_path, shutdown="print('shutting down', flush=True)")
    running.wait_until_listening()
    running.process.send_signal(signal.SIGINT)
    assert running.process.stdout is not None
    assert running.process.stdout.readline() == "shutting down\n"
    running.process.send_signal(signal.SIGINT)
    code, last = running.end()
    assert code == 1
    assert last == "heirlog: stopped by a second signal, before the clean stop was done"


def test_a_node_that_stops_itself_leaves_its_sentence(tmp_path: Path) -> None:
    code, last = Running(tmp_path, start="self.env.stop(1, 'the directory is not formatted')").end()
    assert (code, last) == (1, "heirlog: the directory is not formatted")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
@pytest.mark.parametrize("cause", ["self.env.stop(1, 'the disk is full')", "1 // 0"])
def test_a_node_ends_also_if_its_output_goes_to_a_full_disk(tmp_path: Path, cause: str) -> None:
    start = f"from heirlog.local.node_log import NodeLog; sys.stderr = NodeLog('/dev/full'); {cause}"
    running = Running(tmp_path, start=start)
    code, _ = running.end()
    assert code == 1


def test_an_error_inside_the_brain_ends_the_node(tmp_path: Path) -> None:
    code, last = Running(tmp_path, start="self.env.call_later(1, lambda: 1 // 0)").end()
    assert code == 1
    assert last.startswith("heirlog: an internal error ended the node: ZeroDivisionError")


def test_after_stop_the_node_hears_nothing(tmp_path: Path) -> None:
    start = "self.env.call_later(0, lambda: print('late')); self.env.stop(0, 'at once')"
    running = Running(tmp_path, start=start)
    out, _ = running.process.communicate(timeout=120)
    assert running.process.returncode == 0
    assert "late" not in out


def test_a_port_in_use_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, last = Running(tmp_path, port=taken.getsockname()[1]).end()
    assert code == 1
    assert "listener PLAINTEXT cannot listen on 127.0.0.1:" in last


def test_a_node_raises_its_limit_of_open_files_to_what_is_allowed() -> None:
    program = """
import resource
from heirlog.server.main import raise_file_limit
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
