"""Membership of a share group and its sessions with the leaders (KIP-932): what to send, what answers mean. No I/O.

    heartbeat --> assigned partitions --> a share session with the leader of each --> deliveries
                                              ^                                           |
                                              '---------- acknowledgements ---------------'

Members of a share group share partitions: an assigned one may be others' as well, and none gives one up before
another gets it. The leader of a partition locks what it delivers, until the record is acknowledged or the lock ends.

A session belongs to one connection. If that is lost, the leader gives back everything that was delivered on it and not
acknowledged; other members get it, or this one again.

* A new epoch without an assignment: this one did not change, or the answer that had it was lost. So the next heartbeat
  says everything again, and gets the assignment.
* Offsets of a delivery without a record (transaction markers, compacted records) are acknowledged as gaps.
* Acknowledgements of a lost session are dropped: the leader would refuse them.

Source: KIP-932, KIP-1206 (record limit).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from heirlog.client.groups import COORDINATOR_LOST, Step
from heirlog.protocol.batch import Record, iter_records, walk
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import PartitionKey, Uuid

JOINING, LEAVING = 0, -1
OPENS_SESSION, CLOSES_SESSION = 0, -1
_LAST_EPOCH: Final = 2**31 - 1
_RECORD_LIMIT_MODE: Final = 1
_FENCED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
SESSION_LOST: Final = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})


class Acknowledge(IntEnum):
    """What became of a record: ACCEPT (processed), RELEASE (to be delivered again), REJECT (not to be delivered again).

    A GAP is an offset without a record.
    """

    GAP = 0
    """There is no such record."""
    ACCEPT = 1
    """Processed."""
    RELEASE = 2
    """To be delivered again, to any member, up to the delivery limit of the group."""
    REJECT = 3
    """Cannot be processed: not to be delivered again."""


class ShareGroupMember:
    """One member of one share group. member_id: made by the client, 1 to 36 characters."""

    def __init__(self, group: str, member_id: str, *, topics: Sequence[str]) -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = JOINING
        self.assigned: frozenset[PartitionKey] = frozenset()
        self.interval_ms = 0
        """Until the next heartbeat."""
        self._topics = list(topics)
        self._says_all = True

    def request(self) -> ShareGroupHeartbeatRequest:
        """For the group's coordinator."""
        return ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=self._topics if self._says_all else None,
        )

    def leave(self) -> ShareGroupHeartbeatRequest:
        """For the coordinator. The next request joins again."""
        self._lost()
        return ShareGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=LEAVING)

    def answered(self, response: ShareGroupHeartbeatResponse) -> Step:
        """Raises KafkaError for an error that asking again cannot help."""
        code = error_code(response.error_code)
        if code in COORDINATOR_LOST:
            self._says_all = True
            return Step.FIND_COORDINATOR
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return Step.PAUSE
        if code in _FENCED or (code is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch != JOINING):
            # joining recreates a group that is gone; for a member that joins, the id is another kind of group's
            self._lost()
            return Step.SEND
        if code is not ErrorCode.NONE:
            raise KafkaError(code, response.error_message or f"share group {self.group} refused the member")
        self._says_all = response.assignment is None and response.member_epoch != self.epoch
        self.epoch, self.interval_ms = response.member_epoch, response.heartbeat_interval_ms
        if response.assignment is not None:
            self.assigned = frozenset(
                (Uuid(topic.topic_id), index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )
        return Step.HEARTBEAT

    def _lost(self) -> None:
        self.epoch = JOINING
        self.assigned = frozenset()
        self._says_all = True


@dataclass(frozen=True, slots=True)
class DeliveredRecords:
    """Records of one partition that this member alone may process now, each delivered as often.

    key: id of the topic, and partition; `ShareConsumer.topic_name` gives the name. first, last: the range of offsets to
    acknowledge; some may have no record. delivery_count: number of deliveries, 1 for the first one.
    """

    key: PartitionKey
    first: int
    last: int
    records: Sequence[Record]
    delivery_count: int

    def types(self, kind: Acknowledge) -> list[int]:
        """For each offset, or one for all."""
        present = {record.offset for record in self.records}
        if len(present) == self.last - self.first + 1:
            return [kind]
        return [kind if offset in present else Acknowledge.GAP for offset in range(self.first, self.last + 1)]


class ShareSessionHandler:
    """The session with one broker: requests and answers take turns."""

    def __init__(self, group: str, member_id: str) -> None:
        self._group = group
        self._member_id = member_id
        self._epoch = OPENS_SESSION
        self._partitions: frozenset[PartitionKey] = frozenset()
        """What the broker knows."""
        self._held: dict[PartitionKey, list[DeliveredRecords]] = {}
        """What was delivered and is not acknowledged."""
        self._acknowledgements: dict[PartitionKey, list[ShareFetchRequest.AcknowledgementBatch]] = {}

    @property
    def is_open(self) -> bool:
        return self._epoch != OPENS_SESSION

    def acknowledge(self, delivered: DeliveredRecords, kind: Acknowledge) -> bool:
        """With the next request. False if this session does not hold them (any more)."""
        held = self._held.get(delivered.key, [])
        if not any(each is delivered for each in held):
            return False
        self._held[delivered.key] = [each for each in held if each is not delivered]
        self._acknowledgements.setdefault(delivered.key, []).append(
            ShareFetchRequest.AcknowledgementBatch(
                first_offset=delivered.first, last_offset=delivered.last, acknowledge_types=delivered.types(kind)
            )
        )
        return True

    def fetch(
        self, partitions: frozenset[PartitionKey], *, max_records: int, max_bytes: int, max_wait_ms: int, is_exact: bool
    ) -> ShareFetchRequest:
        """For the broker that leads these partitions. is_exact: not more than `max_records`, even within a batch."""
        added, gone = partitions - self._partitions, self._partitions - partitions
        request = self._request(sorted(added | {key for key, batches in self._acknowledgements.items() if batches}))
        request.max_records = request.batch_size = max_records
        request.max_bytes, request.max_wait_ms, request.min_bytes = max_bytes, max_wait_ms, 1
        request.share_acquire_mode = _RECORD_LIMIT_MODE if is_exact else 0
        request.forgotten_topics_data = [
            ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in _by_topic(sorted(gone))
        ]
        self._partitions = partitions
        return request

    def close(self) -> ShareFetchRequest:
        """The last request: what is not acknowledged by now is given back. Afterwards a new session may be opened."""
        request = self._request(sorted(self._acknowledgements))
        request.share_session_epoch = CLOSES_SESSION
        self.lost()
        return request

    def _request(self, named: Iterable[PartitionKey]) -> ShareFetchRequest:
        acknowledgements, self._acknowledgements = self._acknowledgements, {}
        nested = ShareFetchRequest
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            topics=[
                nested.FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        nested.FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=sorted(
                                acknowledgements.get((topic_id, index), ()), key=lambda batch: batch.first_offset
                            ),
                        )
                        for index in indexes
                    ],
                )
                for topic_id, indexes in _by_topic(named)
            ],
        )

    def answered(self, response: ShareFetchResponse) -> list[DeliveredRecords]:
        """What the answer delivers. Raises KafkaError, and then the session is lost; InvalidBatch."""
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self.lost()
            raise KafkaError(code, response.error_message or "the broker refused a share fetch")
        self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        found = list(_delivered_in(response))
        for each in found:
            # what is delivered again was lost before, when its lock ended
            held = [one for one in self._held.get(each.key, ()) if one.last < each.first or one.first > each.last]
            self._held[each.key] = [*held, each]
            # and what was to be said of that delivery must not be taken for this one's
            self._acknowledgements[each.key] = [
                batch
                for batch in self._acknowledgements.get(each.key, ())
                if batch.last_offset < each.first or batch.first_offset > each.last
            ]
        return found

    def lost(self) -> None:
        """The connection is gone, or the broker has no such session."""
        self._epoch = OPENS_SESSION
        self._partitions = frozenset()
        self._held = {}
        self._acknowledgements = {}


def _by_topic(keys: Iterable[PartitionKey]) -> list[tuple[Uuid, list[int]]]:
    """`keys` are sorted."""
    topics: dict[Uuid, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return list(topics.items())


def _delivered_in(response: ShareFetchResponse) -> Iterator[DeliveredRecords]:
    for topic in response.responses:
        for data in topic.partitions:
            if not data.acquired_records:
                continue
            view = records_view(data.records)
            records = [
                record
                for position, header in walk(view)
                if not header.is_control
                for record in iter_records(view, position)
            ]
            for part in data.acquired_records:
                within = [record for record in records if part.first_offset <= record.offset <= part.last_offset]
                key = (Uuid(topic.topic_id), data.partition_index)
                yield DeliveredRecords(key, part.first_offset, part.last_offset, within, part.delivery_count)
