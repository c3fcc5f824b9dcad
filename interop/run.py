"""`make interop`: heirlog against Apache Kafka 4.2 itself and against clients that are not from the Python registry.

Prints for each check `ran`, `skipped: what to install` or `FAILED`. A skip is a failure where STRICT=1.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import answers.play
import audit
import clients
import clock
import configs
import connect
import controller
import decisions
import exported
import flink
import group_logs
import group_tools
import jars
import later_groups
import messages
import mixed_transactions
import monitoring
import notebook
import own_producer
import packaging_files
import permissions
import placement
import quorum
import quorum_tools
import recovery
import registries
import schemas
import secured
import secured_clients
import secured_issuer
import secured_requests
import secured_tokens
import share_groups
import share_partitions
import shared_groups
import spark
import spark_cluster
import spark_declarative
import spark_found
import spark_lake
import spark_speculation
import spark_sweep
import streams
import transactional_client
import transactions
from suites import golang, kafka_python, kafkajs, librdkafka, librdkafka_later, own_words, sarama
from suites import secured as secured_suites

import tools


def compare_schemas() -> str:
    messages, fields, differences = schemas.compare(jars.fetch())
    if differences:
        raise AssertionError("\n".join(differences))
    return f"{messages} messages and records, {fields} fields"


def snapshots() -> str:
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        return messages.producer_snapshots(Path(directory))


Check = tuple[str, Callable[[], str]]
CHECKS: list[Check] = [
    ("schemas in Kafka's jars", compare_schemas),
    ("producer snapshots through Kafka's classes", snapshots),
    ("messages through Kafka's classes", messages.round_trips),
    ("decisions of Kafka's StandardAuthorizer", decisions.check),
    ("placement of Kafka's StripedReplicaPlacer", placement.check),
    ("share partitions beside Kafka's SharePartition", share_partitions.check),
    ("franz-go", clients.franz_go),
    ("compacted topic of franz-go", clients.franz_go_table),
    ("kcat", clients.kcat),
    ("scenarios on Kafka's QuorumController", controller.check),
    ("configurations beside Kafka's", configs.check),
    ("compacted topic of kafkajs", clients.kafkajs_table),
    ("compacted topic of the Java client", clients.java_table),
    ("group of kafkajs", clients.kafkajs_group),
    ("kafkajs", clients.kafkajs),
    ("group of franz-go", clients.franz_go_group),
    ("group of kcat", clients.kcat_group),
    ("group of Java clients", clients.java_group),
    ("group of Java clients, consumer protocol", clients.java_consumer_protocol),
    ("group of franz-go, consumer protocol", clients.franz_go_consumer_protocol),
    ("group of heirlog's commands", clients.own_group),
    ("groups of heirlog consume and kafka-console-consumer", shared_groups.check),
    ("metrics beside Kafka's", exported.check),
    ("answers beside Apache Kafka's", answers.play.check),
    ("permissions beside Apache Kafka's", permissions.check),
    ("Kafka's tools", tools.check),
    ("Kafka's tools on groups of each type, beside Apache Kafka", group_tools.check),
    ("Java client, kafka-topics, files, kafka-dump-log", clients.java_client_and_files),
    ("transactions in a log of Apache Kafka", transactions.check),
    ("groups in the log of a coordinator, of Apache Kafka and of heirlog", group_logs.check),
    ("alerts and dashboard in Prometheus", monitoring.check),
    ("files for containers", packaging_files.check),
    ("clock set back an hour", clock.check),
    ("transactions of the Java client", transactional_client.check),
    ("share groups of the Java client", share_groups.check),
    ("later groups of the Java client, beside Apache Kafka", later_groups.check),
    ("transactions of heirlog's client on Apache Kafka", own_producer.check),
    ("tools and clients of Apache Kafka at closed doors", secured_clients.check),
    ("tokens of Apache Kafka's tools and clients", secured_tokens.check),
    ("tokens that Java fetches from an issuer, and its keys", secured_issuer.check),
    ("requests about security and quotas beside Apache Kafka", secured_requests.check),
    ("TLS, SASL and transactions of Apache Kafka", secured.doors),
    ("suites: aiokafka and confluent-kafka, in our words", own_words.check),
    ("Spark pipeline of Avro values", spark_lake.avro),
    ("suites: kafka-python", kafka_python.check),
    ("audit of directories of Apache Kafka", audit.check),
    ("Apache Flink's sink, exactly once", flink.check),
    ("Kafka Connect, exactly once", connect.check),
    ("Kafka Streams, exactly once", streams.check),
    ("quorum: Kafka's tools", quorum_tools.check),
    ("quorum: controllers of Apache Kafka and of heirlog", quorum.check),
    ("quorum: voters in the log, of Apache Kafka and of heirlog", quorum.check_voters_in_log),
    ("unclean recovery beside Apache Kafka's rule", recovery.check),
    ("suites: kafkajs, in our words", kafkajs.check),
    ("values with a schema registry", registries.check),
    ("Spark pipeline over Spark Connect", spark_lake.connect),
    ("Spark in a notebook", notebook.check),
    ("Spark finds the source by itself", spark_found.check),
    ("Declarative Pipelines", spark_declarative.check),
    ("Spark Connect", spark.connect),
    ("suites: sarama", sarama.check),
    ("Spark pipeline into Delta", spark_lake.delta),
    ("transactions of four clients while brokers are killed", mixed_transactions.check),
    ("Spark on a standalone cluster", spark_cluster.check),
    ("Spark's speculative attempts, exactly once", spark_speculation.check),
    ("a sweep on a standalone cluster", spark_sweep.check),
    ("suites: TLS, SASL and ACLs of librdkafka and kafka-python", secured_suites.check),
    ("suites: franz-go and kafka-go", golang.check),
    ("suites: librdkafka", librdkafka.check),
    ("Spark's own connector beside ours", spark.connector),
]
"""By how long they take. They begin with the last one, so that nothing long runs alone at the end."""
BY_HAND: list[Check] = [
    ("suites: librdkafka, 0098 (a consumer of transactions)", librdkafka.check_transactions),
    ("suites: librdkafka, later protocols", librdkafka_later.check),
]
"""They compile or wait for minutes, and run only where they are named, as in `make interop ARGS=later`."""
AT_ONCE = 4
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of some hundred JVMs, most of which live for seconds: too briefly for the optimising compiler and its threads."""


class Outcome(Enum):
    RAN = "ran"
    SKIPPED = "skipped"
    FAILED = "failed"


def play(check: Check) -> Outcome:
    """With its line."""
    name, body = check
    began = time.monotonic()
    try:
        outcome, received = Outcome.RAN, f"ran ({body()})"
    except jars.Missing as missing:
        outcome, received = Outcome.SKIPPED, f"skipped: install {missing}"
    except Exception:  # whatever a check meets is its result; the others still run
        outcome, received = Outcome.FAILED, f"FAILED\n{traceback.format_exc()}"
    print(f"interop: {name}: {received} [{time.monotonic() - began:.0f} s]", flush=True)
    return outcome


def main() -> int:
    wanted = sys.argv[1:]
    strict = os.environ.get("STRICT") == "1"
    os.environ.setdefault("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    chosen = [
        check
        for check in (*CHECKS, *(BY_HAND if wanted else ()))
        if not wanted or any(word in check[0] for word in wanted)
    ]
    with suppress(jars.Missing):
        jars.fetch()  # for all; who misses them says so
    # several at a time, since most wait for something
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(play, reversed(chosen)))
    for number, check in enumerate(reversed(chosen)):
        if outcomes[number] is Outcome.FAILED and len(chosen) > 1:
            print(f"interop: {check[0]}: once more, alone", flush=True)
            outcomes[number] = play(check)
    count = Counter(outcomes)
    failed = count[Outcome.FAILED]
    for check, outcome in zip(reversed(chosen), outcomes, strict=True):
        if outcome is Outcome.FAILED:
            print(f"interop: FAILED: {check[0]}", flush=True)
    if strict and count[Outcome.SKIPPED]:
        print("interop: STRICT=1, and a check was skipped", flush=True)
        failed += count[Outcome.SKIPPED]
    print(f"{count[Outcome.RAN]} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
