"""Random faults on real processes and real clients for minutes, judged as a simulated run.

    begin --> topics --> clients start --> faults and operator's changes as drawn from the seed
          --> every fault ends --> the cluster heals --> writers flush --> readers reach the end
          --> a new reader reads everything --> the history checks of the simulator --> verdict and timeline

    chaos_plan      which faults and changes, and when          chaos_record     what clients saw
    chaos_faults    plays the faults on `chaos_cluster`         chaos_clients    librdkafka
    chaos_operator  makes the changes                           chaos_aiokafka   aiokafka (and `chaos_fenced`)
    chaos_transactions    copies in transactions
    links           the proxy between nodes (`link_proxy`)      committed_log    what controllers committed
    disk_faults     full and slow disks (`faulty_node`)         chaos_judge      findings (and `needless_losses`)
                                                                timeline         the picture (`chaos_rows`)

A seed repeats the faults, not the run: processes of an operating system do not do the same twice. So a failed drill
keeps what a person needs to understand it: the timeline, the log of each node, the metadata log, and the history.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from heirlog.blocking import LATEST, KafkaError
from heirlog.drill import chaos_plan
from heirlog.drill.chaos_aiokafka import GROUP as AIOKAFKA_GROUP
from heirlog.drill.chaos_aiokafka import AiokafkaClients
from heirlog.drill.chaos_clients import GROUP, RECONNECT, ChaosMember, ChaosReader, ChaosWriter, LatestWatch, note
from heirlog.drill.chaos_cluster import ChaosCluster
from heirlog.drill.chaos_faults import Injector
from heirlog.drill.chaos_judge import AUDITOR, COMMITTED_READER, ends_of, judge
from heirlog.drill.chaos_operator import ChaosOperator, create_topics
from heirlog.drill.chaos_record import (
    COPIED,
    KEPT,
    PARTITIONS,
    RECREATED,
    STABLE,
    Answered,
    ClientRecord,
    LatestOffset,
    RecordRead,
    now_ms,
)
from heirlog.drill.chaos_rows import LEGEND, gaps, rows
from heirlog.drill.chaos_transactions import ChaosCopier, LeftOver, committed_offsets, left_over
from heirlog.drill.committed_log import LOG_DIRECTORY, CommittedLog, committed
from heirlog.drill.needless_losses import needless_losses
from heirlog.drill.observe import DrillFailure, partitions_of
from heirlog.drill.out_folder import PICTURE, VERDICT
from heirlog.drill.servers import Servers
from heirlog.drill.timeline import draw
from heirlog.drill.workload import StoppableClient, everything, stop_all
from heirlog.metadata.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from heirlog.sim.group_history import GroupHistory
from heirlog.sim.history import Finding, InitializedProducer, TransactionAttempt

CONFIG = {
    # a fault lasts for seconds: with Kafka's nine, few would be noticed
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 4_000,
    "group.initial.rebalance.delay.ms": 500,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
    # a writer would create a deleted topic with one partition
    "auto.create.topics.enable": False,
    # the judge reads the metadata log from its first record on
    "metadata.log.max.snapshot.interval.ms": 0,
    "metadata.log.max.record.bytes.between.snapshots": 1 << 30,
}
"""Further configurations of the drill's cluster."""
KEPT_PER_S, AIOKAFKA_PER_S, RECREATED_PER_S = 60, 40, 10
RECREATED_TIMEOUT_MS = 5_000
MEMBER_LEAVES_S = 20.0
TURN_S = 0.05
HEAL_S = 120.0
READ_ON_S = 30.0
CREATE_S = 30.0
FINDINGS_KEPT = 50
NOT_HEALED, NODE_ENDED, NOTHING_PROVED = "not-healed", "node-ended", "nothing-proved"
READER_STUCK, WRITER_STUCK = "reader-stuck", "writer-stuck"


INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
_OUTCOMES = {True: "committed", False: "aborted", None: "unknown"}


class _Client(StoppableClient, Protocol):
    def start(self) -> object: ...


@dataclass(slots=True)
class Verdict:
    """What the drill found; `findings` has each broken rule as a check and a sentence."""

    minutes: float
    seed: int
    nodes: int
    controllers: int
    elr: bool
    sent: int = 0
    acknowledged: int = 0
    readable: int = 0
    """Acknowledged records that a new client found in the end."""
    excused: int = 0
    """Acknowledged records that are gone by a lossy election which is on record."""
    refused: int = 0
    """Records without an acknowledgement."""
    unjudged: int = 0
    """Observations that no check could use (`heirlog.drill.chaos_judge`)."""
    reads: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    """By kind; those that take several nodes count once for each."""
    faults_skipped: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    """Of the operator, by kind, that were answered with success."""
    changes_failed: dict[str, int] = field(default_factory=dict)
    elections: dict[str, int] = field(default_factory=dict)
    """Leaders elected in the drill's topics, by what they were chosen from."""
    leaderless_s: dict[str, float] = field(default_factory=dict)
    """Per partition, seconds without a leader while clients wrote."""
    without_answer_s: dict[str, float] = field(default_factory=dict)
    """Per partition, seconds in which a writer waited for more than a second."""
    commits: int = 0
    transactions: dict[str, int] = field(default_factory=dict)
    """By outcome, as far as their producers know it."""
    copied: int = 0
    """Records that copiers have committed as read."""
    client_errors: dict[str, int] = field(default_factory=dict)
    findings_total: int = 0
    checks: dict[str, int] = field(default_factory=dict)
    """How many findings each check has."""
    findings: list[dict[str, str]] = field(default_factory=list)
    timeline: str = ""

    @property
    def passed(self) -> bool:
        return self.findings_total == 0 and self.acknowledged > 0

    def as_json(self) -> dict[str, Any]:
        return {"drill": "chaos", **asdict(self), "passed": self.passed}


def run(
    cluster: ChaosCluster,
    verdict: Verdict,
    out: Path,
    say: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Play the drill on a started cluster with `CONFIG`, as `verdict` describes it, and complete the verdict.

    out: folder for the timeline and, after a failure, for what explains it. Raises DrillFailure.
    """
    drill = _Chaos(cluster, verdict, out, say)
    try:
        return drill.run()
    finally:
        drill.close()


class _Chaos:
    def __init__(self, cluster: ChaosCluster, verdict: Verdict, out: Path, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._servers = Servers.of(cluster)
        self._verdict = verdict
        self._out = out
        self._print = say
        self._duration_s = verdict.minutes * 60
        self._record = ClientRecord()
        self._audit = ClientRecord()
        self._groups = {name: GroupHistory(name) for name in (GROUP, AIOKAFKA_GROUP)}
        self._findings: list[Finding] = []
        self._began_s = time.monotonic()
        self._calm = threading.Lock()
        self._client = self._servers.client(5.0)
        self._admin = AdminClient({**self._servers.librdkafka(), **RECONNECT})
        self._injector = Injector(cluster, chaos_plan.faults(verdict.seed, self._duration_s), self._calm, self._say)

    def close(self) -> None:
        self._injector.close()
        self._client.close()

    def run(self) -> Verdict:
        servers = self._servers
        create_topics(self._admin, list(PARTITIONS), CREATE_S)
        record, group = self._record, self._groups[GROUP]
        readers: list[_Client] = [
            ChaosReader(servers, "reader", STABLE, record),
            ChaosReader(servers, COMMITTED_READER, (COPIED,), record),
            LatestWatch(servers, "watch", STABLE, record),
            ChaosMember(servers, 0, group, record, leaves_every_s=MEMBER_LEAVES_S),
            ChaosMember(servers, 1, group, record),
        ]
        aiokafka = AiokafkaClients(servers, AIOKAFKA_PER_S, record, self._groups[AIOKAFKA_GROUP], self._verdict.seed)
        copiers = [ChaosCopier(servers, 0, record, leaves_every_s=MEMBER_LEAVES_S), ChaosCopier(servers, 1, record)]
        writers: list[_Client] = [
            ChaosWriter(servers, 1, KEPT, KEPT_PER_S, record),
            ChaosWriter(servers, 2, RECREATED, RECREATED_PER_S, record, RECREATED_TIMEOUT_MS),
        ]
        operator = ChaosOperator(
            servers, self._cluster.brokers, chaos_plan.changes(self._verdict.seed, self._duration_s), self._calm
        )
        window_begin_ms = now_ms()
        clients: list[_Client] = [*readers, aiokafka, *writers, *copiers, operator]
        for client in clients:
            client.start()
        self._say("clients started")
        try:
            self._play()
            operator.stop()
            self._heal()
            stop_all(writers)
            aiokafka.stop_writing()
            window = (window_begin_ms, now_ms())
            self._wait_for_copiers()
            stop_all(copiers)
            left = left_over(servers, self._client)
            self._say(f"{len(record.answered)} records acknowledged; a new reader reads everything")
            self._read_everything()
            self._wait_for_readers()
        finally:
            # also after a failure: threads of librdkafka must not outlive the drill
            stop_all(clients)
        self._judge(operator, window, left)
        return self._verdict

    def _say(self, what: str) -> None:
        self._print(f"{time.monotonic() - self._began_s:6.1f} s  {what}")

    def _play(self) -> None:
        self._began_s = time.monotonic()
        while (now_s := time.monotonic() - self._began_s) < self._duration_s:
            self._injector.step(now_s)
            time.sleep(TURN_S)
        self._injector.finish()
        self._say("every fault has ended")

    # healing

    def _heal(self) -> None:
        """Wait until every node serves and every partition has its leader and its whole ISR."""
        self._cluster.wait_until_ready(HEAL_S)
        deadline = time.monotonic() + HEAL_S
        while (sick := self._sick()) and time.monotonic() < deadline:
            time.sleep(TURN_S * 4)
        if sick:
            self._findings.append(Finding(NOT_HEALED, f"{HEAL_S:g} s after the last fault: {'; '.join(sick)}"))
        self._say("the cluster has healed" if not sick else "the cluster has not healed")

    def _sick(self) -> list[str]:
        found = partitions_of(self._client, [*PARTITIONS, *INTERNAL_TOPICS])
        if found and (RECREATED, 0) not in found:
            # the operator's last attempt may have failed half-way
            try:
                create_topics(self._admin, [RECREATED], CREATE_S)
            except (KafkaException, TimeoutError) as error:
                return [f"{RECREATED} cannot be created: {error}"]
        if not found:
            return ["no broker answers"]
        return [
            f"{topic}-{index} has leader {one.leader_id}, ISR {list(one.isr_nodes)} of {list(one.replica_nodes)}"
            for (topic, index), one in sorted(found.items())
            if one.leader_id < 0 or set(one.isr_nodes) != set(one.replica_nodes)
        ]

    # reading

    def _wait_for_copiers(self) -> None:
        """Until they have copied what is in their input now. What they have not copied is judged."""
        deadline = time.monotonic() + HEAL_S
        while time.monotonic() < deadline:
            try:
                places = [(KEPT, index) for index in range(PARTITIONS[KEPT])]
                ends = self._client.list_offsets(dict.fromkeys(places, LATEST))
                done = committed_offsets(self._servers)
            except (KafkaException, KafkaError, OSError):
                time.sleep(TURN_S)
                continue
            if all(done[index] >= ends[topic, index].offset for topic, index in places):
                return
            time.sleep(TURN_S * 10)

    def _read_everything(self) -> None:
        try:
            for message in everything(self._servers, PARTITIONS):
                note(self._audit, AUDITOR, message)
        except DrillFailure as failure:
            self._findings.append(Finding(READER_STUCK, f"{AUDITOR}: {failure}"))
        self._record.changed += self._audit.changed

    def _wait_for_readers(self) -> None:
        """Each reader reaches what is the end of its partitions now."""
        ends = ends_of(self._audit.read)
        deadline = time.monotonic() + READ_ON_S
        while (behind := self._behind(ends)) and time.monotonic() < deadline:
            time.sleep(TURN_S * 4)
        for sentence in behind:
            self._findings.append(Finding(READER_STUCK, sentence))

    def _behind(self, ends: dict[tuple[str, int], int]) -> list[str]:
        reached: dict[tuple[str, str, int], int] = {}
        for one in list(self._record.read):
            reached[one.client, one.topic, one.partition] = one.offset + 1
        return [
            f"{client} reads {topic}-{index} up to {reached.get((client, topic, index), 0)} of {end} records, and no "
            f"further {READ_ON_S:g} s after the cluster has healed"
            for client, topics in (("reader", STABLE), ("aiokafka", STABLE), (COMMITTED_READER, (COPIED,)))
            for (topic, index), end in ends.items()
            if topic in topics and reached.get((client, topic, index), 0) < end
        ]

    # judgement

    def _judge(self, operator: ChaosOperator, window: tuple[int, int], left: LeftOver) -> None:
        verdict, record, faults = self._verdict, self._record, self._injector.log
        log = committed(self._cluster)
        judgement = judge(record, self._audit.read, log, self._groups.values(), left)
        self._findings += [Finding(NODE_ENDED, sentence) for sentence in faults.ended]
        self._findings += [Finding(WRITER_STUCK, sentence) for sentence in record.stuck]
        self._findings += [*judgement.findings, *needless_losses(log, faults.unclean_ends)]
        if not faults.events:
            self._findings.append(Finding(NOTHING_PROVED, "no fault was played: the drill proved nothing"))
        verdict.sent, verdict.refused = record.sent.total(), record.refused.total()
        verdict.acknowledged, verdict.reads = len(record.answered), len(record.read)
        verdict.readable, verdict.excused = judgement.readable, judgement.excused
        verdict.unjudged = judgement.unjudged
        verdict.faults, verdict.faults_skipped = faults.counts, faults.skipped
        verdict.changes = dict(sorted(operator.done.items()))
        verdict.changes_failed = dict(sorted(operator.failed.items()))
        verdict.elections = {**_clean_elections(log), **judgement.lossy_elections}
        verdict.commits = sum(
            commit.answered is not None for group in self._groups.values() for commit in group.commits.values()
        )
        verdict.transactions = dict(Counter(_OUTCOMES[one.outcome] for one in record.transactions))
        verdict.copied = sum(left.committed.values())
        verdict.client_errors = dict(record.errors.most_common())
        for topic in STABLE:
            for index in range(PARTITIONS[topic]):
                name, answered = (
                    f"{topic}-{index}",
                    [one.answered_ms for one in record.answered if one[:2] == (topic, index)],
                )
                verdict.leaderless_s[name] = _leaderless_s(log, topic, index, window)
                verdict.without_answer_s[name] = _seconds(gaps(answered, window))
        verdict.findings_total = len(self._findings)
        verdict.checks = dict(Counter(finding.check for finding in self._findings))
        verdict.findings = [asdict(finding) for finding in self._findings[:FINDINGS_KEPT]]
        self._write(log, operator, window)

    # what is left for people

    def _write(self, log: CommittedLog, operator: ChaosOperator, window: tuple[int, int]) -> None:
        verdict = self._verdict
        path = self._out / PICTURE
        nodes = [(node, f"broker {node}") for node in self._cluster.brokers]
        nodes += [(node, f"controller {node}") for node in self._cluster.controllers]
        groups = rows(
            nodes,
            self._injector.log.events,
            operator.events,
            log,
            self._record.answered,
            [*PARTITIONS, *INTERNAL_TOPICS],
            window,
        )
        title = f"heirlog drill chaos --seed {verdict.seed}: {'passed' if verdict.passed else 'FAILED'}"
        notes = [
            f"{verdict.nodes} brokers, {verdict.controllers} controllers, ELR {'on' if verdict.elr else 'off'}, "
            f"{verdict.minutes:g} min, {verdict.acknowledged} records acknowledged, {verdict.findings_total} findings",
            *(f"{finding['check']}: {finding['sentence'][:160]}" for finding in verdict.findings[:3]),
        ]
        path.write_text(draw(title, groups, *window, LEGEND, notes), encoding="utf-8")
        verdict.timeline = str(path)
        (self._out / VERDICT).write_text(json.dumps(verdict.as_json(), indent=2) + "\n", encoding="utf-8")
        if not verdict.passed:
            self._keep_evidence(operator)

    def _keep_evidence(self, operator: ChaosOperator) -> None:
        """Of a failure: what was done, what the nodes logged, the metadata logs, and what clients saw."""
        faults = self._injector.log
        done = {
            "faults": [asdict(event) for event in faults.events],
            "changes": [asdict(event) for event in operator.events],
            "unclean_ends": faults.unclean_ends,
        }
        (self._out / "faults.json").write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")
        for node in self._cluster.node_ids:
            (self._out / f"node-{node}.log").write_text(self._cluster.output(node), encoding="utf-8")
        for node in self._cluster.controllers:
            source = self._cluster.data / f"controller-{node}" / "log" / LOG_DIRECTORY
            shutil.copytree(source, self._out / f"metadata-{node}" / LOG_DIRECTORY, dirs_exist_ok=True)
        with (self._out / "history.jsonl").open("w", encoding="utf-8") as out:
            seen: list[Answered | RecordRead | LatestOffset] = [*self._record.answered, *self._record.read]
            seen += [*self._record.latest, *self._audit.read]
            for each in seen:
                out.write(json.dumps({"type": type(each).__name__, **each._asdict()}) + "\n")
            ended: list[InitializedProducer | TransactionAttempt] = [*self._record.initialized]
            ended += self._record.transactions
            for one in ended:
                out.write(json.dumps({"type": type(one).__name__, **asdict(one)}) + "\n")


def _clean_elections(log: CommittedLog) -> dict[str, int]:
    """Leaders of the drill's topics that were members of the ISR or the ELR."""
    found: Counter[str] = Counter()
    for change in log.changes:
        before, after = change.before, change.after
        if before is None or after is None or change.topic not in PARTITIONS:
            continue
        if after.leader < 0 or after.leader_epoch == before.leader_epoch or after.leader == before.leader:
            continue
        if after.leader in before.isr:
            found["isr"] += 1
        elif after.leader in before.elr:
            found["elr"] += 1
    return dict(found)


def _leaderless_s(log: CommittedLog, topic: str, index: int, window: tuple[int, int]) -> float:
    own = [change for change in log.changes if (change.topic, change.index) == (topic, index)]
    ends = [*(change.at_ms for change in own[1:]), window[1]]
    spans = [
        (max(change.at_ms, window[0]), min(end_ms, window[1]))
        for change, end_ms in zip(own, ends, strict=True)
        if change.after is not None and change.after.leader < 0
    ]
    return _seconds(spans)


def _seconds(spans: Iterable[tuple[int, int]]) -> float:
    return round(sum(max(0, end - begin) for begin, end in spans) / 1000, 1)
