"""librdkafka's own tests. They come with the crate that librdkafka/Cargo.lock names.

Its runner is compiled without optimization (a minute, once) and tells in a report what became of each test. Test 0081
asks for every admin call in turn, ACLs among them, so its parts are run one by one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import jars

from suites.nodes import heirlog_node
from suites.verdict import HERE, Outcomes, expectation

CLIENT = "librdkafka"
SUITE = "2.12.1"
VENDOR = jars.CACHE / "suites" / "crates"
HOME = jars.CACHE / "suites" / f"librdkafka-{SUITE}"
RUNNER = Path("tests", "test-runner")
BUILT = HOME / RUNNER
BUILDING = threading.Lock()
"""Two checks want it, at the same time."""
TIMEOUT_S = 300
AT_ONCE = 10
RERUNS = 2
"""How often a test that failed is run again, beside fewer others, before it counts: many wait for a fixed time."""
SKIPPED = (
    # of TLS, SASL, ACLs
    *("0115", "0119", "0126", "0135", "0142", "0097"),
    # of transactions: 0098 needs RapidJSON and compiles a Java producer, 0103 wants three brokers: librdkafka_later.py,
    # and the topic of 0129 has segments of 20,000 bytes, which Apache Kafka 4 refuses too
    *("0098", "0103", "0129"),
    # wait for minutes on the client's own timers
    *("0026", "0033", "0050", "0089", "0091", "0093"),
    # measures milliseconds, and leaves itself out where CI is set
    "0055",
    # ask the client's own mock of a broker, for minutes too
    *("0139", "0150"),
    # expect a group to wait for its members: here groups form at once, and it is chance whether both are in the first
    *("0102", "0113"),
    # run in parts, below
    "0081",
)
ADMIN = "0081"
ADMIN_PARTS = (
    "do_test_CreateTopics",
    "do_test_DeleteTopics",
    "do_test_CreatePartitions",
    "do_test_AlterConfigs",
    "do_test_IncrementalAlterConfigs",
    "do_test_DescribeConfigs",
    "do_test_DeleteRecords",
    "do_test_ListConsumerGroups",
    "do_test_DescribeConsumerGroups",
    "do_test_DescribeTopics",
    "do_test_DescribeCluster",
    "do_test_DeleteGroups",
    "do_test_DeleteConsumerGroupOffsets",
    "do_test_AlterConsumerGroupOffsets",
    "do_test_ListConsumerGroupOffsets",
    "do_test_ListOffsets",
)


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    build()
    expected = expectation(CLIENT, SUITE)
    with heirlog_node() as address:
        outcomes, again = run_patiently(address, expected.missed)
    problems = expected.problems(outcomes)
    if problems:
        raise AssertionError("\n".join(problems))
    said = f"{SUITE}: {len(expected.asked)} tests, {len(expected.reasons)} left out"
    return said + (f", {again} run again" if again else "")


def run_patiently(address: str, missed: Callable[[Outcomes], list[str]]) -> tuple[Outcomes, int]:
    """What each test came to in the end, and how many were run again. missed: those that should have passed."""
    outcomes = dict(run(address))
    again = missed(outcomes)
    for _ in range(RERUNS):
        failed = missed(outcomes)
        if failed:
            outcomes.update(run(address, failed))
    return outcomes, len(again)


def run(servers: str, names: Sequence[str] = ()) -> Outcomes:
    """names: only these, with what is printed by the ones that fail."""
    outcomes: dict[str, str] = {}
    plain = [name for name in names if not name.startswith(ADMIN)]
    if plain or not names:
        chosen = {"TESTS": ",".join(name[:4] for name in plain)} if plain else {"TESTS_SKIP": ",".join(SKIPPED)}
        outcomes.update(run_once(servers, chosen, f"-p{AT_ONCE}", loud=bool(names)))
    parts = [name.partition("/")[2] for name in names if name.startswith(ADMIN)] if names else ADMIN_PARTS

    def one(part: str) -> tuple[str, str]:
        found = run_once(servers, {"TESTS": ADMIN, "SUBTESTS": part}, "-p1", loud=bool(names))
        return f"{ADMIN}/{part}", found.get("0081_admin", "failed")

    with ThreadPoolExecutor(4) as pool:
        outcomes.update(pool.map(one, parts))
    return outcomes


def run_once(
    servers: str,
    chosen: Mapping[str, str],
    *options: str,
    loud: bool = False,
    login: Mapping[str, str] | None = None,
    home: Path = HOME,
    kafka: Path | None = None,
) -> Outcomes:
    """login: of its clients. home: where it was compiled. kafka: a folder with Kafka's scripts."""
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


def build() -> None:
    """With TLS where OpenSSL's headers are there. Raises jars.Missing."""
    with BUILDING:
        _build()


def has_tls() -> bool:
    return "#define WITH_SSL 1" in (HOME / "config.h").read_text()


def _build() -> None:
    if BUILT.exists():
        return
    jars.need("cargo", install="cargo (on Debian: apt install cargo)")
    jars.need("gcc", "g++", "make", install="a C compiler (on Debian: apt install build-essential zlib1g-dev)")
    VENDOR.parent.mkdir(parents=True, exist_ok=True)
    jars.retried(["cargo", "vendor", "--locked", "-q", str(VENDOR)], cwd=HERE / "librdkafka")
    shutil.rmtree(HOME, ignore_errors=True)
    shutil.copytree(VENDOR / "rdkafka-sys" / "librdkafka", HOME)
    configure = ["--disable-optimization", "--disable-debug-symbols", "--disable-sasl"]
    steps = [
        ["./configure", *configure, "--disable-curl", "--disable-zstd", "--disable-lz4-ext"],
        ["make", "-j2", "-C", "src", "librdkafka.a"],
        ["make", "-j2", "-C", "src-cpp", "librdkafka++.a"],
        ["make", "-j2", "-C", "tests", "test-runner"],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(step)} failed:\n{done.stdout[-3000:]}")


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """For `record.py`."""
    build()
    with node() as address:
        outcomes, _ = run_patiently(address, lambda found: [name for name, one in found.items() if one != "passed"])
        return {SUITE: outcomes}
