"""`make interop`: heirlog against Apache Kafka 4.2 itself and against clients that are not from the Python registry.

Prints for each check `ran`, `skipped: what to install` or `FAILED`. A skip is a failure where STRICT=1.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import clients
import clock
import configs
import decisions
import jars
import messages
import schemas
import secured
import exported
import spark
import spark_cluster
import tools
from suites import golang, kafka_python, own_words


def compare_schemas() -> str:
    messages, fields, differences = schemas.compare(jars.fetch())
    if differences:
        raise AssertionError("\n".join(differences))
    return f"{messages} messages and records, {fields} fields"


def snapshots() -> str:
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        return messages.producer_snapshots(Path(directory))


CHECKS: list[tuple[str, Callable[[], str]]] = [
    ("schemas in Kafka's jars", compare_schemas),
    ("messages through Kafka's classes", messages.round_trips),
    ("producer snapshots through Kafka's classes", snapshots),
    ("configurations beside Kafka's", configs.check),
    ("Java client, kafka-topics, files, kafka-dump-log", clients.java_client_and_files),
    ("Kafka's tools", tools.check),
    ("decisions of Kafka's StandardAuthorizer", decisions.check),
    ("kcat", clients.kcat),
    ("franz-go", clients.franz_go),
    ("kafkajs", clients.kafkajs),
    ("group of Java clients", clients.java_group),
    ("group of kcat", clients.kcat_group),
    ("metrics beside Kafka's", exported.check),
    ("group of franz-go", clients.franz_go_group),
    ("group of kafkajs", clients.kafkajs_group),
    ("compacted topic of the Java client", clients.java_table),
    ("compacted topic of franz-go", clients.franz_go_table),
    ("compacted topic of kafkajs", clients.kafkajs_table),
    ("TLS, SASL and transactions of Apache Kafka", secured.doors),
    ("clock set back an hour", clock.check),
    ("Spark's own connector beside ours", spark.connector),
    ("Spark Connect", spark.connect),
    ("Spark on a standalone cluster", spark_cluster.check),
    ("suites: kafka-python", kafka_python.check),
    ("suites: franz-go and kafka-go", golang.check),
    ("suites: aiokafka and confluent-kafka, in our words", own_words.check),
]


def main() -> int:
    wanted = sys.argv[1:]
    strict = os.environ.get("STRICT") == "1"
    ran = skipped = failed = 0
    for name, check in CHECKS:
        if wanted and not any(word in name for word in wanted):
            continue
        began = time.monotonic()
        try:
            outcome = f"ran ({check()})"
            ran += 1
        except jars.Missing as missing:
            outcome = f"skipped: install {missing}"
            skipped += 1
        except Exception:  # whatever a check meets is its result; the others still run
            traceback.print_exc()
            outcome = "FAILED"
            failed += 1
        print(f"interop: {name}: {outcome} [{time.monotonic() - began:.0f} s]", flush=True)
    if strict and skipped:
        print("interop: STRICT=1, and a check was skipped", flush=True)
    print(f"{ran} passed, {failed + (skipped if strict else 0)} failed", flush=True)
    return 1 if failed or (strict and skipped) else 0


if __name__ == "__main__":
    raise SystemExit(main())
