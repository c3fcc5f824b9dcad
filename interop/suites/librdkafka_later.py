"""librdkafka's own tests of the later protocols, from a release that has them: it comes with Confluent's npm package.

consumer protocol (KIP-848)     the tests about groups, with TEST_CONSUMER_GROUP_PROTOCOL=consumer
share groups (KIP-932)          the tests of share consumers
transactions                    the test that wants three brokers
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import jars
from recovery import kafka_nodes

from heirlog.testing import Cluster
from suites.librdkafka import ADMIN_PARTS
from suites.librdkafka_runner import ADMIN, AT_ONCE, RERUNS, RUNNER, compile_runner, run_once
from suites.nodes import heirlog_node, kafka_node
from suites.verdict import Outcomes, expectation, not_passed, run_patiently

CLIENT = "librdkafka_later"
SUITE = "2.15.1"
PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
SHA256 = "ada7d703bb1d3237e2292bfabf438d663b6160c9f1ac2a2406b5dc4257c81b66"
SOURCES = "package/deps/librdkafka/"
"""In the package."""
HOME = jars.CACHE / "suites" / f"librdkafka-{SUITE}"
GROUPS = (
    *("0018", "0019", "0022", "0029", "0030", "0045", "0056", "0061", "0069", "0083", "0118", "0122", "0127", "0130"),
    *("0102", "0137", "0140"),
)
"""Without 0113, which takes eleven minutes, and in which the client may hang (docs/compatibility.md)."""
SHARES = ("0173", "0175", "0176", "0177", "0178", "0179", "0180", "0181", "0185")
"""Those that take less than three minutes; the others were run by hand."""
Node: TypeAlias = Callable[[], AbstractContextManager[str]]
"""Something with brokers, and their address."""


@dataclass(frozen=True, slots=True)
class Run:
    name: str
    """Of its outcomes, in librdkafka_later.json."""
    tests: Sequence[str]
    node: Node
    kafka: Node
    parts: Sequence[str] = ()
    """Of the test of the admin client."""
    protocol: str = "classic"


@contextmanager
def three_brokers() -> Iterator[str]:
    with Cluster(nodes=3, ledger=False) as running:
        yield running.bootstrap_servers


@contextmanager
def three_brokers_of_kafka() -> Iterator[str]:
    """Raises jars.Missing."""
    with kafka_nodes() as running:
        yield running.bootstrap_servers


RUNS = (
    Run(
        "consumer protocol",
        GROUPS,
        heirlog_node,
        kafka_node,
        parts=[part for part in ADMIN_PARTS if "Group" in part],
        protocol="consumer",
    ),
    Run("share groups", SHARES, heirlog_node, kafka_node),
    Run("transactions", ["0103"], three_brokers, three_brokers_of_kafka),
)


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    build()
    problems, asked, again = [], 0, 0
    for which in RUNS:
        expected = expectation(CLIENT, which.name)
        with which.node() as address:
            outcomes, repeated = run_patiently(partial(run, which, address), expected.missed, RERUNS)
        problems += [f"{which.name}: {problem}" for problem in expected.problems(outcomes)]
        asked, again = asked + len(expected.asked), again + repeated
    if problems:
        raise AssertionError("\n".join(problems))
    return f"{SUITE}: {asked} tests" + (f", {again} run again" if again else "")


def run(which: Run, servers: str, names: Sequence[str] = ()) -> Outcomes:
    """names: only these, with what is printed by the ones that fail."""
    outcomes: dict[str, str] = {}
    given = {"TEST_CONSUMER_GROUP_PROTOCOL": which.protocol}
    tests = [name[:4] for name in names if not name.startswith(ADMIN)] if names else which.tests
    if tests:
        chosen = {**given, "TESTS": ",".join(tests)}
        outcomes.update(run_once(HOME, servers, chosen, f"-p{AT_ONCE}", loud=bool(names)))
    for part in [name.partition("/")[2] for name in names if name.startswith(ADMIN)] if names else which.parts:
        chosen = {**given, "TESTS": ADMIN, "SUBTESTS": part}
        found = run_once(HOME, servers, chosen, "-p1", loud=bool(names))
        outcomes[f"{ADMIN}/{part}"] = found.get("0081_admin", "failed")
    return outcomes


def build() -> None:
    """Raises jars.Missing."""
    if (HOME / RUNNER).exists():
        return
    jars.need("npm", install="npm (on Debian: apt install npm)")
    unpack()
    compile_runner(HOME, ["ssl", "sasl", "curl", "zstd", "lz4-ext"])


def unpack() -> None:
    """The sources, from the npm registry. Raises RuntimeError where a download fails or has other content."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="suite-", dir=HOME.parent) as directory:
        jars.retried(["npm", "pack", PACKAGE, "--silent"], cwd=Path(directory))
        (archive,) = Path(directory).glob("*.tgz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise RuntimeError(f"{PACKAGE} of the npm registry is not the one that is known here")
        jars.unpack(archive, directory, SOURCES)
        (Path(directory) / SOURCES).rename(HOME)


def record(_: Node) -> dict[str, Outcomes]:
    """For `record.py`, whose node does not do for all."""
    build()
    outcomes: dict[str, Outcomes] = {}
    for which in RUNS:
        with which.kafka() as address:
            outcomes[which.name], _again = run_patiently(partial(run, which, address), not_passed, RERUNS)
    return outcomes
