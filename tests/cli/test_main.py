"""Ctrl-C at any moment of a command's start: no traceback, and the exit code of an interrupted command."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTED = """\
import sys, time
class Slow:
    # an import that takes until the signal is there
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("importing", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
sys.argv = ["heirlog", *{arguments!r}]
from heirlog.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("heirlog.local.node_command", ["topics", "list"]),
        ("typer", ["topics", "list"]),
        ("heirlog.cli.app", ["--version"]),
        ("heirlog.local.cluster", ["drill", "stdlib"]),
        ("confluent_kafka", ["drill", "soak"]),
        ("pyspark", ["pipeline", "check", "no.toml"]),
        ("heirlog.sim.guards", ["sim", "guards"]),
        ("heirlog.server.main", ["node", "--config", "no.properties"]),
    ],
)
def test_ctrl_c_during_an_import_leaves_no_traceback(module: str, arguments: list[str]) -> None:
    command = [sys.executable, "-c", STARTED.format(module=module, arguments=arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert all(line.startswith("heirlog: the drill was stopped") for line in err.splitlines()), err


def test_ctrl_c_at_random_moments_leaves_no_traceback() -> None:
    chance = random.Random(13)
    # what Python prints before its first statement is not the command's
    program = "from heirlog.cli.main import main; import sys; sys.argv[1:] = ['sim', 'guards']; print(); main()"
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        time.sleep(0.01 + 0.4 * chance.random())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 130) and b"Traceback" not in err


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_standard_stream_is_no_failure(closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m heirlog storage random-uuid {closed}', sys.executable],
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
def test_an_output_that_is_full_is_named() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "heirlog", "storage", "random-uuid"], stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == b"heirlog: standard output cannot be written: No space left on device\n"


def test_a_command_in_the_background_ignores_ctrl_c_as_its_shell_wants() -> None:
    started = 'trap "" INT; echo; exec "$0" -m heirlog sim guards'
    process = subprocess.Popen(
        ["/bin/sh", "-c", started, sys.executable], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdout is not None and process.stdout.readline() == b"\n"
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    process.communicate(timeout=60)
    assert process.returncode == 0
