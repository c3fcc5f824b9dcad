"""Clients and tools of others against a running cluster of three brokers and a controller."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import jars
from compaction import keeps_last_values
from groups import GROUP, TOPIC, Command, hard_day

from heirlog.testing import Cluster

HERE = Path(__file__).resolve().parent
VENV = Path(sys.executable).parent
PATIENCE_S = 150
SMALL = {"log.segment.bytes": 1048576, "log.index.interval.bytes": 1024, "min.insync.replicas": 2}

SHORT_SESSIONS = {
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
}
"""Of members of the consumer protocol, which take what the broker says."""
CLASSIC, CONSUMER = "classic", "consumer"


@contextmanager
def cluster(data: Path | None = None, config: Mapping[str, object] = MappingProxyType({})) -> Iterator[Cluster]:
    with Cluster(nodes=3, config={**SMALL, **config}, data=data, ledger=False) as running:
        yield running


def java_command(program: str, *arguments: str, more_jars: Path | None = None) -> list[str]:
    """program: one of java/, without its ending. more_jars: a folder with jars besides those of Apache Kafka."""
    classpath = jars.classpath() if more_jars is None else f"{jars.classpath()}:{more_jars}/*"
    return ["java", "-Xmx512m", "-cp", f"{compiled(program, classpath)}:{classpath}", program, *arguments]


@jars.one_at_a_time
@functools.cache
def compiled(program: str, classpath: str) -> Path:
    """The folder of its classes. Java would compile a source for each of the JVMs that run it."""
    classes = jars.CACHE / "classes" / program
    shutil.rmtree(classes, ignore_errors=True)
    output_of(["javac", "-cp", classpath, "-d", str(classes), str(HERE / "java" / f"{program}.java")])
    return classes


def output_of(command: list[str], given: str | None = None, cwd: Path | None = None) -> str:
    """What a program printed. Raises RuntimeError with what it said if it fails."""
    done = subprocess.run(command, input=given, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ... {command[-1]} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def java_client_and_files() -> str:
    """The Java client with a leader killed, Kafka's topic tool, and then the files that the brokers wrote."""
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        data = Path(directory) / "data"
        with cluster(data) as running:
            drive_java_client(running)
            described = describe_topics(running)
        return f"5 codecs, a group, a leader killed, deletion; kafka-topics {described}; {files_of(data)}"


def drive_java_client(running: Cluster) -> None:
    with subprocess.Popen(
        java_command("Client", running.bootstrap_servers),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        try:
            assert client.stdout is not None
            killed = client.stdout.readline().split()
            if killed[:1] == ["kill"]:
                running.kill(int(killed[1]))
            said, problems = client.communicate("\n", timeout=PATIENCE_S)
        finally:
            client.kill()
    if said.strip() != "done":
        raise RuntimeError(f"the Java client ended with {client.returncode}: {problems[-3000:]}")
    running.start(int(killed[1]))
    running.wait_until_ready()


def kcat() -> str:
    jars.need("kcat", install="kcat (on Debian: apt install kcat)")
    with cluster() as running:
        base = ["kcat", "-b", running.bootstrap_servers, "-q"]
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            topic = f"kcat-{codec}"
            create_topic(running, topic)
            lines = [f"{codec} {number} {'abcdefgh' * (number % 30)}" for number in range(500)]
            options = ["-X", "enable.idempotence=true", "-z", codec]
            output_of([*base, "-P", "-t", topic, *options], given="\n".join(lines) + "\n")
            received = output_of([*base, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e"]).splitlines()
            assert received == lines, f"{topic}: {len(received)} of {len(lines)} records arrived, or in another order"
        members = output_of([*base, "-G", "kcat-group", "-c", "500", "-X", "auto.offset.reset=earliest", "kcat-lz4"])
        assert len(members.splitlines()) == 500, "the group did not get every record"
        assert "3 brokers" in output_of([*base, "-L"]), "the list of brokers"
    return "5 codecs, idempotent; by partition and as a group; metadata"


def create_topic(running: Cluster, topic: str, partitions: int = 1) -> None:
    options = ["--partitions", str(partitions), "--replication-factor", "3", "-b", running.bootstrap_servers]
    output_of([str(VENV / "heirlog"), "topics", "create", topic, *options])


@jars.one_at_a_time
def built_franz_go() -> Path:
    jars.need("go", install="Go (on Debian: apt install golang)")
    program = jars.CACHE / "franz-go"
    jars.CACHE.mkdir(parents=True, exist_ok=True)
    # versions and checksums are in go.mod and go.sum
    jars.retried(["go", "build", "-mod=readonly", "-o", str(program), "."], cwd=HERE / "go")
    return program


def franz_go() -> str:
    program = built_franz_go()
    with cluster() as running:
        said = output_of([str(program), running.bootstrap_servers])
    assert said.strip() == "done", said
    return "5 codecs, idempotent; by partition and as a group"


@jars.one_at_a_time
def installed_kafkajs() -> Path:
    jars.need("node", "npm", install="Node.js with npm (on Debian: apt install nodejs npm)")
    home = jars.CACHE / "node"
    shutil.copytree(HERE / "node", home, dirs_exist_ok=True)
    if not (home / "node_modules" / "kafkajs" / "package.json").exists():
        jars.retried(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=home)
    return home


def kafkajs() -> str:
    home = installed_kafkajs()
    with cluster() as running:
        said = output_of(["node", "client.js", running.bootstrap_servers], cwd=home)
    assert said.strip() == "done", said
    return "none, gzip, idempotent; as a group; admin"


def group_of_three(
    command: Command, committed_s: float = 2.0, survives_outage: bool = True, protocol: str = CLASSIC
) -> str:
    """protocol: of the members that `command` starts."""
    with cluster(config=SHORT_SESSIONS) as running:
        create_topic(running, TOPIC, partitions=6)
        hard_day(running, command, committed_s, survives_outage, protocol)
    outage = "all nodes killed, " if survives_outage else ""
    return f"three members, one killed, a broker killed under a producer, {outage}resumed"


def java_group() -> str:
    jars.fetch()
    return group_of_three(lambda what, servers: java_command("Lines", what, servers, TOPIC, GROUP))


def java_consumer_protocol() -> str:
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        given = Path(directory) / "consumer.properties"
        given.write_text("group.protocol=consumer\n")

        def command(what: str, servers: str) -> list[str]:
            return java_command("Lines", what, servers, TOPIC, GROUP, *([str(given)] if what == "consume" else []))

        return group_of_three(command, protocol=CONSUMER)


def own_group() -> str:
    def command(what: str, servers: str) -> list[str]:
        base = [sys.executable, "-m", "heirlog", what, TOPIC, "-b", servers]
        if what == "produce":
            return base
        return [*base, "--group", GROUP, "--from-beginning", "-X", "session.timeout.ms=6000"]

    return group_of_three(command)


def kcat_group() -> str:
    jars.need("kcat", install="kcat (on Debian: apt install kcat)")

    def command(what: str, servers: str) -> list[str]:
        base = ["kcat", "-b", servers, "-q", "-X", "topic.metadata.refresh.interval.ms=1000"]
        if what == "produce":
            return [*base, "-P", "-t", TOPIC, "-X", "enable.idempotence=true", "-X", "sticky.partitioning.linger.ms=0"]
        group = ["-X", "session.timeout.ms=6000", "-X", "auto.offset.reset=earliest"]
        return [*base, *group, "-u", "-G", GROUP, TOPIC]

    # kcat's commit interval of 5 s cannot be changed: it takes the property of that name for one of the topic
    # and it terminates once all brokers are down
    return group_of_three(command, committed_s=7.0, survives_outage=False)


def franz_go_group() -> str:
    program = built_franz_go()
    return group_of_three(lambda what, servers: [str(program), servers, what, TOPIC, GROUP])


def franz_go_consumer_protocol() -> str:
    program = str(built_franz_go())

    def command(what: str, servers: str) -> list[str]:
        return ["env", "GROUP_PROTOCOL=consumer", program, servers, what, TOPIC, GROUP]

    return group_of_three(command, protocol=CONSUMER)


def kafkajs_group() -> str:
    program = installed_kafkajs() / "lines.js"
    return group_of_three(lambda what, servers: ["node", str(program), what, servers, TOPIC, GROUP])


TABLE = "last value of each key, tombstones kept and gone, on another leader too"


def java_table() -> str:
    jars.fetch()
    keeps_last_values(lambda what, servers, topic: java_command("Table", what, servers, topic))
    return TABLE


def franz_go_table() -> str:
    program = built_franz_go()
    keeps_last_values(lambda what, servers, topic: [str(program), servers, what, topic, GROUP])
    return TABLE


def kafkajs_table() -> str:
    program = installed_kafkajs() / "table.js"
    keeps_last_values(lambda what, servers, topic: ["node", str(program), what, servers, topic])
    return TABLE


def describe_topics(running: Cluster) -> str:
    command = ["java", "-Xmx256m", "-cp", jars.classpath(), "org.apache.kafka.tools.TopicCommand"]
    text = output_of([*command, "--bootstrap-server", running.bootstrap_servers, "--describe", "--topic", "java-lz4"])
    assert "Elr:" in text and "LastKnownElr:" in text and "ReplicationFactor: 3" in text, text
    return "--describe"


def files_of(data: Path) -> str:
    """Every file that Kafka has too, read with Kafka's classes, and every log dumped with kafka-dump-log."""
    brokers = sorted(path for path in data.glob("broker-*") if path.is_dir())
    assert brokers, f"no broker in {data}"
    read = Counter(line.split()[0] for line in output_of(java_command("ReadFiles", *map(str, brokers))).splitlines())
    for kind in ("index", "timeindex", "snapshot", "leader-epoch-checkpoint", "recovery-point-offset-checkpoint"):
        assert read[kind], f"there was no {kind} to read, only {dict(read)}"
    logs = sorted(brokers[0].rglob("java-*/*.log"))
    indexes = sorted(brokers[0].rglob("java-*/*index"))
    dump(logs, "--deep-iteration")
    # without options it looks up every entry in the segment
    dump([path for path in indexes if path.stat().st_size])
    offsets = [path for path in sorted(data.glob("broker-*/**/__consumer_offsets-*/*.log")) if path.stat().st_size]
    assert offsets, "there was no group"
    dump(offsets, "--offsets-decoder")
    metadata = sorted(data.glob("controller-*/**/__cluster_metadata-0/*.log"))
    records = dump(metadata, "--cluster-metadata-decoder")
    for kind in ("REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
        assert kind in records, f"kafka-dump-log saw no {kind}"
    return f"{sum(read.values())} files read, {len(logs)} segments and the metadata log dumped"


def dump(files: list[Path], *options: str) -> str:
    assert files, f"nothing to dump with {options}"
    command = ["java", "-Xmx512m", "-cp", jars.classpath(), "kafka.tools.DumpLogSegments", *options]
    text = output_of([*command, "--files", ",".join(map(str, files))])
    for bad in (
        "Exception",
        "Found",
        "isvalid: false",
        "crc: invalid",
        "Could not",
        "rror decoding",
        "Mismatch",
        "Non-consecutive",
    ):
        assert bad not in text, next(line for line in text.splitlines() if bad in line)
    assert text.count("Dumping ") == len(files), text[-1000:]
    return text
