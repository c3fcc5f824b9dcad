"""Membership of a consumer group by the consumer protocol (KIP-848): what to send next, what each answer means. No I/O.

    epoch 0 --heartbeat--> epoch 1, 2, ...     each answer may bring the partitions that the member shall have now
      ^                        |
      +------------------------+   fenced or unknown: all partitions are lost at once

The coordinator assigns. If an answer leaves out partitions that the member has, the application gives them up
(`revoking`), and the next heartbeat names what is left (`revoked`): only then another member gets them. New partitions
may be used at once, because the coordinator gives only what no other member has.

* After a lost answer the next heartbeat says everything again, at the same epoch.
* The client makes the member id, so a member that never heard the answer to its first heartbeat can leave (KIP-1082).
* A commit names the epoch. STALE_MEMBER_EPOCH means that a newer one is on its way: the commit is sent again later.

Source: KIP-848, KIP-1082.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heirlog.client import offsets
from heirlog.client.groups import COORDINATOR_LOST, Step
from heirlog.client.offsets import CommittedOffset, TopicPartition
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitRequest,
)

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
NOT_COMMITTED = FENCED | {ErrorCode.STALE_MEMBER_EPOCH}
"""A commit that is refused so was not stored."""

Assigned = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""


class ConsumerProtocolMember:
    """One member of one group. instance_id: of a static member."""

    def __init__(
        self,
        group: str,
        member_id: str,
        *,
        topics: Sequence[str],
        rebalance_timeout_ms: int,
        instance_id: str | None = None,
    ) -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = JOINING
        self.owned: Assigned = {}
        """What the application has."""
        self.assigned: Assigned = {}
        """What it shall have, by the last answer."""
        self.interval_ms = 0
        """Until the next heartbeat."""
        self._topics = list(topics)
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._instance_id = instance_id
        self._says_all = True
        self._acknowledges = False

    # requests

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """For the group's coordinator."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, instance_id=self._instance_id
        )
        if self._says_all:
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.subscribed_topic_names = self._topics
        if self._says_all or self._acknowledges:
            Topic = ConsumerGroupHeartbeatRequest.TopicPartitions
            request.topic_partitions = [
                Topic(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in self.owned.items()
            ]
        return request

    def leave(self, *, for_a_while: bool = False) -> ConsumerGroupHeartbeatRequest:
        """For the coordinator. The next request joins again. for_a_while: of a static member that comes back."""
        epoch = LEAVING_FOR_A_WHILE if for_a_while else LEAVING
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self._instance_id
        )
        self._lost()
        return request

    def commit(self, committing: Mapping[TopicPartition, CommittedOffset]) -> OffsetCommitRequest:
        """Offsets as a member in its epoch."""
        request = offsets.commit(self.group, committing)
        request.generation_id_or_member_epoch = self.epoch
        request.member_id = self.member_id
        return request

    # answers

    def answered(self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse) -> Step | None:
        """What an answer to `request()` means; None: it is about an epoch that is over.

        Raises KafkaError for an error that asking again cannot help.
        """
        if request.member_epoch != self.epoch:
            return None
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            return self._refused(code)
        self.epoch, self.interval_ms = response.member_epoch, response.heartbeat_interval_ms
        self._says_all = False
        if request.topic_partitions is not None:
            said = {bytes(topic.topic_id): frozenset(topic.partitions) for topic in request.topic_partitions}
            # what was given up while the request was under way is still to be said
            self._acknowledges = said != self.owned
        if response.assignment is not None:
            self.assigned = {
                bytes(topic.topic_id): frozenset(topic.partitions) for topic in response.assignment.topic_partitions
            }
            if not self.revoking and self.assigned != self.owned:
                self.revoked()
        return Step.HEARTBEAT

    def unanswered(self, request: ConsumerGroupHeartbeatRequest) -> Step | None:
        """No answer came: the coordinator may be gone. None as for `answered`."""
        if request.member_epoch != self.epoch:
            return None
        self._says_all = True
        return Step.FIND_COORDINATOR

    @property
    def revoking(self) -> Assigned:
        """What the application has to give up."""
        left = {each: numbers - self.assigned.get(each, frozenset()) for each, numbers in self.owned.items()}
        return {each: numbers for each, numbers in left.items() if numbers}

    def revoked(self) -> None:
        """The application has given up what it had to: it has what it shall have, and the next heartbeat says so."""
        self.owned = self.assigned
        self._acknowledges = True

    def _refused(self, code: ErrorCode) -> Step:
        if code in COORDINATOR_LOST:
            self._says_all = True
            return Step.FIND_COORDINATOR
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return Step.PAUSE
        if code in FENCED:
            self._lost()
            return Step.SEND
        raise KafkaError(code, f"group {self.group} refused member {self.member_id}")

    def _lost(self) -> None:
        self.epoch = JOINING
        self.owned = self.assigned = {}
        self._says_all, self._acknowledges = True, False
