"""The quorum as the rest of a node sees it: one ordered log of metadata records.

    start    read quorum-state -> recover the log -> load the newest snapshot -> the first role (`epoch_driver.py`)

    the node leads           `leader.LeaderState`: orders the records, serves fetches, knows what is committed
    it follows, or seeks     `observer.Observer`: fetches from the leader, or from any node that may name it
    it asks for votes        `epoch_driver.py` does that; nothing is fetched or served meanwhile

What must be durable, and before which step:

    the epoch and the vote in it    before any answer, request or append of that epoch (`epoch_driver.py`)
    a record                        before it counts for its commit, in the leader's own log too (guard 14)
    a snapshot under its name       before the log that it replaces is truncated

A leader sends its followers records that it has not flushed itself; they count once a majority has flushed them.

When a node stops leading, its listeners are notified before they receive anything of another epoch: records that it
appended may be truncated, and others may take their offsets.

If the disk fails here the node stops: a voter that cannot write its vote or its log must not answer, and a failed flush
is never retried (the kernel has dropped the pages that it could not write).

The node also stops if the leader lacks records that this node knows to be committed (`observer.py`). The leader's
metadata is older then, and a node that followed it could delete logs that are still needed. An operator may accept the
older metadata for one start. Then this node's copy of the log is renamed, not removed, and everything is fetched again.
A running node has applied its copy already, and can only stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from heirlog.env import Env
from heirlog.failure_log import FailureLog
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint
from heirlog.raft import answers, describe
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.configured_controllers import ConfiguredControllers
from heirlog.raft.control import Voter, kraft_version_of
from heirlog.raft.current_voters import CurrentVoters
from heirlog.raft.epoch_driver import EpochDriver, EpochEvents
from heirlog.raft.epoch_requests import EpochRequests
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.latency_window import LatencyWindow
from heirlog.raft.leader import LeaderParts, LeaderState, NotLeader
from heirlog.raft.leader_requests import LeaderRequests
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.metadata_log import MetadataLog, MetadataLogConfig, MetadataLogLost, open_log
from heirlog.raft.observer import Observer, ObserverParts
from heirlog.raft.older_metadata import OlderMetadata, refusal_of_older
from heirlog.raft.own_voter import OwnVoter
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.quorum_state import NOBODY, MalformedQuorumState, QuorumState, QuorumStateFile
from heirlog.raft.replay import QuorumListener, Replay
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.snapshot import SnapshotId
from heirlog.raft.snapshot_retention import RetentionCheck
from heirlog.raft.voter_requests import VoterRequests
from heirlog.storage.errors import StorageFormatError

HAND_OVER_LIMIT_MS = 2_000
"""A clean stop waits this long for the other voters; after that they notice by themselves."""


class Quorum:
    def __init__(
        self,
        env: Env,
        replica: LocalReplica,
        controllers: ConfiguredControllers,
        *,
        listeners: Sequence[QuorumListener],
        config: MetadataLogConfig | None = None,
        quorum_config: QuorumConfig | None = None,
        older_metadata: OlderMetadata | None = None,
        on_replica_knows: Callable[[int, int], None] | None = None,
    ) -> None:
        """
        on_replica_knows: called for each fetch that is served, with the replica's id and the high watermark that it
            has applied.
        """
        self._env = env
        self._replica = replica
        self._controllers = controllers
        self._listeners = list(listeners)
        self._config = config or MetadataLogConfig()
        self._quorum_config = quorum_config or QuorumConfig()
        self._older_metadata = older_metadata or OlderMetadata(lambda reason: env.stop(1, reason))
        self._log: MetadataLog | None = None
        self._state: QuorumStateFile | None = None
        self._current_voters: CurrentVoters | None = None
        self._epochs: EpochDriver | None = None
        self._requests: EpochRequests | None = None
        self._voter_requests: VoterRequests | None = None
        self._leader_requests: LeaderRequests | None = None
        self._replay: Replay | None = None
        self._role: LeaderState | Observer | None = None
        self._silent: dict[Endpoint, int] = {}
        """As observers of one epoch after another find out."""
        self._fetch_failures = FailureLog(env.log, env.now_ms, "metadata-fetch-failed", "metadata-fetch-resumed")
        self._own_voter: OwnVoter | None = None
        self._on_ready: Callable[[], None] | None = None
        self._on_handed_over: Callable[[], None] | None = None
        self._announced: tuple[int, int] | None = None
        """Leader and epoch that the listeners were notified of."""
        self._retention: RetentionCheck | None = None
        self._election_began_ms: int | None = None
        """When this node began to ask for votes, until it has a leader."""
        self.election_latency = LatencyWindow()
        """Of the elections in which this node asked for votes."""
        self._stopped = False
        self._on_replica_knows = on_replica_knows

    # state for other parts

    @property
    def leader_id(self) -> int:
        """-1 while unknown."""
        return self.leadership.leader_id

    @property
    def epoch(self) -> int:
        return self.leadership.epoch

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """Where requests for the active controller go."""
        return self.leadership.endpoint

    @property
    def leadership(self) -> LeaderAndEpoch:
        return self._epochs.leadership if self._epochs is not None else LeaderAndEpoch(NOBODY, 0, None)

    @property
    def state(self) -> EpochState | None:
        """This node's role in its epoch, for metrics and for the simulator's checkers; None before `start`."""
        return self._epochs.state if self._epochs is not None else None

    @property
    def durable_state(self) -> QuorumState | None:
        """The epoch and the vote that would survive a power cut; None before this incarnation has written them."""
        return None if self._state is None else self._state.flushed

    @property
    def is_leader(self) -> bool:
        """This node leads, and its listeners have received all records committed before."""
        return isinstance(self._role, LeaderState) and self._role.announced and not self._stopped

    @property
    def key(self) -> ReplicaKey:
        """This node and its disk, as the voters know it."""
        return self._replica.key

    @property
    def is_voter(self) -> bool:
        """Whether the voters that are in force include this node."""
        return self._replica.is_controller and self._replica.among(self.voters) is not None

    @property
    def agrees(self) -> bool:
        """The leader has every record that this node knows to be committed: this node may register with it."""
        if isinstance(self._role, Observer):
            return self._role.agrees
        return isinstance(self._role, LeaderState)

    @property
    def high_watermark(self) -> int:
        """Exclusive; -1 while unknown."""
        return self._replay.high_watermark if self._replay is not None else -1

    @property
    def applied_offset(self) -> int:
        """Offset of the last record that the listeners have received; -1 before the first one."""
        return self._replay.next_offset - 1 if self._replay is not None else -1

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset if self._log is not None else 0

    @property
    def flushed_offset(self) -> int:
        return self._log.flushed_offset if self._log is not None else 0

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self._log.voters if self._log is not None else self._controllers.static_voters

    @property
    def kraft_version(self) -> int:
        """The level in force: 0 while `controller.quorum.voters` says who votes, 1 once the log does."""
        return kraft_version_of(self.voters)

    @property
    def is_changing_voters(self) -> bool:
        """This node leads, and a change of the voters is in progress."""
        return isinstance(self._role, LeaderState) and self._role.changes.is_changing

    @property
    def log(self) -> MetadataLog | None:
        """For the simulator's checkers and for metrics; None before `start`."""
        return self._log

    # life

    def start(self, on_ready: Callable[[], None]) -> None:
        """Open and load the log, and lead or follow; listeners are called from now on (first with the snapshot).

        on_ready: a leader is announced, or an observer has begun to fetch. If the log cannot be used, `env.stop` stops
        the node.
        """
        self._on_ready = on_ready
        self._open()

    def _open(self) -> None:
        try:
            static_voters = self._controllers.static_voters
            log = open_log(self._env, self._replica.log_directory, self._config, self._log_failed, static_voters)
            state = QuorumStateFile(
                self._env.files,
                self._replica.log_directory,
                lambda: [] if log.kraft_version else [voter.id for voter in log.voters],
            )
        except OSError as error:
            self._fatal(
                f"the metadata log in {self._replica.log_directory} cannot be opened: {error}; repair what it names. "
                f"A broker may also start with this directory empty: it fetches everything again"
            )
            return
        except (MetadataLogLost, MalformedQuorumState, StorageFormatError, KafkaError, ValueError) as error:
            self._fatal(f"the metadata log in {self._replica.log_directory} cannot be opened: {error}")
            return
        lost = log.may_lack_flushed() if self._replica.is_controller and len(log.voters) > 1 else None
        if lost is not None:
            # it may have acknowledged what is missing: if it voted, a leader without committed records could be elected
            self._fatal(
                f"the metadata log in {self._replica.log_directory} is damaged: {lost}. Replace this "
                'controller as if its disk was lost (docs/guides/controllers.md, "Replace a dead controller")'
            )
            return
        self._log, self._state = log, state
        replay = self._replay = Replay(self._env, log, self._listeners, self._fatal)
        if log.loaded is not None:
            loaded, log.loaded = log.loaded, None
            replay.load(loaded)
        voters = self._current_voters = CurrentVoters(self._replica, self._controllers, log, replay)
        events = EpochEvents(self._leave_role, self._enter_role, self._handed_over, self._fatal)
        epochs = self._epochs = EpochDriver(
            self._env,
            state,
            self._replica,
            voters.all,
            voters.candidate,
            lambda: log.end,
            self._quorum_config,
            events,
        )
        if not voters.endpoints() and self._replica.among(log.voters) is None:
            self._fatal(
                "no controller to fetch the metadata from: set controller.quorum.bootstrap.servers, "
                "or, for the first controller of a new cluster, format its metadata directory with --standalone"
            )
            return
        self._requests = EpochRequests(
            epochs, self._replica, lambda: log.end, self._env.log, self._quorum_config.election_backoff_max_ms
        )
        self._retention = RetentionCheck(self._env, self._shorten)
        self._voter_requests = VoterRequests(epochs, self._replica, self._leading, self._env.log)
        self._leader_requests = LeaderRequests(
            self._env, self._replica, log, epochs, self._leading, self._on_replica_knows
        )
        epochs.start()

    def hand_over(self, on_done: Callable[[], None]) -> None:
        """Before a clean stop, while requests are served: resign, so that the other voters need no timeout.

        on_done: they know it, or cannot be reached, or `HAND_OVER_LIMIT_MS` is over.
            At once if this node does not lead.
        """
        if self._stopped or not isinstance(self._role, LeaderState) or not self._role.successors():
            on_done()
            return
        self._on_handed_over = on_done
        self._env.call_later(HAND_OVER_LIMIT_MS, self._handed_over)
        self._resign()

    def _handed_over(self) -> None:
        if self._on_handed_over is not None:
            on_done, self._on_handed_over = self._on_handed_over, None
            # later: it ends what may be calling this
            self._env.call_later(0, on_done)

    def shutdown(self, on_done: Callable[[], None] | None = None) -> None:
        """Stop leading or following, flush what is written, close the files."""
        if self._stopped:
            return
        self._stop()
        log = self._log

        def flushed(error: OSError | None) -> None:
            if log is not None:
                log.close()
            if error is not None:
                self._env.log("error", "metadata-log-not-flushed", reason=str(error))
            if on_done is not None:
                on_done()

        if log is None:
            self._env.call_later(0, lambda: flushed(None))
        else:
            log.finish(flushed)

    # roles

    def _leave_role(self) -> None:
        """Nothing of the old role counts any more. A leader's listeners are notified at once."""
        if self._own_voter is not None:
            self._own_voter.close()
            self._own_voter = None
        role, self._role = self._role, None
        if role is None:
            return
        role.close()
        if isinstance(role, LeaderState):
            assert self._replay is not None
            self._replay.forget_appended()
            if role.announced:
                self._announce(NOBODY, role.leadership.epoch)

    def _enter_role(self, state: EpochState) -> None:
        log, replay, epochs, voters = self._log, self._replay, self._epochs, self._current_voters
        assert log is not None and replay is not None and epochs is not None and voters is not None
        self._time_election(state.role)
        if state.role is QuorumRole.LEADER:
            self._lead(log, replay, epochs, voters)
        elif state.role in (QuorumRole.UNATTACHED, QuorumRole.FOLLOWER):
            self._observe(log, replay, epochs, voters)
        if state.role is QuorumRole.FOLLOWER:
            self._keep_own_voter(log, epochs)
        if state.role is QuorumRole.FOLLOWER or (self._announced is not None and state.role is not QuorumRole.LEADER):
            self._announce(epochs.leadership.leader_id, state.epoch)
        if state.role not in (QuorumRole.LEADER, QuorumRole.RESIGNED):
            self._handed_over()

    def _time_election(self, role: QuorumRole) -> None:
        now_ms = self._env.now_ms()
        if role in (QuorumRole.PROSPECTIVE, QuorumRole.CANDIDATE):
            if self._election_began_ms is None:
                self._election_began_ms = now_ms
        elif role in (QuorumRole.LEADER, QuorumRole.FOLLOWER) and self._election_began_ms is not None:
            self.election_latency.add(now_ms, now_ms - self._election_began_ms)
            self._election_began_ms = None

    def _lead(self, log: MetadataLog, replay: Replay, epochs: EpochDriver, voters: CurrentVoters) -> None:
        me = voters.candidate()
        assert me is not None, "only a voter is elected"
        parts = LeaderParts(
            self._env,
            log,
            replay,
            voters.all,
            self._fatal,
            on_announced=lambda: self._announce(leader.leadership.leader_id, leader.leadership.epoch),
            on_heard=lambda heard: epochs.learn(heard.leadership),
            resign=self._resign,
        )
        leader = self._role = LeaderState(
            parts, self._replica.cluster_id, me, epochs.state.epoch, epochs.granting, self._quorum_config
        )
        self._env.log("info", "metadata-leader", epoch=epochs.state.epoch, start_offset=log.end_offset)
        try:
            leader.begin()
        except (OSError, KafkaError) as failure:
            self._fatal(f"epoch {epochs.state.epoch} could not be started: {failure}")

    def _observe(self, log: MetadataLog, replay: Replay, epochs: EpochDriver, voters: CurrentVoters) -> None:
        leadership = epochs.leadership
        if leadership.endpoint is None and not voters.endpoints():
            # the only voter, deposed by a newer epoch: it leads again after its timeout
            return
        parts = ObserverParts(
            self._env, log, replay, self._fatal, self._older, epochs, self._silent, self._fetch_failures
        )
        observer = self._role = Observer(parts, self._replica, leadership, voters.endpoints, self._quorum_config)
        observer.start()
        self._ready()

    def _keep_own_voter(self, log: MetadataLog, epochs: EpochDriver) -> None:
        me = self._controllers.me
        if me is not None:
            self._own_voter = OwnVoter(
                self._env,
                self._replica.cluster_id,
                me,
                epochs.leadership,
                lambda: log.voters,
                self._quorum_config,
                epochs.learn,
            )
            self._own_voter.start()

    def _resign(self) -> None:
        """Step down; the other voters may elect another leader."""
        if isinstance(self._role, LeaderState) and self._epochs is not None:
            self._epochs.resign(self._role.me, self._role.successors())

    def _announce(self, leader_id: int, epoch: int) -> None:
        if self._announced == (leader_id, epoch):
            return
        self._announced = (leader_id, epoch)
        is_me = leader_id == self._replica.node_id
        for listener in self._listeners:
            listener.on_leader_change(leader_id, epoch, is_me)
        if is_me:
            self._ready()

    def _ready(self) -> None:
        if self._on_ready is not None:
            on_ready, self._on_ready = self._on_ready, None
            self._env.call_later(0, on_ready)

    def _older(self, seen: str) -> None:
        """The leader lacks records that this node knows to be committed."""
        if self._stopped or self._log is None or self._replay is None or self._role is None:
            return
        leadership, log = self.leadership, self._log
        self._env.log(
            "error",
            "controller-metadata-older",
            leader=leadership.leader_id,
            leader_epoch=leadership.epoch,
            committed_offset=log.committed_offset,
            end_offset=log.end_offset,
            seen=seen,
        )
        accept = self._older_metadata.accept()
        if accept is None:
            self._stop()
            refused = refusal_of_older(seen, is_controller=self._replica.is_controller)
            # without this the next start could follow the leader that this one refuses
            log.finish(lambda error: self._older_metadata.on_refused(refused))
            return
        self._role.close()
        self._replay.close()
        accept(self._set_aside)

    def _set_aside(self, error: OSError | None) -> None:
        """Keep our copy of the log under another name, and fetch everything again."""
        if self._stopped or self._log is None or self._state is None:
            return
        if error is None:
            self._log.close()
            self._state.close()
            if self._retention is not None:
                self._retention.close()
            if self._epochs is not None:
                self._epochs.close()
            kept = f"{self._replica.log_directory}.{self._env.random.randbytes(16).hex()}-stray"
            try:
                self._env.files.rename(self._replica.log_directory, kept)
            except OSError as failure:
                error = failure
        if error is not None:
            self._fatal(f"the metadata log in {self._replica.log_directory} could not be set aside: {error}")
            return
        self._env.log("warning", "older-metadata-accepted", kept=kept)
        self._role, self._log, self._epochs, self._announced = None, None, None, None
        self._leader_requests = None
        for listener in self._listeners:
            listener.on_snapshot([], -1, 0)
        self._open()

    def _stop(self) -> None:
        self._stopped = True
        if self._retention is not None:
            self._retention.close()
        if self._log is not None:
            self._log.stop_writing_snapshot()
        if self._epochs is not None:
            self._epochs.close()
        if self._replay is not None:
            self._replay.close()

    def _log_failed(self, error: OSError) -> None:
        self._fatal(f"the metadata log in {self._replica.log_directory} failed: {error}")

    def _fatal(self, reason: str) -> None:
        if self._stopped:
            return
        self._stop()
        self._env.log("error", "metadata-quorum-failed", reason=reason)
        self._env.stop(1, reason)

    # for the leader's controller

    def raise_kraft_version(self, *, validate_only: bool) -> int:
        """Raise kraft.version from 0 to 1: from now on the log names the voters (KIP-853, KAFKA-16538).

        Returns the offset of the records, which are committed as those of `append` are; -1 if only checked. Raises
        KafkaError if this node does not lead, or if a voter does not support the level.
        """
        if self._stopped or not isinstance(self._role, LeaderState):
            raise NotLeader("this node does not lead the metadata quorum")
        return self._role.changes.raise_kraft_version(validate_only=validate_only)

    def append(self, records: Sequence[Message]) -> int:
        """Append one batch (at most 10,000 records, 8 MiB) and return the offset of its first record.

        It is committed when `on_commit` delivers it; never inside this call. Raises what `leader.Leader.append` raises.
        """
        if self._stopped or not isinstance(self._role, LeaderState):
            raise NotLeader("this node does not lead the metadata quorum")
        return self._role.append(records)

    def snapshot(self, records: Iterable[Message], offset: int, epoch: int) -> bool:
        """Write the committed state after `offset` (an image's applied offset, `epoch` its epoch) as a snapshot.

        `records` are read over several turns, whatever is committed meanwhile. False, and nothing is written, if a
        snapshot is being written, if this or a newer one exists, or if `offset` was not delivered as committed. Only
        committed state may become a snapshot, because a snapshot cannot be undone.
        """
        if self._stopped or self._log is None or offset > self.applied_offset or offset < 0:
            return False

        def written(error: OSError | None) -> None:
            if error is not None:
                self._fatal(f"a metadata snapshot could not be written to {self._replica.log_directory}: {error}")
            else:
                self._shorten()

        try:
            return self._log.write_snapshot(records, SnapshotId(offset + 1, epoch), written)
        except OSError as failure:
            written(failure)
            return False

    def _shorten(self) -> None:
        if self._stopped or self._log is None:
            return
        try:
            self._log.shorten(self.high_watermark)
        except OSError as error:
            self._log_failed(error)

    # requests

    def vote(self, request: VoteRequest) -> VoteResponse | Pending[VoteResponse]:
        if self._requests is None or self._stopped:
            return VoteResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE, topics=[])
        return self._requests.vote(request)

    def begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest
    ) -> BeginQuorumEpochResponse | Pending[BeginQuorumEpochResponse]:
        if self._requests is None or self._stopped:
            return BeginQuorumEpochResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE, topics=[])
        return self._requests.begin_quorum_epoch(request)

    def end_quorum_epoch(
        self, request: EndQuorumEpochRequest
    ) -> EndQuorumEpochResponse | Pending[EndQuorumEpochResponse]:
        if self._requests is None or self._stopped:
            return EndQuorumEpochResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE, topics=[])
        return self._requests.end_quorum_epoch(request)

    def add_raft_voter(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse | Pending[AddRaftVoterResponse]:
        if self._voter_requests is None or self._stopped:
            return AddRaftVoterResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        return self._voter_requests.add(request)

    def remove_raft_voter(
        self, request: RemoveRaftVoterRequest
    ) -> RemoveRaftVoterResponse | Pending[RemoveRaftVoterResponse]:
        if self._voter_requests is None or self._stopped:
            return RemoveRaftVoterResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        return self._voter_requests.remove(request)

    def update_raft_voter(
        self, request: UpdateRaftVoterRequest
    ) -> UpdateRaftVoterResponse | Pending[UpdateRaftVoterResponse]:
        if self._voter_requests is None or self._stopped:
            return UpdateRaftVoterResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        return self._voter_requests.update(request)

    def fetch(self, request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
        """Fetch on the metadata partition, from a controller listener; the request names the replica."""
        if self._leader_requests is None:
            return answers.fetch_refused(ErrorCode.BROKER_NOT_AVAILABLE)
        return self._leader_requests.fetch(request)

    def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse | Pending[FetchSnapshotResponse]:
        if self._leader_requests is None:
            return answers.snapshot_refused(ErrorCode.BROKER_NOT_AVAILABLE)
        return self._leader_requests.fetch_snapshot(request)

    def describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        if not describe.asks_for_metadata(request):
            return describe.unknown(request)
        if self._leader_requests is None:
            return describe.not_leader(self.leadership)
        return self._leader_requests.describe_quorum()

    def _leading(self) -> LeaderState | None:
        return self._role if isinstance(self._role, LeaderState) and not self._stopped else None
