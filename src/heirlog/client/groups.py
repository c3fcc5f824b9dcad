"""Membership of a consumer group (classic protocol): what to send next, and what each answer means. No I/O.

    JOINING --JoinGroup--> SYNCING --SyncGroup--> STABLE --Heartbeat--> STABLE ...
       ^                      |                      |
       +----------------------+----------------------+   rebalance, old generation, unknown member: rejoin

`request()` is what the member sends now, and `answered` or `unanswered` says what to do next (`Step`). Rules:

* A coordinator that does not answer, or is the coordinator no more, does not end a membership: the group is stored, so
  the member finds the new coordinator and sends the same request there.
* A rebalance and an old generation keep the member id. An unknown member id is given up: the next JoinGroup asks for
  another one. MEMBER_ID_REQUIRED brings the id to join with (KIP-394).
* An answer counts only in the generation of its request: a heartbeat and a commit may both be on their way when the
  first of them reports a rebalance.
* The leader of a generation assigns, unless the coordinator says that the assignment stays as it is (KIP-814).

Source: Kafka's protocol guide, "Group membership API"; KIP-62, KIP-345, KIP-394, KIP-814.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from heirlog.client import offsets
from heirlog.client.offsets import CommittedOffset, TopicPartition
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

NO_GENERATION = -1
NO_MEMBER_ID = ""
JOIN_MARGIN_MS = 5000
"""How much longer than the rebalance timeout a member waits for the answer to JoinGroup, as Kafka's clients do."""

Assign: TypeAlias = Callable[[str, Mapping[str, bytes]], Mapping[str, bytes]]
"""Protocol name and the metadata of each member, to the assignment of each member."""

COORDINATOR_LOST = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Another broker may coordinate the group by now."""
REJOIN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})
"""The member has no place in the current generation. A commit that is refused so was not stored."""


class State(Enum):
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


class Step(Enum):
    """What comes next."""

    SEND = "send the next request at once"
    PAUSE = "send the next request after a pause"
    FIND_COORDINATOR = "after a pause find the coordinator, then send the next request"
    HEARTBEAT = "in the group: the next request is a heartbeat, after the heartbeat interval"


class GroupMember:
    """One member of one group.

    protocols: returns the names that this member supports, the preferred one first, each with the member's metadata;
    called before each JoinGroup. assign: called if this member leads a generation. instance_id: of a static member
    (KIP-345).
    """

    def __init__(
        self,
        group: str,
        *,
        protocol_type: str,
        protocols: Callable[[], Mapping[str, bytes]],
        assign: Assign,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        instance_id: str | None = None,
    ) -> None:
        self.group = group
        self.state = State.JOINING
        self.member_id = NO_MEMBER_ID
        self.generation = NO_GENERATION
        self.assignment = b""
        """What the leader assigned to this member; meaningful in the state STABLE."""
        self._protocol_type = protocol_type
        self._protocols = protocols
        self._assign = assign
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._instance_id = instance_id
        self.protocol_name: str | None = None
        """What the group has chosen; meaningful in the state STABLE."""
        self._assignments: Mapping[str, bytes] = {}
        """Of everyone, if this member leads the generation."""

    # requests

    def request(self) -> JoinGroupRequest | SyncGroupRequest | HeartbeatRequest:
        """For the group's coordinator."""
        if self.state is State.JOINING:
            return self._join()
        if self.state is State.SYNCING:
            return self._sync()
        return HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
        )

    @property
    def answer_within_ms(self) -> int:
        """How long the coordinator may hold back the answer to `request()`: until the last member has come."""
        if self.state is State.JOINING:
            return self._rebalance_timeout_ms + JOIN_MARGIN_MS
        return self._rebalance_timeout_ms if self.state is State.SYNCING else 0

    def _join(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=self._protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self._protocols().items()
            ],
        )

    def _sync(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=self._protocol_type,
            protocol_name=self.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in self._assignments.items()
            ],
        )

    def leave(self) -> LeaveGroupRequest:
        """For the coordinator. The member gives up its place: the next request joins as a new member."""
        member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=self._instance_id)
        request = LeaveGroupRequest(group_id=self.group, members=[member])
        self._rejoin(forget=True)
        return request

    def rejoin(self) -> None:
        """The next request joins again, with the same member id: what `protocols` returns has changed."""
        self._rejoin(forget=False)

    def commit(self, committing: Mapping[TopicPartition, CommittedOffset]) -> OffsetCommitRequest:
        """Offsets as a member of this generation, so that a member that was removed cannot commit any more."""
        request = offsets.commit(self.group, committing)
        request.generation_id_or_member_epoch = self.generation
        request.member_id = self.member_id
        request.group_instance_id = self._instance_id
        return request

    # answers

    def answered(self, request: Any, response: Any) -> Step | None:
        """What an answer to `request()` means; None: it is about a generation that is over for this member.

        Raises KafkaError for an error that asking again cannot help, such as a group that this client may not read.
        """
        if not self._is_current(request):
            return None
        code = error_code(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED and self.state is State.JOINING:
            self.member_id = response.member_id
            return Step.SEND
        if code is not ErrorCode.NONE:
            return self._refused(code)
        if isinstance(response, JoinGroupResponse):
            self._joined(response)
            return Step.SEND
        if isinstance(response, SyncGroupResponse):
            self.state = State.STABLE
            self.assignment = bytes(response.assignment)
        return Step.HEARTBEAT

    def unanswered(self, request: Any) -> Step | None:
        """No answer came: the coordinator may be gone. None as for `answered`."""
        return Step.FIND_COORDINATOR if self._is_current(request) else None

    def committed(self, request: OffsetCommitRequest, response: OffsetCommitResponse) -> Step | None:
        """What an answer to a commit means for the membership; None as for `answered`.

        What became of each partition's offset is in `offsets.commit_codes(response)`. Raises as `answered`.
        """
        if self.generation == NO_GENERATION or request.generation_id_or_member_epoch != self.generation:
            return None
        codes = {error_code(code) for _, code, _ in offsets.commit_codes(response)}
        for membership in (ErrorCode.FENCED_INSTANCE_ID, *sorted(REJOIN), *sorted(COORDINATOR_LOST)):
            if membership in codes:
                return self._refused(membership)
        return Step.HEARTBEAT

    def _is_current(self, request: Any) -> bool:
        if isinstance(request, JoinGroupRequest):
            return self.state is State.JOINING and request.member_id == self.member_id
        state = State.SYNCING if isinstance(request, SyncGroupRequest) else State.STABLE
        return self.state is state and bool(request.generation_id == self.generation)

    def _refused(self, code: ErrorCode) -> Step:
        if code in COORDINATOR_LOST:
            return Step.FIND_COORDINATOR
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return Step.PAUSE
        if code in REJOIN:
            was_joining = self.state is State.JOINING
            self._rejoin(forget=code is ErrorCode.UNKNOWN_MEMBER_ID)
            return Step.PAUSE if was_joining else Step.SEND
        raise KafkaError(code, f"group {self.group} refused member {self.member_id or '(new)'}")

    def _rejoin(self, *, forget: bool) -> None:
        self.state = State.JOINING
        self.generation = NO_GENERATION
        self.assignment = b""
        self._assignments = {}
        if forget:
            self.member_id = NO_MEMBER_ID

    def _joined(self, response: JoinGroupResponse) -> None:
        self.state = State.SYNCING
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.protocol_name = response.protocol_name
        self._assignments = {}
        if response.leader == response.member_id and not response.skip_assignment:
            members = {member.member_id: bytes(member.metadata) for member in response.members}
            self._assignments = dict(self._assign(response.protocol_name or "", members))
