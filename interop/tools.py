"""Apache Kafka's own command line tools, unchanged, against a running cluster: what they print is what is judged.

One JVM runs them all (java/Tools.java). Each part of the check is a function that takes the tools and the cluster and
says in a word or two what it did; a part leaves the cluster as it found it, so the parts do not know of each other.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jars
from apache_kafka import eventually
from clients import SMALL, VENV, java_command, output_of
from hanging import transactions

from heirlog.local import properties
from heirlog.local.format import format_node
from heirlog.local.layout import NodeLayout
from heirlog.local.ports import PortReservation
from heirlog.local.processes import NodeProcess
from heirlog.metadata.features import DEFAULT_FEATURES
from heirlog.testing import Cluster

TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "kafka-acls": f"{TOOLS}.AclCommand",
    "kafka-broker-api-versions": f"{TOOLS}.BrokerApiVersionsCommand",
    "kafka-cluster": f"{TOOLS}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-share-consumer": f"{TOOLS}.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": f"{TOOLS}.DelegationTokenCommand",
    "kafka-delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "kafka-features": f"{TOOLS}.FeatureCommand",
    "kafka-get-offsets": f"{TOOLS}.GetOffsetShell",
    "kafka-groups": f"{TOOLS}.GroupsCommand",
    "kafka-leader-election": f"{TOOLS}.LeaderElectionCommand",
    "kafka-log-dirs": f"{TOOLS}.LogDirsCommand",
    "kafka-metadata-quorum": f"{TOOLS}.MetadataQuorumCommand",
    "kafka-reassign-partitions": f"{TOOLS}.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": f"{TOOLS}.consumer.group.ShareGroupCommand",
    "kafka-topics": f"{TOOLS}.TopicCommand",
    "kafka-transactions": f"{TOOLS}.TransactionsCommand",
    "kafka-verifiable-producer": f"{TOOLS}.VerifiableProducer",
}
SERVERS_FIRST = {"kafka-features", "kafka-metadata-quorum", "kafka-transactions"}
"""Tools with commands, which take what counts for all of them before the command."""
RECORDS = 120


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Tools:
    """Every call is one command line; `--bootstrap-server` is added."""

    def __init__(self, process: subprocess.Popen[str], servers: str, directory: Path) -> None:
        self._process = process
        self.servers = servers
        self._directory = directory

    def ask(self, tool: str, *arguments: str) -> Said:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        where = ["--bootstrap-server", self.servers]
        words = [*where, *arguments] if tool in SERVERS_FIRST else [*arguments, *where]
        stdin.write(json.dumps([CLASSES[tool], *words]) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended while it ran {tool} {' '.join(arguments)}")
        return Said(**json.loads(line))

    def __call__(self, tool: str, *arguments: str) -> str:
        """What a tool printed that succeeded. Raises AssertionError."""
        said = self.ask(tool, *arguments)
        assert said.code == 0, f"{tool} {' '.join(arguments)} ended with {said.code}:\n{said.out}\n{said.err}"
        return said.out

    def produce(self, topic: str, records: int) -> list[dict[str, Any]]:
        """kafka-verifiable-producer, what it printed. In a JVM of its own: it says the last word as that ends."""
        command = [CLASSES["kafka-verifiable-producer"], "--topic", topic, "--max-messages", str(records)]
        java = ["java", "-Xmx256m", "-cp", jars.classpath()]
        said = output_of([*java, *command, "--acks", "-1", "--bootstrap-server", self.servers])
        return [json.loads(line) for line in said.splitlines()]

    def file(self, name: str, content: object) -> str:
        """A JSON file for a tool; its path."""
        path = self._directory / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    def create(self, topic: str, assignment: str, **configs: object) -> None:
        """assignment: `1:2,2:1`, one group of brokers for each partition."""
        options = [f"--config={name.replace('_', '.')}={value}" for name, value in configs.items()]
        said = self("kafka-topics", "--create", "--topic", topic, "--replica-assignment", assignment, *options)
        assert said.strip() == f"Created topic {topic}.", said

    def partitions(self, topic: str, *options: str) -> list[dict[str, str]]:
        """The partition lines of kafka-topics --describe, by heading."""
        said = self("kafka-topics", "--describe", "--topic", topic, *options)
        lines = [line for line in said.splitlines() if line.startswith("\t")]
        return [dict(re.findall(r"(\w[\w ]*): ?([^\t]*)", line)) for line in lines]


@contextmanager
def started(servers: str) -> Iterator[Tools]:
    with (
        tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory,
        subprocess.Popen(
            java_command("Tools"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, text=True
        ) as process,
    ):
        try:
            yield Tools(process, servers, Path(directory))
        finally:
            process.kill()


CONFIG = {
    **SMALL,
    # who asks here may do everything, and so kafka-acls has something to change
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def check() -> str:
    """Every tool that administers a cluster."""
    jars.fetch()
    with Cluster(nodes=3, config=CONFIG, ledger=False) as running, started(running.bootstrap_servers) as tools:
        return "; ".join(part(tools, running) for part in PARTS)


def names_the_cluster(tools: Tools, running: Cluster) -> str:
    said = tools("kafka-cluster", "cluster-id")
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", said.strip()), said
    endpoints = tools("kafka-cluster", "list-endpoints")
    ids = {line.split()[0] for line in endpoints.splitlines()[1:] if line.strip()}
    assert ids == {str(broker) for broker in running.brokers}, endpoints
    versions = tools("kafka-broker-api-versions")
    for served in (
        "AlterPartitionReassignments(45): 0 to 1",
        "DescribeTopicPartitions(75): 0",
        "ElectLeaders(43): 0 to 2",
    ):
        assert versions.count(served) == 3, f"{served} of three brokers\n{versions[:2000]}"
    quorum = dict(re.findall(r"^(\w+):\s+(.*)$", tools("kafka-metadata-quorum", "describe", "--status"), re.MULTILINE))
    assert quorum["LeaderId"] not in {str(broker) for broker in running.brokers} and int(quorum["HighWatermark"]) > 0
    replication = tools("kafka-metadata-quorum", "describe", "--replication")
    roles = [line.split()[-1] for line in replication.splitlines()[1:] if line.strip()]
    assert sorted(roles) == ["Leader", "Observer", "Observer", "Observer"], replication
    return "kafka-cluster, kafka-broker-api-versions, kafka-metadata-quorum"


def changes_the_voters(tools: Tools, running: Cluster) -> str:
    """A second controller becomes a voter and is removed again. Last: it stays an observer for five minutes."""
    (first,) = running.controllers
    known = properties.read(running.data / f"controller-{first}" / "server.properties")
    layout = NodeLayout(first + 1, running.data / f"another-controller-{first + 1}")
    layout.directory.mkdir()
    ports = PortReservation()
    listener = f"CONTROLLER://127.0.0.1:{ports.reserve()}"
    own = {
        "node.id": str(layout.node_id),
        "listeners": listener,
        "advertised.listeners": listener,
        "log.dirs": str(layout.log_dir),
    }
    layout.properties_path.write_text(properties.render({**known, **own}, "joins the quorum"), encoding="utf-8")
    cluster_id = properties.read(running.data / f"controller-{first}" / "log" / "meta.properties")["cluster.id"]
    format_node(properties.read_static(layout.properties_path), cluster_id, DEFAULT_FEATURES, [])
    directory_id = properties.read(layout.log_dir / "meta.properties")["directory.id"]
    node = NodeProcess(layout, reuse_port=True)
    node.start()
    try:
        adding = ("--command-config", str(layout.properties_path), "add-controller")
        named = f"controller {layout.node_id} with directory id {directory_id}"
        ended = f"{named} and endpoints: {listener}\n"
        assert tools("kafka-metadata-quorum", *adding, "--dry-run") == f"DRY RUN of adding {ended}"
        said = eventually(lambda: tools.ask("kafka-metadata-quorum", *adding).out, "the controller is added")
        assert said == f"Added {ended}", said
        again = tools.ask("kafka-metadata-quorum", *adding)
        assert again.code == 1 and "DuplicateVoterException" in again.err, again
        removing = ["--controller-id", str(layout.node_id), "--controller-directory-id", directory_id]
        said = tools("kafka-metadata-quorum", "remove-controller", *removing)
        assert said == f"Removed  KRaft {named}\n", said
    finally:
        node.kill()
        ports.release()
    return "kafka-metadata-quorum add-controller, remove-controller"


def produces_and_counts(tools: Tools, running: Cluster) -> str:
    one, two, three = running.brokers
    tools.create("counted", f"{one}:{two}:{three}")
    events = tools.produce("counted", RECORDS)
    assert sum(event["name"] == "producer_send_success" for event in events) == RECORDS, events
    (summary,) = [event for event in events if event["name"] == "tool_data"]
    assert (summary["sent"], summary["acked"]) == (RECORDS, RECORDS), summary
    offsets = tools("kafka-get-offsets", "--topic", "counted")
    assert offsets.strip() == f"counted:0:{RECORDS}", offsets
    # the largest timestamp is that of one of the last records
    newest = tools("kafka-get-offsets", "--topic-partitions", "counted:0", "--time", "-3")
    assert 0 <= int(newest.strip().split(":")[2]) < RECORDS, newest
    directories = tools("kafka-log-dirs", "--describe", "--topic-list", "counted")
    received = json.loads(next(line for line in directories.splitlines() if line.startswith("{")))
    sizes = {
        (broker["broker"], partition["partition"]): partition["size"]
        for broker in received["brokers"]
        for directory in broker["logDirs"]
        for partition in directory["partitions"]
    }
    assert len(sizes) == 3 and min(sizes.values()) > RECORDS, directories
    low = {"partitions": [{"topic": "counted", "partition": 0, "offset": 5}], "version": 1}
    deleted = tools("kafka-delete-records", "--offset-json-file", tools.file("low.json", low))
    assert "partition: counted-0\tlow_watermark: 5" in deleted, deleted
    earliest = tools("kafka-get-offsets", "--topic-partitions", "counted:0", "--time", "earliest")
    assert earliest.strip() == "counted:0:5", earliest
    return "kafka-verifiable-producer, kafka-get-offsets, kafka-log-dirs, kafka-delete-records"


def changes_configurations(tools: Tools, running: Cluster) -> str:
    first = str(running.brokers[0])
    tools.create("configured", first)
    topic = ("--entity-type", "topics", "--entity-name", "configured")
    said = tools(
        "kafka-configs", "--alter", *topic, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"
    )
    assert said.strip() == "Completed updating config for topic configured.", said
    shown = eventually(
        lambda: "retention.ms=5000" in (text := tools("kafka-configs", "--describe", *topic)) and text, "a change"
    )
    assert "Dynamic configs for topic configured are:" in shown and "DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in shown
    assert "cleanup.policy=compact,delete" in shown, shown
    tools("kafka-configs", "--alter", *topic, "--delete-config", "retention.ms,cleanup.policy")
    eventually(lambda: "retention.ms" not in tools("kafka-configs", "--describe", *topic), "a deletion")
    everything = tools("kafka-configs", "--describe", "--all", *topic)
    assert "All configs for topic configured are:" in everything and "min.insync.replicas=2" in everything, everything
    refused = tools.ask("kafka-configs", "--alter", *topic, "--add-config", "retention.ms=soon")
    assert refused.code == 1 and "InvalidConfigurationException" in refused.err + refused.out, refused
    for whose in (("--entity-default",), ("--entity-name", first)):
        broker = ("--entity-type", "brokers", *whose)
        tools("kafka-configs", "--alter", *broker, "--add-config", "log.cleaner.backoff.ms=14000")
        eventually(
            lambda broker=broker: "log.cleaner.backoff.ms=14000" in tools("kafka-configs", "--describe", *broker),
            f"a change for {whose}",
        )
        tools("kafka-configs", "--alter", *broker, "--delete-config", "log.cleaner.backoff.ms")
    logger = ("--entity-type", "broker-loggers", "--entity-name", first)
    tools("kafka-configs", "--alter", *logger, "--add-config", "heirlog.broker=DEBUG")
    assert "heirlog.broker=DEBUG" in tools("kafka-configs", "--describe", *logger)
    tools("kafka-configs", "--alter", *logger, "--delete-config", "heirlog.broker")
    return "kafka-configs"


def administers_groups(tools: Tools, running: Cluster) -> str:
    tools.create("read", ",".join(str(broker) for broker in running.brokers))
    tools.produce("read", 30)
    group = ("--group", "readers")
    moved = eventually(
        lambda: (
            (
                said := tools.ask(
                    "kafka-consumer-groups", *group, "--reset-offsets", "--topic", "read", "--to-earliest", "--execute"
                )
            ).code
            == 0
            and "read" in said.out
            and said.out
        ),
        "a coordinator",
    )
    rows = [line.split() for line in moved.splitlines() if line.startswith("readers")]
    assert sorted(row[1:] for row in rows) == [["read", str(index), "0"] for index in range(3)], moved
    described = tools("kafka-consumer-groups", *group, "--describe")
    lags = [row.split() for row in described.splitlines() if row.startswith("readers")]
    assert [row[3] for row in lags] == ["0", "0", "0"] and sum(int(row[5]) for row in lags) == 30, described
    assert all(int(row[4]) == int(row[5]) for row in lags), described
    assert "readers" in tools("kafka-consumer-groups", "--list").split()
    state = tools("kafka-consumer-groups", *group, "--describe", "--state")
    assert "Empty" in state, state
    tools("kafka-consumer-groups", *group, "--reset-offsets", "--all-topics", "--to-latest", "--execute")
    described = tools("kafka-consumer-groups", *group, "--describe")
    assert [row.split()[5] for row in described.splitlines() if row.startswith("readers")] == ["0", "0", "0"], described
    gone = tools("kafka-consumer-groups", *group, "--delete-offsets", "--topic", "read:0")
    assert "Successful" in gone, gone
    deleted = tools("kafka-consumer-groups", *group, "--delete")
    assert "Deletion of requested consumer groups ('readers') was successful." in deleted, deleted
    assert "readers" not in tools("kafka-consumer-groups", "--list").split()
    return "kafka-consumer-groups"


def moves_replicas(tools: Tools, running: Cluster) -> str:
    one, two, three = running.brokers
    tools.create("moved", f"{one}:{two},{two}:{one}")
    tools.produce("moved", 50)
    asked = tools.file("topics.json", {"topics": [{"topic": "moved"}], "version": 1})
    brokers = ("--broker-list", f"{one},{two},{three}")
    said = tools("kafka-reassign-partitions", "--generate", "--topics-to-move-json-file", asked, *brokers)
    current, proposed = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    assert {tuple(each["replicas"]) for each in current["partitions"]} == {(one, two), (two, one)}, said
    assert len(proposed["partitions"]) == 2, said
    wanted = [{"topic": "moved", "partition": index, "replicas": [three, two]} for index in range(2)]
    plan = tools.file("plan.json", {"version": 1, "partitions": wanted})
    reassign = ("--reassignment-json-file", plan)
    begun = tools("kafka-reassign-partitions", "--execute", *reassign, "--throttle", "100000000")
    assert "Successfully started partition reassignments for moved-0,moved-1" in begun, begun
    assert "The inter-broker throttle limit was set to 100000000 B/s" in begun, begun
    # the tool asks the controller for what is under way and then a broker, which may not know yet that it has ended
    verify = ("kafka-reassign-partitions", "--verify", *reassign)
    verified = eventually(
        lambda: (said := tools(*verify)).count("is completed.") == 2 and said,
        "a reassignment",
    )
    assert "Clearing broker-level throttles" in verified and "Clearing topic-level throttles" in verified, verified
    eventually(
        lambda: all(
            row["Replicas"] == f"{three},{two}" and set(row["Isr"].split(",")) == {str(two), str(three)}
            for row in tools.partitions("moved")
        ),
        "the new replicas in kafka-topics",
    )
    assert "No partition reassignments found" in tools("kafka-reassign-partitions", "--list")
    ends = tools("kafka-get-offsets", "--topic", "moved")
    assert sum(int(line.split(":")[2]) for line in ends.split()) == 50, ends
    # one that cannot complete: to a broker that is not there, which Kafka's tool would not ask for
    running.kill(one)
    wanted = [{"topic": "moved", "partition": 0, "replicas": [three, two, one]}]
    plan = tools.file("cancelled.json", {"version": 1, "partitions": wanted})
    begun = output_of(
        [
            str(VENV / "heirlog"),
            "reassign",
            "--execute",
            "--reassignment-json-file",
            plan,
            "-b",
            running.bootstrap_servers,
        ]
    )
    assert "Successfully started partition reassignment for moved-0" in begun, begun
    listed = tools("kafka-reassign-partitions", "--list")
    assert f"moved-0: replicas: {three},{two},{one}. adding: {one}." in listed, listed
    (row,) = [row for row in tools.partitions("moved") if row["Partition"] == "0"]
    assert row["Adding Replicas"] == str(one), row
    # the throttles would be those of every broker, also of the one that is not there
    cancel = ("--cancel", "--preserve-throttles", "--reassignment-json-file", plan)
    cancelled = tools("kafka-reassign-partitions", *cancel)
    assert "Successfully cancelled partition reassignment for: moved-0" in cancelled, cancelled
    assert "No partition reassignments found" in tools("kafka-reassign-partitions", "--list")
    running.start(one)
    running.wait_until_ready()
    return "kafka-reassign-partitions"


def shows_and_elects(tools: Tools, running: Cluster) -> str:
    """A partition below min ISR, with an ELR, without a leader; then preferred and unclean elections."""
    one, two, three = running.brokers
    tools.create("heirs", f"{one}:{two}:{three}", min_insync_replicas=2)
    tools.create("lonely", f"{two}:{three}", min_insync_replicas=1)
    (row,) = tools.partitions("heirs")
    assert (row["Leader"], row["Isr"], row["Elr"], row["LastKnownElr"]) == (str(one), f"{one},{two},{three}", "", ""), (
        row
    )
    running.kill(three)
    eventually(lambda: tools.partitions("lonely")[0]["Isr"] == str(two), "a shrunken ISR")
    assert tools.partitions("heirs", "--under-replicated-partitions"), "one of three is not in sync"
    assert tools.partitions("heirs", "--at-min-isr-partitions") and not tools.partitions(
        "heirs", "--under-min-isr-partitions"
    )
    running.kill(two)
    row = eventually(lambda: [row for row in tools.partitions("heirs") if row["Elr"]], "an ELR")[0]
    assert (row["Leader"], row["Isr"], row["Elr"]) == (str(one), str(one), str(two)), row
    assert tools.partitions("heirs", "--under-min-isr-partitions"), "one of the two that are required"
    (row,) = eventually(lambda: tools.partitions("lonely", "--unavailable-partitions"), "no leader")
    assert (row["Leader"], row["Isr"], row["Elr"]) == ("none", "", str(two)) and "LastKnownElr" in row, row
    running.start(three)
    running.wait_until_ready()
    lonely = ("--topic", "lonely", "--partition", "0")
    missing = tools.ask("kafka-leader-election", "--election-type", "preferred", *lonely)
    assert missing.code == 1 and "PreferredLeaderNotAvailableException" in missing.out + missing.err, missing
    said = tools("kafka-leader-election", "--election-type", "unclean", *lonely)
    assert "Successfully completed leader election (UNCLEAN) for partitions lonely-0" in said, said
    assert eventually(lambda: tools.partitions("lonely")[0]["Leader"] == str(three), "the new leader")
    again = tools("kafka-leader-election", "--election-type", "unclean", *lonely)
    assert "Valid replica already elected for partitions lonely-0" in again, again
    running.start(two)
    running.wait_until_ready()
    in_sync = {str(broker) for broker in (two, three)}
    eventually(lambda: set(tools.partitions("lonely")[0]["Isr"].split(",")) == in_sync, "a full ISR")
    chosen = tools.file("elect.json", {"partitions": [{"topic": "lonely", "partition": 0}]})
    said = tools("kafka-leader-election", "--election-type", "preferred", "--path-to-json-file", chosen)
    assert "Successfully completed leader election (PREFERRED) for partitions lonely-0" in said, said
    everywhere = ("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    eventually(lambda: tools.ask(*everywhere).code == 0, "every first replica in its ISR")
    eventually(lambda: tools.partitions("lonely")[0]["Leader"] == str(two), "the preferred leader")
    eventually(lambda: tools.partitions("heirs")[0]["Isr"].count(",") == 2, "a full ISR")
    assert tools.partitions("heirs")[0]["Elr"] == ""
    return "kafka-topics with the ELR, kafka-leader-election"


def changes_features(tools: Tools, running: Cluster) -> str:
    feature = "eligible.leader.replicas.version"

    def level() -> str:
        rows = re.findall(
            r"^Feature: (\S+)\t.*FinalizedVersionLevel: (\S+)\t", tools("kafka-features", "describe"), re.M
        )
        return dict(rows)[feature]

    assert level() == "1"
    dry = tools("kafka-features", "downgrade", "--feature", f"{feature}=0", "--dry-run")
    assert f"{feature} can be downgraded to 0" in dry and level() == "1", dry
    said = tools("kafka-features", "downgrade", "--feature", f"{feature}=0")
    assert f"{feature} was downgraded to 0" in said, said
    eventually(lambda: level() == "0", "the downgrade")
    said = tools("kafka-features", "upgrade", "--feature", f"{feature}=1")
    assert f"{feature} was upgraded to 1" in said, said
    eventually(lambda: level() == "1", "the upgrade")
    refused = tools.ask("kafka-features", "upgrade", "--feature", f"{feature}=7")
    assert refused.code == 1 and f"Could not upgrade {feature} to 7" in refused.out, refused
    return "kafka-features"


def changes_acls(tools: Tools, running: Cluster) -> str:
    rule = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
    topic = ("--topic", "guarded", "--allow-principal", "User:alice", "--operation", "READ")
    added = tools("kafka-acls", "--add", *topic)
    assert "Adding ACLs for resource" in added and rule in added, added
    listed = eventually(
        lambda: rule in (said := tools("kafka-acls", "--list", "--topic", "guarded")) and said, "the new ACL"
    )
    assert "resourceType=TOPIC, name=guarded, patternType=LITERAL" in listed, listed
    prefixed = ("--group", "team-", "--resource-pattern-type", "prefixed", "--deny-principal", "User:bob")
    tools("kafka-acls", "--add", *prefixed, "--operation", "All")
    eventually(
        lambda: "name=team-, patternType=PREFIXED" in tools("kafka-acls", "--list", "--principal", "User:bob"),
        "an ACL found by its principal",
    )
    tools("kafka-acls", "--remove", "--force", *topic)
    tools("kafka-acls", "--remove", "--force", *prefixed, "--operation", "All")
    eventually(lambda: "User:" not in tools("kafka-acls", "--list"), "no ACL any more")
    return "kafka-acls"


PARTS = (
    changes_acls,
    names_the_cluster,
    produces_and_counts,
    changes_configurations,
    administers_groups,
    transactions,
    moves_replicas,
    shows_and_elects,
    changes_features,
    changes_the_voters,
)
