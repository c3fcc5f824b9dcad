"""librdkafka's own tests. They come with the crate that librdkafka/Cargo.lock names.

Its runner is compiled without optimization (a minute, once) and tells in a report what became of each test. Test 0081
asks for every admin call in turn, ACLs among them, so its parts are run one by one. Test 0098 reads statistics with
RapidJSON, and its transactions are written twice: by librdkafka and by a program in Java.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial

import debian
import jars
from clients import output_of
from recovery import kafka_nodes

from heirlog.testing import Cluster
from suites.librdkafka_runner import ADMIN, AT_ONCE, CLASSES, RERUNS, RUNNER, compile_runner, run_once
from suites.nodes import heirlog_node
from suites.verdict import HERE, Outcomes, expectation, not_passed, run_patiently

CLIENT = "librdkafka"
SUITE = "2.12.1"
ON_THREE = f"{SUITE}, three brokers"
TRANSACTIONS = "0098"
VENDOR = jars.CACHE / "suites" / "crates"
HOME = jars.CACHE / "suites" / f"librdkafka-{SUITE}"
BUILT = HOME / RUNNER
JAVA = HOME / "tests" / "java" / "TransactionProducerCli.java"
RAPIDJSON = "the headers of RapidJSON (on Debian: apt install rapidjson-dev)"
BUILDING = threading.Lock()
"""Two checks want it, at the same time."""
SKIPPED = (
    # of TLS, SASL, ACLs
    *("0115", "0119", "0126", "0135", "0142", "0097"),
    # of transactions: 0098 (below) and 0103 (librdkafka_later.py) want three brokers, and the topic of 0129 has
    # segments of 20,000 bytes, which Apache Kafka 4 refuses too
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
        outcomes, again = run_patiently(partial(run, address), expected.missed, RERUNS)
    problems = expected.problems(outcomes)
    if problems:
        raise AssertionError("\n".join(problems))
    said = f"{SUITE}: {len(expected.asked)} tests, {len(expected.reasons)} left out"
    return said + (f", {again} run again" if again else "")


def check_transactions() -> str:
    """For `make interop`, as `check`: the test of a consumer of transactions, which wants three brokers."""
    build_for_transactions()
    expected = expectation(CLIENT, ON_THREE)
    with Cluster(nodes=3, ledger=False) as cluster:
        run_it = partial(run_transactions, cluster.bootstrap_servers)
        outcomes, again = run_patiently(run_it, expected.missed, RERUNS)
    problems = expected.problems(outcomes)
    if problems:
        raise AssertionError("\n".join(problems))
    return f"{ON_THREE}: {', '.join(expected.asked)}" + (f", {again} run again" if again else "")


def run_transactions(servers: str, names: Sequence[str] = ()) -> Outcomes:
    """names: as of `run`."""
    return run_once(HOME, servers, {"TESTS": TRANSACTIONS}, "-p1", loud=bool(names))


def run(servers: str, names: Sequence[str] = ()) -> Outcomes:
    """names: only these, with what is printed by the ones that fail."""
    outcomes: dict[str, str] = {}
    plain = [name for name in names if not name.startswith(ADMIN)]
    if plain or not names:
        chosen = {"TESTS": ",".join(name[:4] for name in plain)} if plain else {"TESTS_SKIP": ",".join(SKIPPED)}
        outcomes.update(run_once(HOME, servers, chosen, f"-p{AT_ONCE}", loud=bool(names)))
    parts = [name.partition("/")[2] for name in names if name.startswith(ADMIN)] if names else ADMIN_PARTS

    def one(part: str) -> tuple[str, str]:
        found = run_once(HOME, servers, {"TESTS": ADMIN, "SUBTESTS": part}, "-p1", loud=bool(names))
        return f"{ADMIN}/{part}", found.get("0081_admin", "failed")

    with ThreadPoolExecutor(4) as pool:
        outcomes.update(pool.map(one, parts))
    return outcomes


def build() -> None:
    """With TLS where OpenSSL's headers are there. Raises jars.Missing."""
    with BUILDING:
        if not BUILT.exists():
            _build()


def build_for_transactions() -> None:
    """With RapidJSON, and the program that writes transactions. Raises jars.Missing."""
    jars.fetch()
    with BUILDING:
        if not BUILT.exists() or not _has("RAPIDJSON"):
            headers = debian.unpacked("rapidjson-dev", RAPIDJSON) / "usr" / "include"
            _build(f"--CPPFLAGS=-isystem{headers}")
        output_of(["javac", "-cp", jars.classpath(), "-d", str(HOME / CLASSES), str(JAVA)])


def has_tls() -> bool:
    return _has("SSL")


def _has(what: str) -> bool:
    return f"#define WITH_{what} 1" in (HOME / "config.h").read_text()


def _build(*options: str) -> None:
    jars.need("cargo", install="cargo (on Debian: apt install cargo)")
    VENDOR.parent.mkdir(parents=True, exist_ok=True)
    jars.retried(["cargo", "vendor", "--locked", "-q", str(VENDOR)], cwd=HERE / "librdkafka")
    shutil.rmtree(HOME, ignore_errors=True)
    shutil.copytree(VENDOR / "rdkafka-sys" / "librdkafka", HOME)
    compile_runner(HOME, ["sasl", "curl", "zstd", "lz4-ext"], *options)


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """For `record.py`."""
    build_for_transactions()
    with node() as address:
        outcomes, _ = run_patiently(partial(run, address), not_passed, RERUNS)
    with kafka_nodes() as nodes:
        on_three, _ = run_patiently(partial(run_transactions, nodes.bootstrap_servers), not_passed, RERUNS)
    return {SUITE: outcomes, ON_THREE: on_three}
