"""Starts, continues and ends the recoveries of partitions.

    records applied   the partitions that they changed are judged again: those without a leader start, continue or end
                      their recovery
    answers, failures the partitions that they are about are judged again
    time              the earliest end of a window or time limit of all recoveries
    heartbeats        every partition without a leader is judged again, so that a recovery that was lost restarts
    an operator       a strategy for this one election, without the wait for replicas outside the quorum if requested.
                      It is valid until the configured strategy of the topic changes

Everything is derived from the image and from the answers in memory. Nothing is stored: a new controller asks the
replicas again. A recovery belongs to one partition (by topic id) and one leader epoch. A change of either ends it, so
an answer can only elect a leader in the epoch for which it was given. A decision reads the current image, and its
record is appended in the same event: nothing can change between the check and the record.

All partitions of one round are judged first; then all their elections are appended as one list of records. If there are
very many partitions, a round takes some of them and another round follows. Partitions that can be decided come first:
brokers take them over while replicas of the others are asked.

With the manager off (level 0 of the feature `heirlog.recovery.version`) there are no recoveries, and no leader is
elected here. Replicas are still asked when an operator wants to know what they hold.

Source: KIP-966, "Unclean recovery".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from heirlog.controller.election import ElectionResult
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.partition_change import BuiltChange, ElectionRequest
from heirlog.controller.recovery.decision import Case, Phase, RecoveryDecision, judge, judge_without_manager
from heirlog.controller.recovery.open_recoveries import OpenRecoveries
from heirlog.controller.recovery.replica_log_info import ReplicaLogInfo, counts
from heirlog.controller.recovery.sender import PARTITIONS_MAX, RecoverySender
from heirlog.controller.recovery.strategy import STRATEGY, TIMEOUT, UNCLEAN_ELECTION_ENABLE, Strategy
from heirlog.env import Cancel, Env, SendFailure
from heirlog.metadata.basis import Basis
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import server_value
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.min_isr import MIN_ISR
from heirlog.metadata.state import RECOVERY_VERSION, PartitionRegistration
from heirlog.protocol.types import NO_LEADER, BrokerId, Endpoint, PartitionKey

AGGRESSIVE_WINDOW_MS: Final = 5000
"""KIP-966: how long Aggressive collects answers."""
SWEEP_INTERVAL_MS: Final = 2000
"""Minimum interval between two heartbeats that have every partition judged again."""
LOGGED_MAX: Final = 20
"""Elections and waits of one round that are logged one by one."""
ROUND_PARTITIONS_MAX: Final = PARTITIONS_MAX
"""Partitions judged in one round: as many as one request holds. Before the next round the node does its other work: it
answers heartbeats, and brokers take over the partitions that were elected.
"""
MANY_ELECTIONS: Final = 100
MANY_ELECTIONS_MS: Final = 200
"""For this time after a round with many elections, more are likely to follow."""
SURVEY_MS: Final = 5000
"""How long replicas are asked again when only an operator wants the answer."""
_CONFIGS: Final = (STRATEGY, UNCLEAN_ELECTION_ENABLE, MIN_ISR, TIMEOUT)


class Failure(NamedTuple):
    """Why a broker gave no answer."""

    what: str
    at_ms: int


@dataclass(slots=True)
class _Round:
    """The results of one round so far."""

    leadership: Leadership
    changes: Changes = field(default_factory=Changes)
    lossy: list[tuple[PartitionKey, BuiltChange]] = field(default_factory=list)
    waiting: list[tuple[PartitionKey, RecoveryDecision]] = field(default_factory=list)
    """Partitions for which this round set the end of a wait."""
    began: int = 0
    cancelled: int = 0


class RecoveryManager:
    def __init__(self, env: Env, static: StaticConfig, elect: Callable[[Changes], None]) -> None:
        """elect: appends the records of elections."""
        self._env = env
        self._static = static
        self._elect = elect
        self._image = Image()
        self._runs = False
        self.sender = RecoverySender(env, self)
        self.aggressive_window_ms = AGGRESSIVE_WINDOW_MS
        self.open_recoveries = OpenRecoveries()
        self.failures: dict[BrokerId, Failure] = {}
        """The failure of the last request to each broker, if it had no answer."""
        self._to_judge: dict[PartitionKey, None] = {}
        self._to_decide: dict[PartitionKey, None] = {}
        """Judged before the others: all answers that they waited for have come."""
        self._settling = False
        self._cancel_pause: Cancel | None = None
        self._elects_many_until_ms = -1
        self._due: list[tuple[int, PartitionKey]] = []
        self._cancel_timer: Cancel | None = None
        self._timer_ms = -1
        self._next_sweep_ms = -1
        self._timeout_ms: int = static[TIMEOUT]

    # -- life -----------------------------------------------------------------------------------------------------

    def start(self, image: Image) -> None:
        """The controller is active: start the recoveries that the image requires."""
        self._image = self.open_recoveries.image = image
        self._runs = True
        self.judge_all()
        self.settle()

    def stop(self) -> None:
        """The controller is not active any more: forget everything. The next controller starts from its image."""
        self._runs = False
        self._image = self.open_recoveries.image = Image()
        self.sender.stop()
        self.open_recoveries.recoveries.clear()
        self.failures.clear()
        self._to_judge.clear()
        self._to_decide.clear()
        self._due.clear()
        self._next_sweep_ms = self._elects_many_until_ms = -1
        for cancel in (self._cancel_timer, self._cancel_pause):
            if cancel is not None:
                cancel()
        self._cancel_timer = self._cancel_pause = None

    @property
    def enabled(self) -> bool:
        return self._image.recovery_manager_enabled

    @property
    def elects_many(self) -> bool:
        """Whether many elections are in progress, so that other work should wait."""
        return self._env.now_ms() < self._elects_many_until_ms

    # -- events -----------------------------------------------------------------------------------------------------

    def records_applied(self, changed: ImageJournal) -> None:
        """Records were applied. `settle` acts on it."""
        if not self._runs:
            return
        self._to_judge |= dict.fromkeys(changed.partitions)
        if changed.brokers:
            for broker in sorted(changed.brokers):
                self.failures.pop(broker, None)
                self.sender.broker_changed(broker)
            self._judge_replicas_of(set(changed.brokers))
        if not self.enabled and RECOVERY_VERSION in changed.features:
            # operators' requests and running recoveries end with the manager
            self.open_recoveries.recoveries.clear()
        if changed.features or any(key in _CONFIGS for _, _, key in changed.configs):
            self._judge_configured(changed)

    def heartbeat(self) -> None:
        """A heartbeat came: restart recoveries that should be running and are not."""
        if not self._runs or not self.enabled or not self._image.leaders.any(NO_LEADER):
            return
        if self._cancel_pause is not None:
            return  # another round follows anyway
        now_ms = self._env.now_ms()
        if now_ms >= self._next_sweep_ms:
            self._next_sweep_ms = now_ms + SWEEP_INTERVAL_MS
            self.judge_all()
            self.settle()

    def judge_all(self) -> None:
        self._to_judge |= dict.fromkeys(self._image.leaderless())

    def settle(self) -> None:
        """Judge changed partitions, elect and ask, until nothing is left to do or a full round is done."""
        if self._settling or self._cancel_pause is not None or not self._runs:
            return
        self._settling = True
        try:
            while (self._to_decide or self._to_judge) and self._runs and self._cancel_pause is None:
                keys = list(islice(chain(self._to_decide, self._to_judge), ROUND_PARTITIONS_MAX))
                for key in keys:
                    self._to_decide.pop(key, None)
                    self._to_judge.pop(key, None)
                if len(keys) == ROUND_PARTITIONS_MAX:
                    self._cancel_pause = self._env.call_later(0, self._next_round)
                self._judge_round(sorted({*keys}))
        finally:
            self._settling = False
        self._set_timer()

    def _next_round(self) -> None:
        self._cancel_pause = None
        self.settle()

    def _judge_replicas_of(self, brokers: set[BrokerId]) -> None:
        for topic_id, partition in self._image.leaderless():
            if not brokers.isdisjoint(self._image.partitions[topic_id][partition].replicas):
                self._to_judge[topic_id, partition] = None

    def _judge_configured(self, changed: ImageJournal) -> None:
        names = {name for kind, name, key in changed.configs if kind == TOPIC_RESOURCE and key in _CONFIGS}
        everywhere = bool(changed.features) or any(
            kind == BROKER_RESOURCE and key in _CONFIGS for kind, _, key in changed.configs
        )
        for topic_id, partition in self._image.leaderless():
            if everywhere or self._image.topics[topic_id].name in names:
                self._to_judge[topic_id, partition] = None

    # -- judging ----------------------------------------------------------------------------------------------------

    def judge(self, key: PartitionKey, state: PartitionRegistration, leadership: Leadership) -> RecoveryDecision:
        """Decide which replicas the partition waits for, or which one wins, in the current state."""
        if not self._image.elr_enabled and (state.elr or state.last_known_elr):
            # lists from the time when ELR was on: nothing has kept them correct since
            state = state._replace(elr=(), last_known_elr=())
        recovery, acceptable = self.open_recoveries.recoveries.get(key), leadership.acceptable_replicas(state)
        if not self.enabled:
            return judge_without_manager(state, acceptable, leadership.allows_unclean(key[0]), self._image.elr_enabled)
        now_ms = self._env.now_ms()
        case = Case(
            state=state,
            strategy=self.strategy(key, leadership),
            min_isr=leadership.min_isr(key[0], state.replicas),
            acceptable=acceptable,
            answers={},
            now_ms=now_ms,
            began_ms=now_ms,
            window_ms=self.aggressive_window_ms,
            timeout_ms=self._timeout_ms,
        )
        if recovery is not None:
            case.answers = self.open_recoveries.answers_that_count(key, state)
            case.skips_wait = recovery.skips_wait
            if recovery.began_ms is not None:
                case.began_ms = recovery.began_ms
        return judge(case)

    def strategy(self, key: PartitionKey, leadership: Leadership) -> Strategy:
        """The strategy that an operator requested for this election, else the configured one."""
        recovery = self.open_recoveries.recoveries.get(key)
        if recovery is not None and recovery.requested is not None:
            return recovery.requested
        return leadership.strategy(key[0])

    def _judge_round(self, keys: Sequence[PartitionKey]) -> None:
        self._timeout_ms = server_value(self._image, self._static, TIMEOUT)
        current = _Round(Leadership(self._image, self._static))
        asked: dict[BrokerId, list[PartitionKey]] = {}
        for key in keys:
            state = self._image.partition(*key)
            if state is None or state.has_leader:
                self.open_recoveries.recoveries.pop(key, None)
                continue
            self.open_recoveries.drop_if_stale(key, state)
            if not self.enabled or not self._act(key, state, current):
                for broker in self._to_ask(key, state):
                    asked.setdefault(broker, []).append(key)
        self._report(current)
        if current.changes.records:
            self._elect(current.changes)
        if len(current.changes.records) >= MANY_ELECTIONS:
            self._elects_many_until_ms = self._env.now_ms() + MANY_ELECTIONS_MS
        for broker in sorted(asked):
            self.sender.ask(broker, asked[broker])

    def _act(self, key: PartitionKey, state: PartitionRegistration, current: _Round) -> bool:
        """Start, continue, end or decide the recovery; returns whether a leader was elected."""
        recovery = self.open_recoveries.recoveries.get(key)
        if recovery is not None and recovery.replaced_strategy not in (None, current.leadership.strategy(key[0])):
            recovery.requested, recovery.replaced_strategy, recovery.skips_wait = None, None, False
        strategy = self.strategy(key, current.leadership)
        if recovery is not None and recovery.strategy is not strategy:
            # a recovery with another strategy starts from its beginning
            recovery.stop()
        verdict = self.judge(key, state, current.leadership)
        if verdict.phase is Phase.RECOVERING:
            recovery = recovery or self.open_recoveries.opened(key, state)
            if recovery.began_ms is None:
                recovery.began_ms, recovery.strategy = self._env.now_ms(), strategy
                current.began += 1
        elif recovery is not None and recovery.began_ms is not None and verdict.phase is not Phase.WAITING_FOR_QUORUM:
            # the answers stay valid: without a leader no log changes
            recovery.stop()
            current.cancelled += 1
        if verdict.phase is Phase.CLEAN_CANDIDATE or verdict.winner is not None:
            return self._decide(key, state, verdict, current)
        if recovery is None:
            return False
        recovery.awaited = set() if verdict.any_decides else set(verdict.waits_for)
        if verdict.wait_ends_ms != recovery.due_ms:
            recovery.due_ms = verdict.wait_ends_ms
            if recovery.due_ms is not None:
                heapq.heappush(self._due, (recovery.due_ms, key))
                current.waiting.append((key, verdict))
        return False

    def _decide(
        self, key: PartitionKey, state: PartitionRegistration, verdict: RecoveryDecision, current: _Round
    ) -> bool:
        chosen = None if verdict.winner is None else ElectionResult(verdict.winner, Basis.RECOVERED)
        built = current.leadership.change(
            *key,
            election_request=ElectionRequest(chosen=chosen, answers=self.open_recoveries.recorded_answers(key, state)),
        )
        if built.basis is None:
            return False
        current.changes.add(built)
        if built.basis.is_lossy:
            current.lossy.append((key, built))
        return True

    def _report(self, current: _Round) -> None:
        if current.began or current.cancelled or current.waiting or current.changes.records:
            self._env.log(
                "info",
                "unclean-recovery",
                began=current.began,
                cancelled=current.cancelled,
                waiting=len(current.waiting),
                elected=len(current.lossy),
                elected_clean=len(current.changes.records) - len(current.lossy),
                requests=self.sender.requests_sent,
            )
        for (topic_id, partition), verdict in current.waiting[:LOGGED_MAX]:
            assert verdict.wait_ends_ms is not None, "only such a wait is noted"
            self._env.log(
                "info",
                "recovery-waits",
                topic=self._image.topics[topic_id].name,
                partition=partition,
                waits_for=list(verdict.waits_for),
                ends_in_ms=verdict.wait_ends_ms - self._env.now_ms(),
            )
        for (topic_id, partition), built in current.lossy[:LOGGED_MAX]:
            assert built.record is not None and built.record.election_basis is not None, "a lossy election says so"
            basis = built.record.election_basis
            self._env.log(
                "warning",
                "recovery-elected",
                topic=self._image.topics[topic_id].name,
                partition=partition,
                leader=basis.leader,
                leader_epoch=basis.leader_epoch,
                end_offset=basis.end_offset,
                answers=[
                    [answer.broker_id, answer.last_written_leader_epoch, answer.log_end_offset]
                    for answer in basis.replicas
                    if answer.broker_epoch >= 0
                ],
            )

    # -- operators' requests ----------------------------------------------------------------------------------------

    def survey(self, keys: Iterable[PartitionKey]) -> None:
        """Note that an operator wants to know what the replicas of these partitions hold; `settle` asks them."""
        until_ms = self._env.now_ms() + SURVEY_MS
        for key in keys:
            state = self._image.partition(*key)
            if state is not None and not state.has_leader:
                self.open_recoveries.opened(key, state).surveyed_until_ms = until_ms
                self._to_judge[key] = None

    def request(
        self, key: PartitionKey, strategy: Strategy, skips_wait: bool, leadership: Leadership, changes: Changes
    ) -> RecoveryDecision:
        """Recover this leaderless partition for an operator; a leader that is elected at once is in `changes`.

        The request is valid until the partition has a leader, its configured strategy changes, or another controller
        becomes active.
        """
        state = self._image.partitions[key[0]][key[1]]
        recovery = self.open_recoveries.opened(key, state)
        recovery.requested, recovery.skips_wait = strategy, skips_wait
        recovery.replaced_strategy = leadership.strategy(key[0])
        current = _Round(leadership)
        if self._act(key, state, current):
            self._report(current)
            changes.records += current.changes.records
            changes.elections += current.changes.elections
        self._to_judge[key] = None
        return self.judge(key, state, leadership)

    def _to_ask(self, key: PartitionKey, state: PartitionRegistration) -> list[BrokerId]:
        if not self._asks_replicas(key):
            return []
        known = self.open_recoveries.answers_that_count(key, state)
        return [replica for replica in state.replicas if replica not in known]

    def _asks_replicas(self, key: PartitionKey) -> bool:
        recovery = self.open_recoveries.recoveries.get(key)
        if recovery is None:
            return False
        return recovery.began_ms is not None or self._env.now_ms() < recovery.surveyed_until_ms

    # -- the sender's listener --------------------------------------------------------------------------------------

    def endpoint_of(self, broker: BrokerId) -> Endpoint | None:
        """None for a broker that did not register the recovery feature: it does not serve GetReplicaLogInfo."""
        registered = self._image.brokers.get(broker)
        if registered is None or not any(
            feature.name == RECOVERY_VERSION and feature.max_version >= 1 for feature in registered.features
        ):
            return None
        named = registered.endpoint(self._static.inter_broker_listener_name)
        if named is None and registered.listeners:
            # the controller's configuration need not name the brokers' listener
            return registered.listeners[0].endpoint
        return named

    def wants(self, broker: BrokerId, key: PartitionKey) -> bool:
        state = self._image.partition(*key)
        if state is None or state.has_leader or broker not in state.replicas or not self._asks_replicas(key):
            return False
        recovery, registered = self.open_recoveries.recoveries[key], self._image.brokers.get(broker)
        answer = recovery.answers.get(broker)
        return answer is None or registered is None or not counts(answer, registered.epoch, state.leader_epoch)

    def answered(self, broker: BrokerId, answers: Sequence[tuple[PartitionKey, ReplicaLogInfo]]) -> list[PartitionKey]:
        self.failures.pop(broker, None)
        registered = self._image.brokers.get(broker)
        of_no_use = []
        for key, answer in answers:
            recovery, state = self.open_recoveries.recoveries.get(key), self._image.partition(*key)
            # meanwhile the partition may be deleted or have a leader, and its replicas may have changed
            if recovery is None or state is None or broker not in state.replicas:
                continue
            recovery.answers[broker] = answer
            if registered is None or not counts(answer, registered.epoch, state.leader_epoch):
                of_no_use.append(key)
            # judge only after the last answer that the partition waits for: once instead of once per answer
            recovery.awaited.discard(broker)
            if not recovery.awaited:
                self._to_decide[key] = None
        self.settle()
        return of_no_use

    def not_answered(self, broker: BrokerId, keys: Sequence[PartitionKey], failure: SendFailure) -> None:
        what = f"{failure.kind}: {failure.detail}" if failure.detail else failure.kind
        self.failures[broker] = Failure(what, self._env.now_ms())

    # -- time -------------------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Set the one timer to the earliest end of a wait; if that wait is over already, judging changes nothing."""
        if not self._due or (self._cancel_timer is not None and self._timer_ms <= self._due[0][0]):
            return
        if self._cancel_timer is not None:
            self._cancel_timer()
        self._timer_ms = self._due[0][0]
        self._cancel_timer = self._env.call_later(max(0, self._timer_ms - self._env.now_ms()), self._waits_end)

    def _waits_end(self) -> None:
        self._cancel_timer = None
        now_ms = self._env.now_ms()
        while self._due and self._due[0][0] <= now_ms:
            _, key = heapq.heappop(self._due)
            self._to_judge[key] = None
        self.settle()
        self._set_timer()
