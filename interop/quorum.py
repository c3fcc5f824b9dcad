"""Controllers of heirlog and of Apache Kafka 4.2 in one quorum.

Voters in the configuration (kraft.version 0):

    two of three are heirlog's, then two of three Apache Kafka's
    each kind leads, and is killed: another one leads, a topic is created through it, and the killed one returns
    a follower of each kind loses its log: it loads the snapshot that a leader of the other kind has taken
    the recovery manager stays off, which Apache Kafka's controllers do not know, and is not switched on
    in the end all three logs are equal, record by record, as kafka-dump-log shows them

Each program formats its own folders in the first quorum, and those of the other one in the second.

Voters in the log (kraft.version 1), two of three heirlog's:

    formatted with --initial-controllers, and raised from 0 to 1 by UpdateFeatures
    each kind leads, removes a voter of the other kind and adds it again
    each kind leads, and is killed; in the end all three logs are equal
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jars
from apache_kafka import eventually
from clients import VENV, output_of
from quorum_tools import METADATA, records

from heirlog.blocking import Client
from heirlog.local.layout import HOST, NodeLayout
from heirlog.local.processes import NodeProcess
from heirlog.local.ready import known_brokers
from heirlog.metadata.state import RECOVERY_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing.apache_kafka import CLUSTER_ID, ApacheKafkaNode, free_ports, write_properties

CONTROLLERS, BROKER = (1, 2, 3), 4
FEATURES = ("streams.version",)
"""Those that Apache Kafka 4.2 finalizes in a new cluster, and heirlog does not have."""
ROUNDS_MAX = 20
"""Of elections until a controller of the wanted kind wins: each does in about half of them."""
KINDS = ("heirlog", "Apache Kafka")


def check() -> str:
    jars.fetch()
    return "; ".join(mixed(kafka) for kafka in ({1}, {1, 2}))


def check_voters_in_log() -> str:
    jars.fetch()
    return "; ".join(
        changed_voters(name, voters_in_log) for name, voters_in_log in (("formatted", True), ("upgraded", False))
    )


def changed_voters(name: str, voters_in_log: bool) -> str:
    with started({1}, voters_in_log=voters_in_log) as quorum:
        if not voters_in_log:
            raise_kraft_version(quorum)
        for kind in KINDS:
            leader = lead(quorum, kind)
            remove_and_add(quorum, next(node for node in CONTROLLERS if quorum.kind(node) != quorum.kind(leader)))
        kinds = lead_in_turn(quorum)
        quorum.stop()
        return f"{name}: voters of each kind removed and added; {kinds}; {equal_logs(quorum)}"


def raise_kraft_version(quorum: MixedQuorum) -> None:
    """The leader has to know first that each voter supports it."""
    upgrade = ("features", "upgrade", "--feature", "kraft.version=1")
    eventually(lambda: not quorum.heirlog(*upgrade).returncode, "kraft.version is raised")


def remove_and_add(quorum: MixedQuorum, node: int) -> None:
    directory = next(voter["directoryId"] for voter in quorum.voters() if voter["id"] == node)
    removed = ("quorum", "remove-controller", "-i", str(node), "-d", directory)
    eventually(lambda: not quorum.heirlog(*removed).returncode, f"controller {node} is removed")
    assert node not in [voter["id"] for voter in quorum.voters()]
    quorum.create(f"without-voter-{node}")
    added = ("quorum", "add-controller", "--config", str(quorum.homes[node] / "server.properties"))
    eventually(lambda: not quorum.heirlog(*added).returncode, f"controller {node} is added")
    quorum.wait_until_all_follow()


def mixed(kafka: set[int]) -> str:
    with started(kafka, crossed=len(kafka) == 2) as quorum:
        kinds = lead_in_turn(quorum)
        refused = manager_stays_off(quorum)
        loaded = load_snapshots(quorum)
        quorum.stop()
        return f"{len(kafka)} of 3 Apache Kafka: {kinds}; {refused}; {loaded}; {equal_logs(quorum)}"


class MixedQuorum:
    def __init__(self, data: Path, kafka: set[int], *, crossed: bool = False, voters_in_log: bool = False) -> None:
        """crossed: each program's folders are formatted by the other one's tool. voters_in_log: kraft.version 1."""
        self.kafka = kafka
        self._crossed = crossed
        self._voters_in_log = voters_in_log
        self.topics: list[str] = []
        self._ports = dict(zip((*CONTROLLERS, BROKER), free_ports(4), strict=True))
        self.homes = {node: data / f"node-{node}" for node in self._ports}
        self.nodes: dict[int, NodeProcess | ApacheKafkaNode] = {node: self._formatted(node) for node in self._ports}

    def address(self, node: int) -> str:
        return f"{HOST}:{self._ports[node]}"

    def kind(self, node: int) -> str:
        return "Apache Kafka" if node in self.kafka else "heirlog"

    def _formatted(self, node: int) -> NodeProcess | ApacheKafkaNode:
        home, is_broker = self.homes[node], node == BROKER
        properties: dict[str, object] = {
            "process.roles": "broker" if is_broker else "controller",
            "node.id": node,
            "listeners": f"{'PLAINTEXT' if is_broker else 'CONTROLLER'}://{self.address(node)}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
            "metadata.log.max.record.bytes.between.snapshots": 4000,
        }
        voters: list[str] = []
        if not self._voters_in_log:
            properties["controller.quorum.voters"] = ",".join(f"{one}@{self.address(one)}" for one in CONTROLLERS)
        else:
            properties["controller.quorum.bootstrap.servers"] = ",".join(map(self.address, CONTROLLERS))
            voters = [] if is_broker else ["--initial-controllers", self._initial_controllers()]
        write_properties(home, properties)
        theirs = ApacheKafkaNode(home, jars.JARS, ["-Xmx256m"])
        if (node in self.kafka) is not self._crossed:
            off = [word for feature in FEATURES for word in ("--feature", f"{feature}=0")]
            theirs.format("--feature", "metadata.version=29", *off, *voters)
        else:
            command = f"{VENV}/heirlog storage format -c {home}/server.properties -t {CLUSTER_ID}".split()
            # what a controller of Apache Kafka is given must not name a feature that it does not know
            output_of([*command, *voters, *["--feature", "heirlog.recovery.version=0"] * (node in self.kafka)])
        return theirs if node in self.kafka else NodeProcess(NodeLayout(node, home))

    def _initial_controllers(self) -> str:
        return ",".join(
            f"{one}@{self.address(one)}:{base64.urlsafe_b64encode(bytes([one] * 16)).decode().rstrip('=')}"
            for one in CONTROLLERS
        )

    def start(self, node: int) -> None:
        self.nodes[node].start()

    def stop(self) -> None:
        for node in (BROKER, *CONTROLLERS):
            self.end(node, clean=True)

    def end(self, node: int, *, clean: bool = False) -> None:
        process = self.nodes[node]
        if process.pid is None:
            return
        if isinstance(process, ApacheKafkaNode):
            process.stop() if clean else process.kill()
        elif clean:
            process.ask_to_stop()
            process.wait(60)
        else:
            process.kill()

    def heirlog(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(VENV / "heirlog"), *arguments, "--bootstrap-server", self.address(BROKER)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def described(self) -> dict[str, Any] | None:
        done = self.heirlog("quorum", "describe", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def voters(self) -> list[dict[str, Any]]:
        known = eventually(self.described, "a leader that describes the quorum")
        return list(known["current_voters"])

    def leader(self, other_than: int = -1) -> int:
        def found() -> int:
            known = self.described()
            return 0 if known is None or known["leader_id"] in (-1, other_than) else int(known["leader_id"])

        return eventually(found, f"a leader other than {other_than}")

    def create(self, topic: str) -> None:
        wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)

        def created() -> bool:
            with Client(self.address(BROKER), timeout_s=20.0) as client:
                answer = client.send_to_any(CreateTopicsRequest(topics=[wanted], timeout_ms=5_000))
            return answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

        eventually(created, f"topic {topic} is created")
        self.topics.append(topic)

    def wait_until_all_follow(self) -> None:
        """Each voter has everything that the leader has committed."""

        def caught_up() -> bool:
            rows = json.loads(self.heirlog("quorum", "describe", "--replication", "--json").stdout or "[]")
            return len([row for row in rows if row["status"] != "Observer" and abs(row["lag"]) <= 2]) == 3

        eventually(caught_up, "all three voters follow")

    def metadata(self, node: int) -> Path:
        return self.homes[node] / "data" / METADATA

    def snapshots(self, node: int) -> list[str]:
        return sorted(path.name for path in self.metadata(node).glob("*.checkpoint"))


@contextmanager
def started(kafka: set[int], *, crossed: bool = False, voters_in_log: bool = False) -> Iterator[MixedQuorum]:
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory, ExitStack() as held:
        quorum = MixedQuorum(Path(directory), kafka, crossed=crossed, voters_in_log=voters_in_log)
        for node in quorum.nodes:
            held.callback(quorum.end, node)
            quorum.start(node)
        eventually(lambda: BROKER in known_brokers(quorum.address(BROKER)), "the broker is registered")
        yield quorum


def lead(quorum: MixedQuorum, kind: str) -> int:
    """The leader, which is of this kind: those of the other kind come back while it asks for votes."""
    for _ in range(ROUNDS_MAX):
        leader = quorum.leader()
        if quorum.kind(leader) == kind:
            return leader
        others = [node for node in CONTROLLERS if quorum.kind(node) != kind]
        for node in others:
            quorum.end(node)
        for node in others:
            quorum.start(node)
        quorum.wait_until_all_follow()
    raise AssertionError(f"{kind} was not elected")


def lead_in_turn(quorum: MixedQuorum) -> str:
    """A topic is created through a leader of each kind; then it is killed, and another one is through the next one."""
    for kind in KINDS:
        leader = lead(quorum, kind)
        quorum.create(f"by-{leader}")
        quorum.end(leader)
        quorum.leader(other_than=leader)
        quorum.create(f"without-{leader}")
        quorum.start(leader)
        quorum.wait_until_all_follow()
    return "a leader of each kind killed"


def manager_stays_off(quorum: MixedQuorum) -> str:
    lead(quorum, "heirlog")
    refusal = quorum.heirlog("features", "upgrade", "--feature", f"{RECOVERY_VERSION}=1")
    assert refusal.returncode and "Start a controller of heirlog with this node id" in refusal.stderr, refusal
    described = quorum.heirlog("features", "describe", "--json")
    levels = {row["feature"]: row["level"] for row in json.loads(described.stdout)}
    assert levels[RECOVERY_VERSION] == 0 and levels["metadata.version"] == 29, levels
    return "the recovery manager stays off"


def load_snapshots(quorum: MixedQuorum) -> str:
    """A follower of each kind, without its log, loads the snapshot of a leader of the other kind."""
    for kind in KINDS:
        leader = lead(quorum, kind)
        load_snapshot(quorum, leader, next(node for node in CONTROLLERS if quorum.kind(node) != kind))
    return "each kind loaded a snapshot of the other"


def load_snapshot(quorum: MixedQuorum, leader: int, follower: int) -> None:
    for number in range(100):
        if quorum.snapshots(leader):
            break
        quorum.create(f"to-a-snapshot-{leader}-{number}")
    quorum.wait_until_all_follow()
    quorum.end(follower, clean=True)
    shutil.rmtree(quorum.metadata(follower))
    quorum.start(follower)
    # the leader shows what it knew of the follower before until that fetches again
    same = eventually(
        lambda: set(quorum.snapshots(leader)) & set(quorum.snapshots(follower)),
        f"node {follower} has a snapshot of node {leader}, which has {quorum.snapshots(leader)}",
    )
    quorum.wait_until_all_follow()
    contents = {
        node: {name: (quorum.metadata(node) / name).read_bytes() for name in same} for node in (leader, follower)
    }
    assert contents[leader] == contents[follower], f"nodes {leader} and {follower} differ in a snapshot of {same}"


def equal_logs(quorum: MixedQuorum) -> str:
    """Two logs begin at the snapshots that were loaded; the third one has everything."""
    logs = {node: records(sorted(quorum.metadata(node).glob("*.log"))) for node in CONTROLLERS}
    end = min(max(log) for log in logs.values())
    whole = next(log for log in logs.values() if 0 in log)
    compared = 0
    for node, log in logs.items():
        for offset in range(min(log), end + 1):
            assert log[offset] == whole[offset], f"offset {offset} of node {node}: {log[offset]}, not {whole[offset]}"
            compared += log is not whole
    text = "".join(whole.values())
    missing = [topic for topic in quorum.topics if f'"name":"{topic}"' not in text]
    assert compared and not missing, missing
    return f"{end + 1} records, {compared} of them equal on another controller"
