"""Unclean recovery on real processes: every command of docs/guides/recover.md, the operator's page, runs here.

The topic's partitions lose every complete replica: broker 3 stops cleanly and misses records that 1 and 2 hold, then 2
and 1 are killed, and 3 comes back alone. The operator's decisions are committed; before anybody can have reported them
the controller and the new leader are killed. So everybody comes back, and every partition recovers once more.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog, Outcome, heirlog  # noqa: F401  # the fixture
from patience import eventually
from processes.observing import client_of

from heirlog.blocking import Client
from heirlog.blocking.loss_reports import read_reports
from heirlog.client.admin import describe_topic_partitions
from heirlog.metadata.loss_report import LossReport
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.types import NO_LEADER
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.recoveries import named
from heirlog.testing.cluster import Cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "recover.md"
TOPIC = "orders"
SALVAGED = "orders-salvaged"
PARTITIONS = 7
BEFORE, AFTER, ALONE = 20, 10, 3
"""Records of each partition that all replicas have, those that broker 3 has missed, and those that it took alone."""
CONTROLLER = 100
HOLDERS, WITHOUT = (1, 2), 3

SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of_page() -> dict[str, list[str]]:
    """Section → its commands, in order."""
    parts = SECTION.split(PAGE.read_text(encoding="utf-8"))
    return {
        title: [line for block in BLOCK.findall(text) for line in block.splitlines()]
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


COMMANDS = commands_of_page()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        "unclean.recovery.manager.enabled": True,
        "broker.heartbeat.interval.ms": 500,
        "heirlog.broker.disconnect.grace.ms": 300,
        "min.insync.replicas": 2,
        "offsets.topic.num.partitions": 1,
        "heirlog.discarded.min.free.bytes": 0,
    }
    with Cluster(nodes=3, config=config) as running:
        yield running


@pytest.fixture(autouse=True)
def default_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)
    monkeypatch.chdir(tmp_path)


class Page:
    """Runs the commands of one section after the other."""

    def __init__(self, heirlog: Heirlog, places: dict[str, str]) -> None:  # noqa: F811
        self._heirlog = heirlog
        self.places = places
        self.ran: list[str] = []

    def run(self, section: str, *, fails: str = "") -> dict[str, Outcome]:
        """Command → what it printed. fails: those that hold this text exit with 1, all others with 0."""
        found: dict[str, Outcome] = {}
        for command in COMMANDS[section]:
            text = command
            for place, meant in self.places.items():
                text = text.replace(place, meant)
            program, *arguments = shlex.split(text)
            assert program == "heirlog"
            outcome = found[command] = self._heirlog(*arguments)
            assert outcome.code == (1 if fails and fails in command else 0), f"{text}\n{outcome.out}\n{outcome.err}"
            self.ran.append(command)
        return found


def views(cluster: Cluster, topic: str) -> dict[int, Any]:
    with client_of(cluster) as client:
        (found,) = client.run(describe_topic_partitions([topic]))
    return {partition.partition_index: partition for partition in found.partitions}


def wait_for_all(cluster: Cluster, topic: str, what: str, condition: Callable[[Any], bool]) -> None:
    def holds() -> bool:
        found = views(cluster, topic)
        return bool(found) and all(condition(view) for view in found.values())

    eventually(holds, what)


def produce(cluster: Cluster, topic: str, partitions: int, count: int, acks: int = -1) -> None:
    with Client(cluster.bootstrap_servers) as client, client.producer(acks=acks, idempotent=acks < 0) as producer:
        for partition in range(partitions):
            for number in range(count):
                producer.send(topic, partition, encode_batch([(b"key", b"%d" % number, (), 1_700_000_000_000)]))


def lose_every_complete_replica(cluster: Cluster, topic: str, partitions: int) -> None:
    produce(cluster, topic, partitions, BEFORE)
    wait_for_all(cluster, topic, "all in the ISR", lambda view: len(view.isr_nodes) == 3)
    cluster.stop(WITHOUT)
    wait_for_all(cluster, topic, "3 out of the ISR", lambda view: set(view.isr_nodes) == set(HOLDERS))
    produce(cluster, topic, partitions, AFTER)
    cluster.kill(2)
    wait_for_all(cluster, topic, "2 out of the ISR", lambda view: view.isr_nodes == [1])
    cluster.kill(1)
    cluster.start(WITHOUT)
    wait_for_all(cluster, topic, "no replica leads", lambda view: view.leader_id == NO_LEADER)
    # a fenced broker may not lead, and `recover plan` would say so
    cluster.wait_until_ready()


def reports(cluster: Cluster, topic: str) -> list[LossReport]:
    with Client(cluster.bootstrap_servers) as client:
        return [report for report in read_reports(client) if report.topic == topic]


def written(cluster: Cluster) -> Counter[tuple[str, int, int]]:
    """How often each report stands in the topic's log."""
    found: Counter[tuple[str, int, int]] = Counter()
    with Client(cluster.bootstrap_servers) as client:
        place = (RECOVERIES_TOPIC, 0)
        begin, end = (client.list_offsets({place: at})[place].offset for at in (-2, -1))
        for part in client.fetch(*place, begin, end):
            for position, _ in walk(part.records):
                for record in decode_records(part.records, position):
                    value = json.loads(record.value or b"")
                    found[value["topic"], value["partition"], value["leader_epoch"]] += 1
    return found


def test_the_operators_page(cluster: Cluster, heirlog: Heirlog, tmp_path: Path) -> None:  # noqa: F811
    assert heirlog("topics", "create", TOPIC, "--partitions", PARTITIONS).code == 0
    lose_every_complete_replica(cluster, TOPIC, PARTITIONS)
    leaders = {"partitions": [{"topic": TOPIC, "partition": 4, "desiredLeader": WITHOUT}]}
    (tmp_path / "leaders.json").write_text(json.dumps(leaders))
    page = Page(heirlog, {"/var/lib/heirlog": str(cluster.data)})

    looked = page.run("Look first")
    assert re.search(rf"^{TOPIC}-.*\b6\b.*: no leader", looked["heirlog recover plan"].out, re.MULTILINE)
    (plan,) = json.loads(looked["heirlog recover plan orders --partition 0 --json"].out)["partitions"]
    assert plan["elr"] == [1, 2] and plan["state"] == "WaitingForEligible"
    aggressive = next(choice for choice in plan["choices"] if choice["choice"] == "aggressive")
    assert (aggressive["leader"], aggressive["records_lost_max"]) == (WITHOUT, None)
    assert set(aggressive["silent"]) == set(HOLDERS)
    assert [replica["end_offset"] for replica in plan["replicas"] if replica["broker"] == WITHOUT] == [BEFORE]

    for command in ("plan", "run"):
        mistyped = heirlog("recover", command, TOPIC, "--partition", PARTITIONS)
        assert mistyped.code == 1 and f"{TOPIC}-{PARTITIONS} cannot be described" in mistyped.err

    page.run("Wait if you can", fails="--strategy balanced --now")
    assert views(cluster, TOPIC)[3].leader_id == NO_LEADER

    page.run("Decide")
    assert heirlog("recover", "run", TOPIC, "--strategy", "unclean", "--yes").code == 0
    wait_for_all(cluster, TOPIC, "broker 3 leads", lambda view: view.leader_id == WITHOUT)
    assert "every partition has a leader" in heirlog("recover", "plan", TOPIC).out

    produce(cluster, TOPIC, PARTITIONS, ALONE, acks=1)
    assert not reports(cluster, TOPIC), "their topic is below its min ISR"
    cluster.kill(CONTROLLER)
    cluster.kill(WITHOUT)
    for node in (CONTROLLER, *HOLDERS, WITHOUT):
        cluster.start(node)
    wait_for_all(cluster, TOPIC, "all in the ISR again", lambda view: len(view.isr_nodes) == 3)
    eventually(lambda: len(reports(cluster, TOPIC)) == 2 * PARTITIONS, "two reports of each partition")
    accounted = page.run("Account")
    found = json.loads(accounted["heirlog recover report orders --json"].out)
    bases: dict[int, list[str]] = {}
    for report in found:
        bases.setdefault(report["partition"], []).append(report["basis"])
    assert bases == {
        0: ["recovered", "recovered"],
        1: ["designated", "recovered"],
        2: ["unclean", "recovered"],
        3: ["unclean", "recovered"],
        4: ["designated", "recovered"],
        5: ["recovered", "recovered"],
        6: ["unclean", "recovered"],
    }
    assert {report["leader"] for report in found} == {WITHOUT}
    assert all(set(report["silent"]) >= set(HOLDERS) for report in found[:PARTITIONS])
    assert all(report["exact"] and report["records_max"] == 0 for report in found[PARTITIONS:])
    # the topic of the reports was without a leader too, and has one of its own
    eventually(lambda: len(written(cluster)) == 2 * PARTITIONS + 1, "the report on the topic of reports")
    assert set(written(cluster).values()) == {1}

    kept = json.loads(heirlog("recover", "salvage", "list", cluster.data, "--json").out)
    assert len(kept) == PARTITIONS * len(HOLDERS)
    assert {(row["first_offset"], row["end_offset"]) for row in kept} == {(BEFORE, BEFORE + AFTER)}
    page.places["$FILE"] = next(row["file"] for row in kept if row["partition"] == 5)
    assert heirlog("topics", "create", SALVAGED, "--partitions", PARTITIONS).code == 0
    (kept_in,) = (outcome.out for command, outcome in page.run("Salvage").items() if "--kept-in" in command)
    assert kept_in.count(f"offsets {BEFORE} to {BEFORE + AFTER - 1}, {AFTER} records: ") == PARTITIONS * len(HOLDERS)
    shown = json.loads(heirlog("recover", "report", TOPIC, "--kept-in", str(cluster.data), "--json").out)
    assert [len(report["kept"]) for report in shown] == [0 if report["records_max"] == 0 else 2 for report in shown]
    assert [json.loads(line)["offset"] for line in (tmp_path / "lost.jsonl").read_text().splitlines()] == list(
        range(BEFORE, BEFORE + AFTER)
    )
    with Client(cluster.bootstrap_servers) as client:
        expected = {(TOPIC, 5): BEFORE + ALONE + AFTER, (SALVAGED, 5): AFTER, (TOPIC, 4): BEFORE + ALONE}
        ends = client.list_offsets(dict.fromkeys(expected, -1))
        assert {place: at.offset for place, at in ends.items()} == expected

        # what a Spark stream that had read everything of partition 4 is told (U17)
        lost = Loss(TOPIC, 4, BEFORE, BEFORE + AFTER, BEFORE, Cause.TRUNCATED.value)
        (received,) = named(client, [lost], {(TOPIC, 4): 0})
        assert "the election of broker 3" in received.recovery and "basis designated" in received.recovery

    page.run("Switch the recovery manager")
    levels = {row["feature"]: row["level"] for row in json.loads(heirlog("features", "describe", "--json").out)}
    assert levels["heirlog.recovery.version"] == 1

    assert sorted(page.ran) == sorted(command for commands in COMMANDS.values() for command in commands)
