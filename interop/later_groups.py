"""Apache Kafka's Java client in groups of the consumer protocol and in share groups, on heirlog and on Apache Kafka.

java/LaterGroups.java plays what the two have in common, and prints the same on both.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import jars
from clients import java_command
from suites.nodes import heirlog_node, kafka_node

LIMIT_S = 300


def check() -> str:
    jars.fetch()
    with ThreadPoolExecutor(2) as pool:
        # both wait most of the time
        here, kafka = pool.map(played, (heirlog_node(), kafka_node()))
    assert here == kafka, f"heirlog:\n{here}\nApache Kafka:\n{kafka}"
    return f"{len(here.splitlines()) - 1} lines, as on Apache Kafka"


def played(node: AbstractContextManager[str]) -> str:
    with node as address:
        done = subprocess.run(java_command("LaterGroups", address), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout.endswith("done\n"), f"{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout
