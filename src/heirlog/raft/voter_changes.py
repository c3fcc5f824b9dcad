"""Changes of the quorum's voters on its leader: one at a time (KIP-853).

    add, update      checked -> the voter is asked which kraft.versions it supports -> Voters record appended
    remove           checked -> Voters record appended
    record appended  the new set is in force at once: its majority commits the record
    committed        the change has ended, and the next one may start

A change concerns one voter, and starts only when the change before it is committed. So any majority of a set and any
majority of the next one have a voter in common, and two leaders of one epoch are impossible (guard 21). A leader also
waits until a record of its own epoch is committed. Otherwise two leaders, one after the other, could append changes of
the same set, and two majorities without a common voter could commit them.

A new voter must have fetched everything as an observer. Otherwise nothing could be committed until it has caught up.

A change is answered at its commit. An update is answered when its record is appended, and so is an addition that asks
for it (KIP-1186): the voter may send its next fetch only after that answer, and the commit may need that fetch. The
next change still waits for the commit.

    request timeout    REQUEST_TIMED_OUT. A record that was appended stays in the log and may be committed later: the
                       same request is then refused with DUPLICATE_VOTER or VOTER_NOT_FOUND
    leadership ends    NOT_LEADER_OR_FOLLOWER. The record may be committed, or truncated, which restores the old set

A leader may remove itself. It leads until the record is committed, without a vote in that, and then resigns
(`leader.py`).

At kraft.version 0 the configuration of every node names the voters, so they cannot be changed. An update is accepted,
and kept in memory: it names the directory id of the voter, which the step to level 1 needs. That step appends a
KRaftVersion and a Voters record, the same voters with their directory ids.

Source: KIP-853, KIP-1186; KAFKA-16538 for level 0; the order of the refusals is that of Kafka's AddVoterHandler,
RemoveVoterHandler and UpdateVoterHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heirlog.env import Cancel, Env, SendFailure
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from heirlog.protocol.software import SOFTWARE_NAME, SOFTWARE_VERSION
from heirlog.protocol.types import ZERO_UUID, BrokerId, Endpoint, uuid_text
from heirlog.raft.control import KRAFT_VERSION, Voter
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.replica_states import ReplicaStates

CHANNEL = "api-versions"
"""A connection of its own: an endpoint that does not answer must not delay votes."""
FEATURE = "kraft.version"
FETCHED_WITHIN_MS = 3_600_000
"""A new voter has fetched within this time."""


def may_begin(is_changing: bool, voters_offset: int, high_watermark: int) -> bool:
    """Guard 21: the voters change one at a time, and not before this leader has committed a record of its own epoch.

    is_changing: a change is in progress. voters_offset: of the record that names the set in force. Called through this
    module's global, so that the simulator can remove the guard.
    """
    return not is_changing and voters_offset < high_watermark


class Outcome(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    """What was refused, why, and what to do next; None without an error."""


class KRaftVersions(NamedTuple):
    """The levels of kraft.version that a voter supports, both ends included."""

    min_version: int
    max_version: int


class _Update(NamedTuple):
    """What a voter said in its update."""

    voter: Voter
    versions: KRaftVersions


@dataclass(frozen=True, slots=True)
class ChangeParts:
    """What a change reads and does, owned by the leader."""

    env: Env
    listener: str
    """Name of the listener on which voters reach each other: a voter needs an endpoint of this name."""
    voters: Callable[[], tuple[Voter, ...]]
    """The set in force."""
    kraft_version: Callable[[], int]
    """Its level."""
    voters_offset: Callable[[], int]
    """Offset of the record that names it."""
    high_watermark: Callable[[], int]
    """-1 until a record of the leader's epoch is committed."""
    replicas: ReplicaStates
    append: Callable[[Sequence[Voter]], int]
    """Append a Voters record, at kraft.version 0 after a KRaftVersion record; returns the offset of the batch. Raises
    KafkaError.
    """


@dataclass(slots=True)
class _Change:
    answer: Pending[Outcome]
    is_answered_at_append: bool
    cancel_timeout: Cancel
    offset: int | None = None
    """Of its record; None: not appended yet."""


class VoterChanges:
    """The changes of one leadership. A method that refuses raises KafkaError."""

    def __init__(self, parts: ChangeParts, config: QuorumConfig) -> None:
        self._parts = parts
        self._timeout_ms = config.request_timeout_ms
        self._change: _Change | None = None
        """The one that is in progress."""
        self._updates: dict[int, _Update] = {}
        """At kraft.version 0: the newest update of each voter."""

    @property
    def is_changing(self) -> bool:
        """Whether a change is in progress: from its request until its record is committed, or it is refused."""
        return self._change is not None

    # the three operations

    def add(self, voter: Voter, *, is_answered_at_append: bool) -> Pending[Outcome]:
        """Add an observer that has caught up."""
        self._check_none_in_progress()
        self._check_can_change()
        known = next((one for one in self._parts.voters() if one.id == voter.id), None)
        if known is not None:
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"controller {voter.id} is a voter already{_with_another_disk(known, voter)}",
            )

        def append(change: _Change) -> None:
            self._check_has_caught_up(voter)
            self._append(change, (*self._parts.voters(), voter))

        return self._ask_first(voter, append, is_answered_at_append)

    def remove(self, key: ReplicaKey) -> Pending[Outcome]:
        """Remove a voter; the leader too, but not the last voter."""
        self._check_none_in_progress()
        self._check_can_change()
        voters = self._parts.voters()
        remaining = tuple(voter for voter in voters if voter.key != key)
        if len(remaining) == len(voters):
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"{_named(key)} is not a voter: name a voter that DescribeQuorum lists, with its directory id",
            )
        if not remaining:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND, f"controller {key.id} is the only voter: add another controller first"
            )
        change = self._start(is_answered_at_append=False)
        self._try(change, lambda: self._append(change, remaining))
        return change.answer

    def update(self, key: ReplicaKey, endpoints: Mapping[str, Endpoint], versions: KRaftVersions) -> Pending[Outcome]:
        """A voter has other endpoints, or supports other levels of kraft.version, than the set says."""
        self._check_none_in_progress()
        endpoint = endpoints.get(self._parts.listener)
        if endpoint is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"voter {key.id} has no endpoint for the listener {self._parts.listener}"
            )
        _check_supported(key.id, versions, self._parts.kraft_version())
        known = next((voter for voter in self._parts.voters() if voter.key.covers(key)), None)
        if known is None:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"{_named(key)} is not a voter: add it first",
            )
        updated = replace(known, directory_id=key.directory_id, endpoint=endpoint, listener=self._parts.listener)
        is_static = not self._parts.kraft_version()
        if is_static:
            self._updates[key.id] = _Update(updated, versions)
        if is_static or updated == known:
            # without this a repeated request would append a record each time
            answer: Pending[Outcome] = Pending()
            answer.complete(Outcome())
            return answer

        def append(change: _Change) -> None:
            self._append(change, tuple(updated if voter.key == key else voter for voter in self._parts.voters()))

        return self._ask_first(updated, append, is_answered_at_append=True)

    def raise_kraft_version(self, *, validate_only: bool) -> int:
        """As of `Quorum`."""
        self._check_none_in_progress()
        voters = []
        for voter in self._parts.voters():
            if voter.directory_id != ZERO_UUID:
                voters.append(voter)  # this leader
                continue
            update = self._updates.get(voter.id)
            if update is None:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"controller {voter.id} has not told this leader its directory id and which levels of {FEATURE} it "
                    "supports: start it, and upgrade it if it is older than this version",
                )
            if not update.versions.min_version <= KRAFT_VERSION <= update.versions.max_version:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"controller {voter.id} does not support {FEATURE} {KRAFT_VERSION}: upgrade it first",
                )
            voters.append(update.voter)
        return -1 if validate_only else self._parts.append(voters)

    # events

    def high_watermark_moved(self) -> None:
        change = self._change
        if change is not None and change.offset is not None and change.offset < self._parts.high_watermark():
            self._end(change, Outcome())

    def close(self) -> None:
        """The leadership ends."""
        if self._change is not None:
            self._end(
                self._change,
                Outcome(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    "the leadership of the metadata quorum ended before the change was committed: list the voters with "
                    "DescribeQuorum, and repeat the request if they have not changed",
                ),
            )

    # checks

    def _check_can_change(self) -> None:
        if not self._parts.kraft_version():
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the voters are those of controller.quorum.voters ({FEATURE} 0), and cannot be changed: raise the "
                f"level first, with `heirlog features upgrade --feature {FEATURE}={KRAFT_VERSION}`",
            )

    def _check_none_in_progress(self) -> None:
        committed = self._parts.high_watermark()
        if may_begin(self.is_changing, self._parts.voters_offset(), committed):
            return
        if self._change is not None:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is in progress: try again when it has ended"
            )
        if committed < 0:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "this leader is new and has committed nothing yet: try again when a majority of the voters follows",
            )
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            "the previous change of the voters is not committed: try again when a majority of the voters follows",
        )

    def _check_has_caught_up(self, voter: Voter) -> None:
        state = self._parts.replicas.of_voter(voter)
        if state.last_fetch_ms < 0:
            missing = "does not fetch from this leader: start it, with this directory"
        elif state.last_caught_up_ms < 0:
            missing = f"has fetched only up to offset {state.end_offset} of {state.leader_end_at_last_fetch}"
        elif self._parts.env.wall_ms() - state.last_fetch_ms > FETCHED_WITHIN_MS:
            missing = "has not fetched for an hour: start it"
        else:
            return
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"{_named(voter.key)} {missing}. Try again when it has caught up as an observer",
        )

    # one change

    def _start(self, *, is_answered_at_append: bool) -> _Change:
        def timed_out() -> None:
            state = "its record is not committed yet" if change.offset is not None else "the voter did not answer"
            self._end(
                change,
                Outcome(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"the change of the voters took longer than {self._timeout_ms} ms: {state}. List the voters with "
                    "DescribeQuorum before you try again",
                ),
            )

        cancel = self._parts.env.call_later(self._timeout_ms, timed_out)
        change = self._change = _Change(Pending(), is_answered_at_append, cancel)
        return change

    def _ask_first(
        self, voter: Voter, append: Callable[[_Change], None], is_answered_at_append: bool
    ) -> Pending[Outcome]:
        """`append` once the voter's endpoint has answered that it supports the level of the quorum."""
        change = self._start(is_answered_at_append=is_answered_at_append)

        def answered(result: ApiVersionsResponse | SendFailure) -> None:
            if change is self._change:
                self._try(change, lambda: self._append_if_supported(change, voter, result, append))

        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        self._parts.env.send(voter.endpoint, CHANNEL, request, answered, self._timeout_ms)
        return change.answer

    def _append_if_supported(
        self,
        change: _Change,
        voter: Voter,
        result: ApiVersionsResponse | SendFailure,
        append: Callable[[_Change], None],
    ) -> None:
        if isinstance(result, SendFailure):
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"controller {voter.id} could not be asked for its versions at {voter.endpoint} "
                f"({result.detail or result.kind}): start it, or correct its endpoint",
            )
        if result.error_code:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"controller {voter.id} at {voter.endpoint} answered ApiVersions with "
                f"{error_code(result.error_code).name}: try again",
            )
        if all(api.api_key != ApiKey.VOTE for api in result.api_keys):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{voter.endpoint} is not a controller's listener, so its node would never vote: name the endpoint on "
                f"which controller {voter.id} listens as {voter.listener}",
            )
        feature = next((one for one in result.supported_features if one.name == FEATURE), None)
        versions = KRaftVersions(feature.min_version, feature.max_version) if feature else None
        _check_supported(voter.id, versions, self._parts.kraft_version())
        append(change)

    def _append(self, change: _Change, voters: Sequence[Voter]) -> None:
        change.offset = self._parts.append(voters)
        if change.is_answered_at_append:
            change.answer.complete(Outcome())

    def _try(self, change: _Change, step: Callable[[], None]) -> None:
        try:
            step()
        except KafkaError as refused:
            self._end(change, Outcome(refused.code, refused.message))

    def _end(self, change: _Change, outcome: Outcome) -> None:
        change.cancel_timeout()
        self._change = None
        if not change.answer.done:
            change.answer.complete(outcome)


def _check_supported(voter_id: BrokerId | int, versions: KRaftVersions | None, level: int) -> None:
    """Raises KafkaError unless the voter can read the records of this quorum, which uses `level`."""
    if versions is None or not versions.min_version <= level <= versions.max_version:
        found = "none" if versions is None else f"{versions.min_version} to {versions.max_version}"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this quorum uses {FEATURE} {level}, and controller {voter_id} supports {found}: upgrade it first",
        )


def _named(key: ReplicaKey) -> str:
    return f"controller {key.id} with directory id {uuid_text(key.directory_id)}"


def _with_another_disk(known: Voter, added: Voter) -> str:
    if known.directory_id == added.directory_id:
        return ""
    return f", with directory id {uuid_text(known.directory_id)}: remove that one first if its disk was replaced"
