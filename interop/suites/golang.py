"""The tests of franz-go (pkg/kgo) and of kafka-go. Versions and checksums are in go/go.mod and go/go.sum.

franz-go is told of a cluster by its environment and has three brokers here. kafka-go has localhost:9092 written into
its tests, so they are compiled for the address of the node at hand, a single one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import jars

from heirlog.testing import Cluster
from suites.nodes import heirlog_node
from suites.verdict import HERE, Outcomes, expectation

CLIENT = "golang"
HOME = jars.CACHE / "suites" / "go"
AT_ONCE = "8"
RERUNS = 3
"""How often a test that failed is run again, by itself, before it counts: many have deadlines of a second."""
_RESULT = re.compile(r"^ {0,4}--- (PASS|FAIL|SKIP): (\S+) ", re.MULTILINE)
_OUTCOMES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


@dataclass(frozen=True, slots=True)
class Suite:
    module: str
    package: str
    """Its path in the module."""
    run: str
    """Names of tests, as a regular expression of Go's; what needs no broker is left out."""
    skip: str
    """Of those: what ends the whole run, or what no broker without users can pass."""
    modules: str = "go"
    """The folder here whose go.mod names the module."""
    tags: str = ""
    """For the compiler."""
    timeout_s: int = 300

    @property
    def name(self) -> str:
        return self.module.rpartition("/")[2]

    @property
    def home(self) -> Path:
        """A copy of the module's sources."""
        return HOME / self.name

    @property
    def build(self) -> Path:
        """Our go.mod, in which that copy stands for the module."""
        return HOME / f"{self.name}-build"


FRANZ_GO = Suite(
    "github.com/twmb/franz-go",
    "pkg/kgo",
    "TestUnknownGroupOffsetFetchPinned|TestPing|TestIssue|TestConsume|TestDirectPartitionPurge|TestAddRemovePartitions"
    "|TestPause|TestPooling|TestGroup|TestClient_Produce|TestTxnEtl",
    # TestGroupSimple/848 takes COORDINATOR_NOT_AVAILABLE while __consumer_offsets is created for a failure, on Apache
    # Kafka too; of the balancers of TestTxnEtl, all but round robin
    "/848$|TestTxnEtl/sticky|TestTxnEtl/range",
)
KAFKA_GO = Suite(
    "github.com/segmentio/kafka-go",
    ".",
    "TestClient|TestConn|TestDialer|TestReader|TestWriter|TestConsumerGroup|TestBatch|TestCloseLeavesGroup"
    "|TestOffsetFetch|TestDescribeGroups|TestMetadata|TestTransport|TestValidate|TestGenerations",
    # three end the run with a nil pointer of their own. The last three pass by chance, two of them on Apache Kafka too:
    # one asks for a topic right after it is deleted, which the broker may not have heard yet; one races with its
    # deadlines; one with the creation of a topic by its own question (golang.toml)
    "ACLs|Scram|SASL|Quotas|TestReaderConsumerGroup/verify|TestReaderConsumerGroup/consumer_group_commits_on_close"
    "|TestConn/test_delete_topics|TestConn/nettest|TestConsumerGroupWithTopic$",
)


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    for suite in (FRANZ_GO, KAFKA_GO):
        fetch(suite)
    # one after the other: kafka-go's own deadlines of a second leave no room for another suite on two cores
    return together([judge_franz_go(), judge_kafka_go()])


def together(judged: Sequence[tuple[str, list[str]]]) -> str:
    """Raises AssertionError with every problem."""
    problems = [problem for _, found in judged for problem in found]
    if problems:
        raise AssertionError("\n".join(problems))
    return "; ".join(said for said, _ in judged)


def judge_franz_go() -> tuple[str, list[str]]:
    with Cluster(nodes=3, ledger=False) as cluster:
        servers = cluster.bootstrap_servers
        return judge(CLIENT, FRANZ_GO, lambda names: run_franz_go(servers, names))


def judge_kafka_go() -> tuple[str, list[str]]:
    with heirlog_node() as address:
        return judge(CLIENT, KAFKA_GO, lambda names: run_kafka_go(address, names))


def judge(client: str, suite: Suite, run: Callable[[Sequence[str]], Outcomes]) -> tuple[str, list[str]]:
    """A sentence on what ran, and what is wrong."""
    expected = expectation(client, suite.name)
    outcomes = dict(run(()))
    again = expected.missed(outcomes)
    for _ in range(RERUNS):
        missed = expected.missed(outcomes)
        if missed:
            outcomes.update(run(missed))
    problems = [f"{suite.name}: {problem}" for problem in expected.problems(outcomes)]
    said = f"{suite.name}: {len(expected.asked)} tests, {len(expected.reasons)} left out"
    return said + (f", {len(again)} run again" if again else ""), problems


def run_franz_go(servers: str, names: Sequence[str] = (), replicas: int = 3) -> Outcomes:
    """What each test came to with the cluster at `servers`."""
    program = compiled(FRANZ_GO)
    received = {
        "KGO_SEEDS": servers,
        "KGO_TEST_RF": str(replicas),
        "KGO_TEST_RECORDS": "20000",
        "KGO_LOG_LEVEL": "none",
    }
    return run(FRANZ_GO, program, names, received)


def run_kafka_go(address: str, names: Sequence[str] = ()) -> Outcomes:
    host, _, port = address.rpartition(":")
    fetch(KAFKA_GO)
    for source in sorted(KAFKA_GO.home.glob("*.go")):
        text = source.read_text()
        received = text.replace("9092", port).replace('"localhost', f'"{host}')
        if received != text:
            source.write_text(received)
    return run(KAFKA_GO, compiled(KAFKA_GO), names, {"KAFKA_VERSION": "4.2.0"})


def run(suite: Suite, program: Path, names: Sequence[str], received: dict[str, str]) -> Outcomes:
    """names: only these, one after another, with what is printed by the ones that fail."""
    wanted = "|".join("/".join(f"^{re.escape(part)}$" for part in name.split("/")) for name in names) or suite.run
    at_once = "1" if names else AT_ONCE
    command = [str(program), "-test.v", "-test.run", wanted, "-test.skip", suite.skip, "-test.parallel", at_once]
    done = subprocess.run(
        command,
        cwd=suite.home / suite.package,
        env={**os.environ, **received},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=suite.timeout_s,
    )
    outcomes = {name: _OUTCOMES[result] for result, name in _RESULT.findall(done.stdout)}
    if not outcomes:
        raise RuntimeError(f"the tests of {suite.name} did not run:\n{done.stdout[-3000:]}")
    if names and done.returncode:
        print(done.stdout[-12_000:], flush=True)
    return outcomes


def fetch(suite: Suite) -> None:
    """Make `home` and `build`; Go has checked what they are made of. Raises jars.Missing."""
    jars.need("go", install="Go (on Debian: apt install golang)")
    HOME.mkdir(parents=True, exist_ok=True)
    modules = HERE / suite.modules
    jars.retried(["go", "mod", "download", suite.module], cwd=modules)
    found = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", suite.module],
        cwd=modules,
        check=True,
        capture_output=True,
        text=True,
    )
    shutil.rmtree(suite.home, ignore_errors=True)
    # the module cache is read-only
    shutil.copytree(found.stdout.strip(), suite.home, copy_function=shutil.copyfile)
    for directory in [suite.home, *suite.home.rglob("*/")]:
        directory.chmod(0o755)
    shutil.copytree(modules, suite.build, dirs_exist_ok=True)
    subprocess.run(["go", "mod", "edit", f"-replace={suite.module}={suite.home}"], cwd=suite.build, check=True)


def compiled(suite: Suite) -> Path:
    program = suite.build / "tests"
    package = f"{suite.module}/{suite.package}".removesuffix("/.")
    jars.retried(["go", "test", "-c", "-tags", suite.tags, "-o", str(program), package], cwd=suite.build)
    return program


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """The outcomes of every suite, one after another: for `record.py`."""
    fetch(FRANZ_GO)
    with node() as address:
        franz_go = run_franz_go(address, replicas=1)
    with node() as address:
        kafka_go = run_kafka_go(address)
    return {FRANZ_GO.name: franz_go, KAFKA_GO.name: kafka_go}
