"""The clients of a run that use transactions, and what must hold for them in the end.

writer-1, writer-2    two instances of one transactional id, which fence each other
writer-3              a producer of its own
copier-1, copier-2    a consume-transform-produce loop: members of one group, each with an id of its own
committed-1           reads committed records only, all the time
committed-auditor     the same, once more, after everything has ended
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, Protocol

from heirlog.broker.transactions.shard import TransactionShard
from heirlog.broker.transactions.state import TransactionState
from heirlog.node.node import Node
from heirlog.protocol.messages import InitProducerIdRequest
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION
from heirlog.sim import group_history
from heirlog.sim.checker import Checker
from heirlog.sim.clients.consumer import Consumer
from heirlog.sim.clients.copier import Copier
from heirlog.sim.clients.force_terminator import ForceTerminator
from heirlog.sim.clients.member import OffsetsReader
from heirlog.sim.clients.overtaken_committer import OvertakenCommitter
from heirlog.sim.clients.transactional_producer import TransactionalProducer
from heirlog.sim.clients.transactions import TransactionalId
from heirlog.sim.cluster import SimCluster
from heirlog.sim.group_history import GroupHistory
from heirlog.sim.history import Finding, History, KnownLoss
from heirlog.sim.history_checks import transactions
from heirlog.sim.plan import RunPlan
from heirlog.sim.world import LogLine, Process

COPY_GROUP = "copiers"
WRITERS = {"writer-1": "shared", "writer-2": "shared", "writer-3": "alone"}
"""With their transactional ids."""
TWO_PHASE = "alone"
"""The id whose transactions have no time limit, in a run with two-phase commit."""
COPIERS = ("copier-1", "copier-2")
FIRST_VALUE = 10_000_000
VALUES = 1_000_000
"""Of each client."""
COMMITTED_READER, COMMITTED_AUDITOR = "committed-1", "committed-auditor"
TIMEOUTS_MS = (2000, 4000, 8000)
END_LIMIT_MS = 40_000
"""A request to a coordinator is given up after ten seconds; a producer that ends may make some of them."""
SETTLE_LIMIT_MS = 30_000
AUDIT_LIMIT_MS = 20_000
DROWSY, BEYOND_LIMIT = 0.3, 0.15
REPEATS = 0.2
"""Chance that an answered request is sent once more."""
TIMED_OUT = "two-phase-timed-out"
FIRST_AGED_EPOCH = 32_755
"""Of producers whose epochs are soon used up."""


def age(shard: TransactionShard, transactional_id: str) -> bool:
    """Raise the epoch of an id that is there, and had no transaction yet. Whether it needs no further attempt."""
    entry = shard._entries.get(transactional_id)
    if entry is None or entry.is_pending:
        return False
    if entry.transaction.producer_epoch != 0:
        return True
    if entry.transaction.state is not TransactionState.EMPTY:
        return False
    entry.transaction = replace(entry.transaction, producer_epoch=FIRST_AGED_EPOCH)
    return True


class LoadedRun(Protocol):
    """What the load needs of a run."""

    @property
    def cluster(self) -> SimCluster: ...

    @property
    def checker(self) -> Checker: ...

    @property
    def history(self) -> History: ...

    def reader(self, name: str, topics: list[str], *, reads_committed: bool = False) -> Consumer: ...

    def wait(self, what: str, done: Callable[[], bool], limit_ms: int) -> None: ...

    def supervised(self, done: Callable[[], bool]) -> Callable[[], bool]: ...


class TransactionalLoad:
    def __init__(
        self,
        run: LoadedRun,
        source: str,
        output: str,
        recreated: Sequence[str],
        compacted: Sequence[str],
        plan: RunPlan,
    ) -> None:
        """source: the topic that is copied, output: the one that is written; recreated: others that are written, and
        deleted now and then; compacted: others that are written and compacted.
        """
        self._plan = plan
        self._young: set[str] = {*WRITERS.values(), *COPIERS} if plan.used_up_epochs else set()
        """Ids whose epoch is still to be raised."""
        self._run = run
        self._compacted = compacted
        self._source, self._topic, self._recreated = source, output, recreated
        self._random: Random = run.cluster.world.stream("transactions")
        self._checker = run.checker.transactions
        self._group = GroupHistory(COPY_GROUP)
        self._overtaken: OvertakenCommitter | None = None
        self._writers: list[TransactionalProducer] = []
        self._copiers: list[Copier] = []
        self._readers: list[Consumer] = []
        self._audited: Collection[str] = ()
        self._timed_out: list[str] = []

    def start(self) -> None:
        run, recreated, output = self._run, self._recreated, self._topic
        bootstrap, history = run.cluster.bootstrap, run.history
        self._checker.topics = [output, *recreated, *self._compacted]
        self._checker.recreated, self._checker.compacted = recreated, self._compacted
        first_value = FIRST_VALUE
        for name, transactional_id in WRITERS.items():
            who = self._who(transactional_id)
            writer = run.cluster.run_client(
                name,
                lambda env, name=name, who=who, first_value=first_value: TransactionalProducer(  # type: ignore[misc]
                    env,
                    name,
                    bootstrap,
                    [output, *recreated, *self._compacted],
                    history,
                    who,
                    first_value,
                    unrecorded=[*recreated, *self._compacted],
                    pause_ms=self._plan.transaction_pause_ms,
                ),
            )
            self._writers.append(writer)
            first_value += VALUES
        for name in COPIERS:
            who = self._who(name)
            copier = run.cluster.run_client(
                name,
                lambda env, name=name, who=who, first_value=first_value: Copier(  # type: ignore[misc]
                    env,
                    name,
                    bootstrap,
                    self._source,
                    output,
                    self._group,
                    history.now_ms,
                    history,
                    who,
                    first_value,
                ),
            )
            self._copiers.append(copier)
            first_value += VALUES
        if self._plan.overtaken_offsets:
            self._overtaken = run.cluster.run_client(
                "overtaken",
                lambda env: OvertakenCommitter(env, "overtaken", bootstrap, self._source, history, count(first_value)),
            )
        if self._plan.two_phase_commit:
            run.cluster.world.log_listeners.append(self._on_log)
        if self._young:
            run.cluster.network.answer_listeners.append(self._age)
        self._readers.append(run.reader(COMMITTED_READER, [output], reads_committed=True))

    def _on_log(self, line: LogLine) -> None:
        if line.event == "transaction-timed-out" and line.values["transactional_id"] == TWO_PHASE:
            self._timed_out.append(str(line))

    def _age(self, server: Process, request: Any, response: Any) -> None:
        """Raise the epoch of each id once, in its coordinator's memory, as the coordinator answers that the id has a
        producer. The next record has the new epoch; if the coordinator fails before, the id stays young.
        """
        if not isinstance(request, InitProducerIdRequest) or request.transactional_id not in self._young:
            return
        name = request.transactional_id
        node = self._run.cluster.machines_by_host[server.host.name].running
        shard = None if node is None else node.broker.transactions.shard_of(name)
        if isinstance(shard, TransactionShard) and age(shard, name):
            self._young.remove(name)
            self._run.checker.transactions.log.aged[name] = FIRST_AGED_EPOCH

    def _who(self, transactional_id: str) -> TransactionalId:
        who = self._drawn(transactional_id)
        if self._plan.two_phase_commit and transactional_id == TWO_PHASE:
            # it sleeps beyond the limit that it names, which must not count
            return replace(who, timeout_ms=TIMEOUTS_MS[0], sleeps=BEYOND_LIMIT, is_two_phase=True)
        return who

    def _drawn(self, transactional_id: str) -> TransactionalId:
        random = self._random
        if self._plan.drowsy:
            knows = EPOCH_PER_TRANSACTION * self._plan.only_version_2
            return TransactionalId(transactional_id, TIMEOUTS_MS[-1], knows, sleeps=DROWSY)
        timeout_ms = TIMEOUTS_MS[random.randrange(0, len(TIMEOUTS_MS))]
        knows = EPOCH_PER_TRANSACTION * max(random.randrange(0, 2), self._plan.only_version_2)
        return TransactionalId(
            transactional_id, timeout_ms, knows, repeats=REPEATS if self._plan.late_repeats and knows else 0.0
        )

    def stop(self) -> None:
        for client in self._producers:
            client.stop()

    @property
    def _producers(self) -> list[TransactionalProducer | Copier | OvertakenCommitter]:
        return [*self._writers, *self._copiers, *([self._overtaken] if self._overtaken else [])]

    def settle(self) -> None:
        """X8: every transaction ends, by its producer or by its time limit."""
        run = self._run
        run.wait(
            "the producers of transactions have ended",
            run.supervised(lambda: all(client.ended for client in self._producers)),
            END_LIMIT_MS,
        )
        if self._plan.two_phase_commit:
            self._force_terminate()
        run.wait(
            "no transaction is open",
            run.supervised(lambda: self._checker.is_settled(self._nodes())),
            SETTLE_LIMIT_MS,
        )

    def _force_terminate(self) -> None:
        """End what a producer without a time limit has left open: no coordinator does it."""
        run = self._run
        is_open = any(
            each.transactional_id == TWO_PHASE and each.state is TransactionState.ONGOING
            for node in self._nodes()
            for shard in node.broker.transactions.shards()
            for each in shard.all()
        )
        run.cluster.world.counters["transaction.force-terminated"] += is_open
        terminator = run.cluster.run_client(
            "administrator",
            lambda env: ForceTerminator(env, "administrator", run.cluster.bootstrap, run.history, TWO_PHASE),
        )
        run.wait("the producer without a time limit is fenced", run.supervised(lambda: terminator.done), END_LIMIT_MS)

    def _nodes(self) -> list[Node]:
        return [node for _, node in self._run.checker.oracle.running_brokers()]

    def audit(self, ends: Mapping[str, int]) -> None:
        """ends: per partition as histories name it, the high watermark."""
        run = self._run
        auditor = run.reader(COMMITTED_AUDITOR, [self._topic], reads_committed=True)
        self._readers.append(auditor)
        wanted = {
            name: end
            for name, end in ends.items()
            if name.startswith(f"{self._topic}-") and name not in self._checker.hanging(self._nodes())
        }
        run.wait(
            "all committed records were read",
            lambda: all(auditor.positions.get(name, -1) >= end for name, end in wanted.items()),
            AUDIT_LIMIT_MS,
        )
        self._audited = set(wanted)
        self._offsets = run.cluster.run_client(
            "copies-reader",
            lambda env: OffsetsReader(env, "copies-reader", run.cluster.bootstrap, self._source, self._group),
        )
        self._group.reads.clear()
        run.wait(
            "the offsets of the copiers were read",
            lambda: self._offsets.done or self._checker.offsets_may_hang,
            AUDIT_LIMIT_MS,
        )
        self._checker.check_end(self._nodes())
        if not self._plan.transaction_version_changes:
            # values of version 0 have no room for the next producer id
            self._checker.check_answers(run.history.initialized)
        for reader in self._readers:
            reader.stop()

    def findings(self, losses: Collection[KnownLoss]) -> Iterator[Finding]:
        history = self._run.history
        committed = {read.partition: max(read.offset, 0) for read in self._group.reads}
        self._group.reads.clear()
        yield from group_history.findings(self._group, losses)
        yield from history.repeated
        yield from (
            Finding(TIMED_OUT, f"a transaction without a time limit was timed out: {it}") for it in self._timed_out
        )
        if self._overtaken is not None:
            yield from self._overtaken.findings
        yield from transactions.lost_transaction(history, COMMITTED_AUDITOR, self._audited, losses)
        yield from transactions.torn_transaction(history, COMMITTED_AUDITOR, self._audited, losses)
        yield from transactions.copied_once(history, COMMITTED_AUDITOR, committed, losses)
        counters = self._run.cluster.world.counters
        for attempt in history.transactions:
            counters[f"transaction.{_NAMES[attempt.outcome]}"] += 1
        counters["transaction.copied"] += sum(committed.values())
        for name, times in history.transaction_counts.items():
            counters[f"transaction.{name}"] += times


_NAMES = {True: "committed", False: "not-committed", None: "unknown"}
