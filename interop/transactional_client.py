"""Transactions of Apache Kafka's Java client against heirlog.

rules    begin, send, commit and abort; who reads what; a second producer of the same id; offsets of a group. At
         transaction.version 2 each transaction has an epoch of its own, at 0 all have the same
copy     records go from one topic to another in transactions, together with the offsets of their group. Meanwhile
         brokers are killed and transaction.version goes to 0 and back to 2: each record is in the copy once
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from functools import partial

import jars
from clients import VENV, java_command, output_of

from heirlog.testing import Cluster

PROGRAM = "TransactionalClient"
RECORDS = 6000
TRANSACTIONS = 8
"""Whose epochs the program prints."""


def check() -> str:
    jars.fetch()
    with Cluster(nodes=3, ledger=False) as running:
        epochs = _epochs(running, "level-2")
        assert epochs == list(range(epochs[0], epochs[0] + TRANSACTIONS)), f"at transaction.version 2: epochs {epochs}"
        killed = _copy(running)
        _set_level(running, "downgrade", 0)
        epochs = _epochs(running, "level-0")
        # an abort of a client of level 0 asks for the next epoch
        assert len(set(epochs)) < TRANSACTIONS, f"at transaction.version 0: epochs {epochs}"
    return f"epochs, fencing, offsets at levels 2 and 0; {RECORDS} records copied once each, {killed} brokers killed"


def _epochs(running: Cluster, name: str) -> list[int]:
    printed = output_of(java_command(PROGRAM, "rules", running.bootstrap_servers, name)).splitlines()
    assert printed[-1] == "done", printed
    return [int(word) for line in printed if line.startswith("epochs ") for word in line.split()[1:]]


def _copy(running: Cluster) -> int:
    brokers = running.brokers
    events: list[Callable[[], None]] = [
        partial(running.kill, brokers[0]),
        partial(_start, running, brokers[0]),
        partial(_set_level, running, "downgrade", 0),
        partial(running.kill, brokers[1]),
        partial(_start, running, brokers[1]),
        partial(_set_level, running, "upgrade", 2),
        partial(running.kill, brokers[2]),
        partial(_start, running, brokers[2]),
    ]
    step, at = RECORDS // (len(events) + 1), 0
    lines = []
    command = java_command(PROGRAM, "copy", running.bootstrap_servers, str(RECORDS))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdout is not None and client.stderr is not None
            for line in client.stdout:
                lines.append(line.strip())
                if line.startswith("copied ") and events and int(line.split()[1]) >= at + step:
                    at += step
                    events.pop(0)()
            problems = client.stderr.read()
        finally:
            client.kill()
    assert lines[-1:] == ["done"], f"the copying client ended with {client.returncode}: {problems[-3000:]}"
    assert not events, f"{len(events)} events did not happen"
    found = Counter(output_of(java_command(PROGRAM, "read", running.bootstrap_servers, "to")).splitlines()[:-1])
    missing = RECORDS - len(found)
    assert found == Counter(f"record-{n}" for n in range(RECORDS)), f"{missing} missing, {found.most_common(3)}"
    return len(brokers)


def _start(running: Cluster, broker: int) -> None:
    running.start(broker)
    running.wait_until_ready()


def _set_level(running: Cluster, verb: str, level: int) -> None:
    feature = f"transaction.version={level}"
    output_of([str(VENV / "heirlog"), "features", verb, "--feature", feature, "-b", running.bootstrap_servers])
