"""The runner of librdkafka's own tests, of any release: compiled without optimization, and what its report says."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import jars

from suites.verdict import Outcomes

RUNNER = Path("tests", "test-runner")
ADMIN = "0081"
TIMEOUT_S = 300
AT_ONCE = 10
RERUNS = 2
"""How often a test that failed is run again, beside fewer others, before it counts: many wait for a fixed time."""


def compile_runner(home: Path, without: Sequence[str]) -> None:
    """In a folder of its sources. without: features that it does not need. Raises jars.Missing, RuntimeError."""
    jars.need("gcc", "g++", "make", install="a C compiler (on Debian: apt install build-essential zlib1g-dev)")
    disabled = [f"--disable-{name}" for name in ("optimization", "debug-symbols", *without)]
    steps = [
        ["./configure", *disabled],
        ["make", "-j2", "-C", "src", "librdkafka.a"],
        ["make", "-j2", "-C", "src-cpp", "librdkafka++.a"],
        ["make", "-j2", "-C", "tests", "test-runner"],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(step)} failed:\n{done.stdout[-3000:]}")


def run_once(
    home: Path,
    servers: str,
    chosen: Mapping[str, str],
    *options: str,
    loud: bool = False,
    login: Mapping[str, str] | None = None,
    kafka: Path | None = None,
) -> Outcomes:
    """home: where it was compiled. login: of its clients. kafka: a folder with Kafka's scripts."""
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        settings = Path(directory) / "test.conf"
        given = {"bootstrap.servers": servers, **(login or {})}
        settings.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        received = {
            # the runner waits longer and does not fail for a slow machine, here as on the machines of CI
            "CI": "true",
            "RDKAFKA_TEST_CONF": str(settings),
            "KAFKA_VERSION": "4.2.0",
            "TEST_KAFKA_VERSION": "4.2.0",
            "BROKERS": servers,
            "KAFKA_PATH": str(kafka or tools(Path(directory))),
        }
        done = subprocess.run(
            # no tests without a broker, none that breaks connections by preloading a library
            [str(home / RUNNER), "-L", "-E", "-r", *options],
            cwd=directory,
            env={**os.environ, **received, **chosen},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
        )
        reports = list(Path(directory).glob("test_report_*.json"))
        if not reports:
            raise RuntimeError(f"the tests of librdkafka did not run:\n{done.stdout[-3000:]}")
        tests = json.loads(reports[0].read_text())["tests"]
        if loud and done.returncode:
            print(done.stdout[-12_000:], flush=True)
        ran = {name: test["state"].lower() for name, test in tests.items() if name != "<MAIN>"}
        return {name: state for name, state in ran.items() if state in ("passed", "failed")}


def tools(directory: Path) -> Path:
    """Where its tests look for a Kafka distribution: bin/kafka-topics.sh. Raises jars.Missing."""
    jars.fetch()
    script = directory / "kafka" / "bin" / "kafka-topics.sh"
    script.parent.mkdir(parents=True)
    options = f"-Xmx256m -XX:TieredStopAtLevel=1 -cp '{jars.classpath()}'"
    script.write_text(f'#!/bin/sh\nexec java {options} org.apache.kafka.tools.TopicCommand "$@"\n')
    script.chmod(0o755)
    return directory / "kafka"
