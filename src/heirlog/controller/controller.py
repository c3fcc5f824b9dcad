"""The controller role of a node: the image, the records that are not committed yet, and the answers that wait for them.

    inactive   the image is the committed one of this node (`follow`); every request is refused with NOT_CONTROLLER
    active     the image is a copy. A handler reads it and returns records; they are applied and appended *at once* (the
               image is speculative: it is ahead of what is committed), with a journal to undo them; the answer waits
               until the last of them is committed

    losing leadership: journals are undone, newest first, down to the last commit; every waiting answer becomes
    NOT_CONTROLLER (which does not mean that nothing happened: another leader may still commit the records)

The rules:

* An answer that read the image waits until everything in that image is committed, even if it appended nothing itself.
  So no client ever sees a state that a failover could undo. A heartbeat on an idle controller is answered at once.
* A batch is atomic and holds at most 10,000 records and 8 MiB. A larger change is several batches. So handlers order
  records such that every prefix is safe, or put a metadata transaction around them (`all_or_none`). A single record
  that is too large is refused before anything is appended.
* No state that matters is only here. Sessions and recoveries are derived again at activation; the results of elections
  are in the image.
* What clients change waits for a later turn of the event loop when this one has done enough (`turn_budget.py`).
* After each change the recovery manager looks at what changed, in the same event (recovery/manager.py).

`heirlog.apis` names the handler of each request.

The quorum calls `on_commit` and `on_leader_change`, and never while the controller is calling it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from heirlog.controller.bootstrap import bootstrap_records
from heirlog.controller.controller_result import ControllerResult, all_or_none, check_sizes
from heirlog.controller.delegation_tokens import SWEPT_MAX, swept
from heirlog.controller.elect_leaders import balance, elect_unclean
from heirlog.controller.first_recovery_level import (
    VOTERS_WAIT_MS,
    controllers_without_recovery,
    first_recovery_level,
    wanted_level,
)
from heirlog.controller.heartbeat import elect_leaderless, fence
from heirlog.controller.leadership import Changes
from heirlog.controller.mutation_quota import MutationQuotas
from heirlog.controller.process_probe import ProcessProbe
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.controller.recovery.status import Counts, count
from heirlog.controller.recovery.switch import switched
from heirlog.controller.sessions import Sessions
from heirlog.controller.turn_budget import TurnBudget
from heirlog.env import Cancel, Env
from heirlog.metadata.apply import apply_all, read_basis
from heirlog.metadata.basis import Basis
from heirlog.metadata.config_def import StaticConfig, token_secrets
from heirlog.metadata.deprecated_configs import DEPRECATED
from heirlog.metadata.features import MANAGER_ENABLED, recovery_level
from heirlog.metadata.image import RECOVERY_VERSION, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.loss_report import Certainty, loss_of
from heirlog.metadata.state import BrokerRegistration
from heirlog.metadata.survey import Survey
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.records import (
    AbortTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
)
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint
from heirlog.raft.values import MAX_RECORDS_PER_BATCH

_CONTINUE_ELECTIONS_MS: Final = 10
_CONTINUE_SWEEP_MS: Final = 1000
_UNJUDGED_MAX: Final = 20_000
"""Elections whose losses are judged only when the metrics ask for them. Limits the memory that they take."""

R = TypeVar("R")


class VoterPort(Protocol):
    @property
    def id(self) -> BrokerId: ...


class QuorumPort(Protocol):
    """What the controller needs of `raft.Quorum`."""

    @property
    def log_end_offset(self) -> int: ...

    @property
    def voters(self) -> Sequence[VoterPort]: ...

    def append(self, records: Sequence[Any], /) -> int: ...


class MetadataBatch(Protocol):
    """`raft.replay.CommittedBatch`; without records it holds control records."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def records(self) -> Sequence[Any]: ...


@dataclass(slots=True)
class _Appended:
    """A batch that is appended and not yet committed."""

    base_offset: int
    last_offset: int
    epoch: int
    records: Sequence[Any]
    journal: ImageJournal
    elections: Sequence[Basis] = ()
    """The elections of the request whose last batch this is."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    offset: int
    pending: Pending[Any]
    response: Any
    refuse: Callable[[ErrorCode], Any]


@dataclass(frozen=True, slots=True)
class _Answer(Generic[R]):
    response: R


class Controller:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        quorum: QuorumPort,
        *,
        cluster_id: str,
        bootstrap: Sequence[Any] = (),
    ) -> None:
        """bootstrap: the records that `storage format` wrote for the first active controller; () for the defaults."""
        self.env = env
        self.static = static
        self.cluster_id = cluster_id
        self._quorum = quorum
        self._bootstrap = tuple(bootstrap)
        self.image = Image()
        """Speculative while active, committed otherwise (and then perhaps not its own). Read only."""
        self.mutation_quotas = MutationQuotas(
            lambda: self.image.client_quotas,
            env.now_ms,
            static.int("controller.quota.window.num"),
            static.int("controller.quota.window.size.seconds") * 1000,
        )
        self.token_secrets = token_secrets(static)
        """None: delegation tokens are off."""
        self.is_active = False
        self.epoch = -1
        self.elections: dict[Basis, int] = dict.fromkeys(Basis, 0)
        """Leaders elected since this process started, by basis."""
        self._losses: dict[Certainty, int] = dict.fromkeys(Certainty, 0)
        self._lossy: list[PartitionChangeRecord.ElectionBasis] = []
        """Elections that `_losses` does not contain yet."""
        self.timed_out_heartbeats = 0
        """Brokers fenced since this process started because their heartbeats stopped."""
        self.sessions = Sessions(
            static.int("broker.session.timeout.ms"), static.int("heirlog.broker.disconnect.grace.ms")
        )
        self._appended: deque[_Appended] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._probe = ProcessProbe(
            env, self._endpoint_of, self._is_in_doubt, self._process_is_gone, self.sessions.disconnect_grace_ms
        )
        self.turns = TurnBudget(env)
        self.later_parts = 0
        """Parts of requests, so far, that were left to a later turn: their records are appended after `submit`."""
        self.recovery = RecoveryManager(env, static, self._elect_recovered)
        self._has_compared_manager = False
        """The node's log has said already that its configuration differs from the cluster's."""
        self._timers: dict[str, Cancel] = {}
        self._activations = 0
        self.committed_offset = -1
        """Of the last record that this controller knows to be committed."""

    # -- requests -----------------------------------------------------------------------------------------------

    def recovery_counts(self) -> Survey[Counts]:
        """The values of KIP-966's gauges, while this controller is active."""
        return count(self.image, self.static, self.recovery)

    def broker_connection_closed(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, connection: object) -> None:
        """The connection that carried heartbeats of this registration closed or was reset."""
        if not self.is_active:
            return
        if self.sessions.connection_closed(broker_id, broker_epoch, connection, self.env.now_ms()):
            self.env.call_later(self.sessions.disconnect_grace_ms, partial(self._end_of_grace, broker_id, broker_epoch))
            self._probe.ask(broker_id, broker_epoch)

    def heartbeat_came(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, host: str) -> None:
        """host: from which it came."""
        if self.is_active and self.sessions.is_live(broker_id, broker_epoch):
            self._probe.heard(broker_id, broker_epoch, host)

    def submit(self, handler: Callable[[], ControllerResult[R]], refuse: Callable[[ErrorCode], R]) -> R | Pending[R]:
        """Run a handler against the image, append its records, and answer once they are committed.

        Returns the response itself if there is nothing to wait for, else a Pending. `refuse(code)` makes the API's
        answer to a request that this node cannot serve.
        """
        if not self.is_active:
            return refuse(ErrorCode.NOT_CONTROLLER)
        answered: Pending[R] = Pending()
        at_once = self._run(handler, refuse, answered)
        self.recovery.settle()
        return answered if at_once is None else at_once.response

    def _run(
        self, handler: Callable[[], ControllerResult[R]], refuse: Callable[[ErrorCode], R], answered: Pending[R]
    ) -> _Answer[R] | None:
        """Run one turn of a request. Returns the answer if there is nothing to wait for, else None: `answered` gets it
        later."""
        outcome = handler()
        try:
            base_offset = self._append(outcome.records)
        except KafkaError as error:
            self.env.log("warning", "metadata-append-refused", reason=str(error))
            too_large = error.code is ErrorCode.RECORD_LIST_TOO_LARGE
            return _Answer(refuse(error.code if too_large else ErrorCode.NOT_CONTROLLER))
        if outcome.elections:
            self._appended[-1].elections = outcome.elections
        if outcome.refusal:
            self.env.log("warning", "request-refused", reason=outcome.refusal)
        if outcome.rest is not None:
            self.later_parts += 1
            self.turns.continue_later(partial(self._run_rest, outcome.rest, refuse, answered, self.epoch))
            return None
        response = outcome.respond(base_offset)
        needed_offset = max(self._appended[-1].last_offset if self._appended else -1, outcome.control_offset)
        if needed_offset <= self.committed_offset:
            return _Answer(response)
        self._waiting.append(_Waiting(needed_offset, answered, response, refuse))
        return None

    def _run_rest(
        self,
        rest: Callable[[], ControllerResult[R]],
        refuse: Callable[[ErrorCode], R],
        answered: Pending[R],
        epoch: int,
    ) -> None:
        """The next turn of a request, if this controller has been active since the one before."""
        if not self.is_active or self.epoch != epoch:
            answered.complete(refuse(ErrorCode.NOT_CONTROLLER))
            return
        at_once = self._run(rest, refuse, answered)
        if at_once is not None:
            answered.complete(at_once.response)
        self.recovery.settle()

    # -- the quorum's listener ----------------------------------------------------------------------------------

    def follow(self, committed: Image) -> None:
        """Use this image while inactive. Its owner applies to it what is committed, before `on_commit` is called."""
        assert not self.is_active, "an active controller has the newest state there is"
        self.image = committed
        self.committed_offset = committed.offset

    def on_commit(self, batches: Sequence[MetadataBatch]) -> None:
        for batch in batches:
            if batch.last_offset > self.image.offset:  # and not, if the image has another owner
                apply_all(self.image, batch.records, batch.base_offset, batch.epoch)
                # control records do not change the image, but they have offsets
                self.image.offset, self.image.epoch = batch.last_offset, batch.epoch
            while self._appended and self._appended[0].last_offset <= batch.last_offset:
                self._count(self._appended.popleft())
            self.committed_offset = batch.last_offset
        self._compare_manager()
        if self.is_active and RECOVERY_VERSION not in self.image.features:
            # a controller may have registered; nothing is appended within a call of the quorum
            self.env.call_later(0, self._write_first_recovery_level)
        self._answer_committed()

    def on_leader_change(self, leader_id: int, epoch: int, is_me: bool) -> None:
        if self.is_active and not (is_me and epoch == self.epoch):
            self._deactivate()
        if is_me and not self.is_active:
            self._activate(epoch)

    def shutdown(self) -> None:
        """The node stops: append and answer nothing from now on."""
        if self.is_active:
            self._deactivate()

    # -- becoming active and inactive ----------------------------------------------------------------------------

    def _activate(self, epoch: int) -> None:
        self.is_active, self.epoch = True, epoch
        self.image = self.image.copy()
        self._activations += 1
        self.env.log("info", "controller-active", epoch=epoch, offset=self.image.offset)
        if self.image.open_transaction is not None:
            # its controller stopped before its end, so nothing of it takes effect; records after it would be held back
            # too
            self._append([AbortTransactionRecord(reason="its controller stopped before the transaction ended")])
        if self.image.metadata_version == 0:
            is_only_voter = len(self._quorum.voters) == 1
            self._append(bootstrap_records(self.static, self._bootstrap, is_only_voter=is_only_voter))
        self._write_first_recovery_level()
        for name in DEPRECATED:
            if name in self.static.given:
                self._warn_of_deprecated(name, "server.properties")
        self._start_sessions()
        self._hold_elections()
        self.recovery.start(self.image)
        self._every("no-op", self.static.int("metadata.max.idle.interval.ms"), self._write_no_op)
        if self.token_secrets is not None:
            self._sweep_tokens()
        self._expect_session_check(self.sessions.check_interval_ms)
        if self.static["auto.leader.rebalance.enable"]:
            interval_ms = self.static.int("leader.imbalance.check.interval.seconds") * 1000
            self._run_elections("balance", interval_ms, balance)
        self._run_elections("elect-unclean", self.static.int("unclean.leader.election.interval.ms"), elect_unclean)

    def _write_first_recovery_level(self, *, has_waited: bool = False) -> None:
        """Write the first level of the recovery feature once it is known.

        In a log that is older than the feature it is unknown whether lists were written with the recovery manager on or
        off: the configuration file may have been changed with the upgrade. So the lists are rewritten as by a switch.
        At worst a recovery then waits for more replicas, or for an operator.
        """
        if not self.is_active or RECOVERY_VERSION in self.image.features:
            return
        wanted = wanted_level(self.static, self._bootstrap)
        voters = [voter.id for voter in self._quorum.voters]
        level = first_recovery_level(self.image, wanted, voters, has_waited=has_waited)
        if level is None:
            if "first-level" not in self._timers:
                wait = partial(self._write_first_recovery_level, has_waited=True)
                self._timers["first-level"] = self.env.call_later(VOTERS_WAIT_MS, wait)
            return
        if level < wanted:
            lacking = [int(controller) for controller in controllers_without_recovery(self.image)]
            self.env.log("warning", "recovery-manager-begins-off", controllers_without_it=lacking)
        changes = switched(self.image, self.static, bool(level))
        record = FeatureLevelRecord(name=RECOVERY_VERSION, feature_level=level)
        records = all_or_none("Feature levels", [record, *changes.records])
        self._append_own(ControllerResult(_no_answer, records, changes.elections))

    def _deactivate(self) -> None:
        self.is_active = False
        self.env.log("info", "controller-inactive", epoch=self.epoch)
        for cancel in self._timers.values():
            cancel()
        self._timers.clear()
        self.recovery.stop()
        self.sessions.clear()
        self._probe.forget_all()
        while self._appended:
            self.image.undo(self._appended.pop().journal)
        waiting, self._waiting = self._waiting, deque()
        for wait in waiting:
            wait.pending.complete(wait.refuse(ErrorCode.NOT_CONTROLLER))

    def _start_sessions(self) -> None:
        now_ms = self.env.now_ms()
        for broker in sorted(self.image.brokers.values(), key=lambda broker: broker.id):
            if self._is_own_earlier_incarnation(broker):
                self.expire_session(broker.id, "it was a process before this one")
            elif not broker.fenced:
                session = self.sessions.start(broker.id, broker.epoch, now_ms)
                if broker.in_controlled_shutdown:
                    # the offset at which its shutdown began is lost; the image contains everything up to it
                    session.shutdown_offset = self.image.offset

    def _is_own_earlier_incarnation(self, broker: BrokerRegistration) -> bool:
        """Whether an earlier process of this very node, which is dead, made this broker registration.

        Otherwise a node with both roles that was killed would wait for its own session to end. Only the single voter
        of a quorum knows this, when it becomes active for the first time: no other controller was active while this
        process ran, and it accepts no registration before it is active.
        """
        is_first = self._activations == 1
        return is_first and broker.id == self.static.node_id and len(self._quorum.voters) == 1

    def _hold_elections(self) -> None:
        """Hold the elections that were still missing when a controller stopped in a change of several batches."""
        self._append_own(elect_leaderless(self.image, self.static, None, None))

    # -- appending and committing -------------------------------------------------------------------------------

    @property
    def next_offset(self) -> int:
        """Offset of the next record that is appended: a handler's first record gets it."""
        return self._quorum.log_end_offset

    def _append(self, records: Sequence[Any]) -> int:
        """Append, apply and journal the records; returns the first one's offset. Raises the quorum's KafkaError."""
        first = self.next_offset
        check_sizes(records)
        self._note_appended(records)
        for start in range(0, len(records), MAX_RECORDS_PER_BATCH):
            self._append_batch(records[start : start + MAX_RECORDS_PER_BATCH], first + start)
        return first

    def _append_batch(self, batch: Sequence[Any], first: int) -> None:
        journal = self._apply(batch, first)
        try:
            base_offset = self._quorum.append(batch)
        except Exception as error:
            self.image.undo(journal)
            is_too_large = isinstance(error, KafkaError) and error.code is ErrorCode.RECORD_LIST_TOO_LARGE
            if not is_too_large or len(batch) == 1:
                raise
            # only the quorum knows the size in bytes; it encodes in vain only if the batch is too large
            half = len(batch) // 2
            self._append_batch(batch[:half], first)
            self._append_batch(batch[half:], first + half)
            return
        assert base_offset == first, "records took other offsets than their handler had counted on"
        self._appended.append(_Appended(base_offset, base_offset + len(batch) - 1, self.epoch, batch, journal))
        self.turns.appended(len(batch))
        self.recovery.records_applied(journal)

    def _apply(self, batch: Sequence[Any], first: int) -> ImageJournal:
        """Apply a batch before it is appended: what this node cannot apply must not reach the log, where it would end
        every other controller as well. As on Apache Kafka, the node ends: its image is no longer what the log says.
        """
        journal = self.image.journal()
        try:
            apply_all(self.image, batch, first, self.epoch, journal)
        except Exception as error:
            failed = type(batch[self.image.offset - first]).__name__
            self.env.stop(
                1,
                f"the active controller could not apply the {failed} that it made for offset {self.image.offset} "
                f"of the metadata log, and ended before the record was appended: {error!r}. Another controller takes "
                "over; report this with the log lines before this one",
            )
            raise
        return journal

    def _note_appended(self, records: Iterable[Any]) -> None:
        """Log what operators should know about these records.

        Also write the controller epoch and the time into each election that may lose records: a snapshot keeps no
        batch headers."""
        for record in records:
            if type(record) is PartitionChangeRecord and record.election_basis is not None:
                record.election_basis.controller_epoch = self.epoch
                record.election_basis.timestamp_ms = self.env.wall_ms()
            elif type(record) is ConfigRecord and record.name in DEPRECATED and record.value is not None:
                self._warn_of_deprecated(record.name, record.resource_name)
            elif type(record) is BrokerRegistrationChangeRecord and record.fenced == -1:
                self.env.log("info", "broker-unfenced", broker=record.broker_id)

    def _warn_of_deprecated(self, name: str, where: str) -> None:
        """Log that a deprecated configuration was set; where: the topic, or "" for the cluster."""
        deprecated = DEPRECATED[name]
        self.env.log(
            "warning",
            "configuration-deprecated",
            name=name,
            where=where,
            instead=deprecated.instead,
            meaning=deprecated.meaning,
        )

    def _compare_manager(self) -> None:
        """Log once that this node's configuration of the recovery manager differs from the cluster's level."""
        level = self.image.features.get(RECOVERY_VERSION)
        if self._has_compared_manager or level is None or MANAGER_ENABLED not in self.static.given:
            return
        configured = recovery_level(self.static)
        if level != configured:
            self._has_compared_manager = True
            self.env.log("warning", "recovery-manager-config-ignored", configured=configured, finalized=level)

    def _elect_recovered(self, changes: Changes) -> None:
        self._append_own(ControllerResult(_no_answer, [*changes.records], changes.elections))

    def _answer_committed(self) -> None:
        while self._waiting and self._waiting[0].offset <= self.committed_offset:
            wait = self._waiting.popleft()
            wait.pending.complete(wait.response)

    def _count(self, committed: _Appended) -> None:
        """Count elections once they are committed: one that is only appended may still be undone."""
        for basis in committed.elections:
            self.elections[basis] += 1
        for record in committed.records:
            if type(record) is PartitionChangeRecord and record.election_basis is not None:
                self._lossy.append(record.election_basis)
        if len(self._lossy) >= _UNJUDGED_MAX:
            self._judge_losses()

    @property
    def losses(self) -> dict[Certainty, int]:
        """The elections on a lossy basis since this process started, by whether they lost records."""
        self._judge_losses()
        return self._losses

    def _judge_losses(self) -> None:
        """Not at the election: while thousands of partitions are elected, the others wait for that."""
        for stored in self._lossy:
            election = read_basis(stored)
            self._losses[loss_of(election.leader, election.replicas).certainty] += 1
        self._lossy.clear()

    # -- periodic tasks -----------------------------------------------------------------------------------------

    def _every(self, name: str, interval_ms: int, task: Callable[[], None]) -> None:
        """Run `task` every `interval_ms` while active; 0 means never."""
        if interval_ms <= 0:
            return

        def run() -> None:
            self._every(name, interval_ms, task)
            task()

        self._timers[name] = self.env.call_later(interval_ms, run)

    def _write_no_op(self) -> None:
        """Write a no-op record, so that followers see a live leader, and waiting fetches and lag metrics advance."""
        self._append_own(ControllerResult(_no_answer, [NoOpRecord()]))

    def _sweep_tokens(self) -> None:
        """Remove delegation tokens that have ended, first at activation: the last controller may have been late."""
        records = swept(self.image, self.env.wall_ms())
        if records:
            self.env.log("info", "delegation-tokens-expired", count=len(records))
        self._append_own(ControllerResult(_no_answer, records))
        interval_ms = self.static.int("delegation.token.expiry.check.interval.ms")
        delay_ms = _CONTINUE_SWEEP_MS if len(records) == SWEPT_MAX else interval_ms
        self._timers["sweep-tokens"] = self.env.call_later(delay_ms, self._sweep_tokens)

    def _append_own(self, outcome: ControllerResult[None]) -> None:
        if outcome.records or outcome.rest is not None:
            self.submit(lambda: outcome, _no_answer)

    def _expect_session_check(self, delay_ms: int) -> None:
        due_ms = self.env.now_ms() + delay_ms
        self._timers["sessions"] = self.env.call_later(delay_ms, lambda: self._check_sessions(due_ms))

    def _check_sessions(self, due_ms: int) -> None:
        now_ms = self.env.now_ms()
        if now_ms - due_ms > self.sessions.check_interval_ms:
            self.sessions.extend_all(now_ms - due_ms)
        stale = self.sessions.longest_without_heartbeat(now_ms)
        # if one session is stale, others may be too
        self._expect_session_check(self.sessions.check_interval_ms if stale is None else 0)
        if stale is not None:
            self.timed_out_heartbeats += 1
            self.expire_session(stale, "no heartbeat for broker.session.timeout.ms")

    def _end_of_grace(self, broker_id: BrokerId, broker_epoch: BrokerEpoch) -> None:
        if self.is_active and self.sessions.grace_has_ended(broker_id, broker_epoch, self.env.now_ms()):
            self.expire_session(broker_id, "its connection closed, and no heartbeat came on another one")

    def _is_in_doubt(self, broker_id: BrokerId, broker_epoch: BrokerEpoch) -> bool:
        return self.is_active and self.sessions.is_disconnected(broker_id, broker_epoch)

    def _process_is_gone(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, endpoint: Endpoint) -> None:
        self.expire_session(broker_id, f"its connection closed, and nothing listens at {endpoint}")

    def _endpoint_of(self, broker_id: BrokerId) -> Endpoint | None:
        broker = self.image.brokers.get(broker_id)
        return None if broker is None else broker.endpoint(self.static.inter_broker_listener_name)

    def expire_session(self, broker_id: BrokerId, reason: str) -> None:
        """Treat the broker as dead: end its session, and fence it if it is not fenced yet."""
        self.sessions.end(broker_id)
        broker = self.image.brokers.get(broker_id)
        if broker is not None and not broker.fenced:
            self.env.log("warning", "broker-fenced", broker=broker_id, reason=reason)
            self._append_own(fence(self.image, self.static, broker, None))

    def _run_elections(
        self,
        name: str,
        interval_ms: int,
        task: Callable[[Image, StaticConfig], tuple[Changes, bool]],
        delay_ms: int | None = None,
    ) -> None:
        """Run an election task every `interval_ms`, and again soon if it stopped at its limit."""

        def run() -> None:
            changes, cut_short = task(self.image, self.static)
            self._append_own(ControllerResult(_no_answer, [*changes.records], changes.elections))
            soon = _CONTINUE_ELECTIONS_MS if cut_short else None
            self._run_elections(name, interval_ms, task, soon)

        self._timers[name] = self.env.call_later(interval_ms if delay_ms is None else delay_ms, run)


def _no_answer(_: object) -> None:
    """The answer to a change that no client requested."""
