"""Signals at random moments of every drill, on real processes: each ends soon and leaves nothing behind."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from patience import eventually

from heirlog.drill.runner import below

LATEST_S = {"last-replica-standing": 2.0, "unclean-recovery": 3.0, "stdlib": 4.0, "soak": 5.0}
"""Signals come until then: at most half of what the drill takes on a machine that does nothing else (4.5 s, 7 s, 9 s, a
minute), since one that has passed before its signal shows nothing."""
STOPPED = r"heirlog: the drill was stopped after \d+ s, before its verdict: .* was not checked\n"
ENDS_S = 20.0
"""0.1 to 0.5 s on a machine that does nothing else; an orderly end of a cluster that is still starting took 30 s."""


def started(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A drill whose temporary files, and those of its children, are in this folder, and its result too."""
    command = [sys.executable, "-m", "heirlog", "drill", *arguments, "--out", str(tmp_path / "out")]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes_of(tmp_path: Path) -> list[psutil.Process]:
    """Those that inherited the folder, but for zombies."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR", "").startswith(str(tmp_path)) and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def assert_ends_and_leaves_nothing(drill: subprocess.Popen[str], tmp_path: Path, said: str = "") -> None:
    """said: the whole of stderr, as a pattern."""
    began_s = time.monotonic()
    _, err = drill.communicate(timeout=60)
    assert time.monotonic() - began_s < ENDS_S
    assert drill.returncode == 130 and re.fullmatch(said, err), err
    assert [path.name for path in tmp_path.iterdir()] == []
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", LATEST_S)
def test_a_signal_at_a_random_moment_ends_a_drill_without_leavings(
    name: str, number: signal.Signals, tmp_path: Path
) -> None:
    drill = started(tmp_path, name)
    # its folder is there once signals are its own; before that nothing is begun
    eventually(lambda: any(tmp_path.glob("heirlog-drill-*")))
    time.sleep(random.Random(f"{name} {number}").uniform(0, LATEST_S[name]))
    drill.send_signal(number)
    assert_ends_and_leaves_nothing(drill, tmp_path, STOPPED)


def test_further_signals_do_not_disturb_the_end(tmp_path: Path) -> None:
    drill = started(tmp_path, "soak")
    eventually(lambda: len(processes_of(tmp_path)) >= 5, within_s=60)
    for _ in range(20):
        drill.send_signal(signal.SIGINT)
        drill.send_signal(signal.SIGTERM)
        time.sleep(0.005)
    assert_ends_and_leaves_nothing(drill, tmp_path, STOPPED)


def test_the_pipeline_drill_ends_with_its_jvm(tmp_path: Path) -> None:
    drill = started(tmp_path, "pipeline", "--quick", "--records", "5000")

    def jvm_works() -> bool:
        for process in processes_of(tmp_path):
            with suppress(psutil.NoSuchProcess):  # the drill starts some that end soon
                if "java" in process.name():
                    return True
        return False

    eventually(jvm_works, within_s=120)
    drill.send_signal(signal.SIGINT)
    assert_ends_and_leaves_nothing(drill, tmp_path, STOPPED)


def test_what_a_signal_ends_is_no_failure_of_the_drill(tmp_path: Path) -> None:
    """A drill whose processes end writes a verdict: it must not, if they end with it."""
    program = (
        "import subprocess, threading; from pathlib import Path; from heirlog.cli.drill_run import run_drill\n"
        "def drill(runner, folder):\n"
        "    job = subprocess.Popen(['sleep', '100'])\n"
        "    print('begun', flush=True)\n"
        "    job.wait()\n"
        "    (folder / 'timeline.svg').write_text('FAILED')\n"
        "    (folder / 'verdict.json').write_text('{}')\n"
        "    threading.Event().wait()\n"
        f"run_drill('x', Path({str(tmp_path / 'out')!r}), drill)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    drill = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert drill.stdout is not None and drill.stdout.readline() == "begun\n"
    drill.send_signal(signal.SIGINT)
    assert_ends_and_leaves_nothing(drill, tmp_path, STOPPED)


def test_a_signal_ends_a_drill_that_waits_in_a_call_which_nothing_interrupts(tmp_path: Path) -> None:
    """librdkafka's flush is one: it waits for acknowledgements, here of brokers that are not there."""
    stuck = (
        "from heirlog.drill.runner import DrillRunner; from confluent_kafka import Producer\n"
        "def drill():\n"
        "    producer = Producer({'bootstrap.servers': '127.0.0.1:1', 'log_level': 0})\n"
        "    producer.produce('t', b'')\n"
        "    print('flushing', flush=True)\n"
        "    producer.flush(60)\n"
        "DrillRunner().run(drill)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    drill = subprocess.Popen(
        [sys.executable, "-c", stuck], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert drill.stdout is not None and drill.stdout.readline() == "flushing\n"
    drill.send_signal(signal.SIGINT)
    assert_ends_and_leaves_nothing(drill, tmp_path)


def test_a_signal_that_the_system_gives_to_another_thread_ends_a_drill(tmp_path: Path) -> None:
    program = (
        "from heirlog.drill.runner import DrillRunner; import signal, threading\n"
        "def drill():\n"
        "    print('begun', flush=True)\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "    threading.Event().wait()\n"
        "DrillRunner().run(drill)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    drill = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert drill.stdout is not None and drill.stdout.readline() == "begun\n"
    assert_ends_and_leaves_nothing(drill, tmp_path)


@pytest.mark.parametrize("ending", ["return", "raise ValueError('it failed')"])
def test_a_drill_that_ends_by_itself_leaves_nothing(ending: str, tmp_path: Path) -> None:
    program = (
        "from heirlog.drill.runner import DrillRunner; from heirlog.testing import Cluster\n"
        "def drill():\n"
        "    with Cluster(nodes=1):\n"
        f"        {ending}\n"
        "DrillRunner().run(drill)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ended.returncode == (0 if ending == "return" else 1), ended.stderr
    assert list(tmp_path.iterdir()) == [] and processes_of(tmp_path) == []


def test_who_comes_from_a_process_is_found_though_numbers_started_over() -> None:
    parents = {1: 0, 32_700: 1, 32_760: 32_700, 12: 32_760, 11: 12, 40: 1, 41: 40}
    assert below(32_700, parents) == {32_760, 12, 11}
    assert below(41, parents) == set()
