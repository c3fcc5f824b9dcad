"""ShareAcknowledge: what became of the records that a member of a share group acquired.

Also for the acknowledgements in a ShareFetch. All of one partition take effect, or none. The answer leaves once the
share coordinator has stored them, or refused them.

What a member acknowledges after its session ended, or on a new leader, gets INVALID_RECORD_STATE: the records were
given back. Source: KIP-932, KIP-1222.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.share_coordinator.state import SharePartitionKey
from heirlog.broker.share_partitions.share_partition import Acknowledgement, check_acknowledgements
from heirlog.broker.share_partitions.share_partition_manager import SharePartitionManager
from heirlog.broker.share_partitions.share_session import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSessionCache
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from heirlog.protocol.types import PartitionKey, Uuid

MEMBER_ID_MAX_CHARACTERS: Final = 36
_NO_LEADER: Final = (-1, -1)

Results: TypeAlias = "Mapping[PartitionKey, KafkaError | None]"


class _AcknowledgedPartition(Protocol):
    """A partition of either request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[Any]: ...


class _AcknowledgedTopic(Protocol):
    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[_AcknowledgedPartition]: ...


def acknowledgements_of(topics: Iterable[_AcknowledgedTopic]) -> dict[PartitionKey, list[Acknowledgement]]:
    """Of every partition that is named: some may have none."""
    found: dict[PartitionKey, list[Acknowledgement]] = {}
    for topic in topics:
        for each in topic.partitions:
            found.setdefault((Uuid(topic.topic_id), each.partition_index), []).extend(
                Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in each.acknowledgement_batches
            )
    return found


class _Acknowledge:
    """The acknowledgements of one request, until all are stored or refused."""

    def __init__(self, keys: Iterable[PartitionKey], on_done: Callable[[Results], None]) -> None:
        self.results: dict[PartitionKey, KafkaError | None] = dict.fromkeys(keys)
        self._left = len(self.results) + 1
        self._on_done = on_done

    def result(self, key: PartitionKey, error: KafkaError | None) -> None:
        self.results[key] = error
        self.step()

    def leave_out(self, key: PartitionKey) -> None:
        """There is nothing to say of the partition."""
        del self.results[key]
        self.step()

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._on_done(self.results)


def check_readable(topic: str, context: Context) -> None:
    """Raises KafkaError."""
    if context.refuses is not None and context.refuses(topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"the client may not read topic {topic}")


class ShareAcknowledgeHandler:
    def __init__(
        self,
        replicas: ReplicaManager,
        manager: SharePartitionManager,
        sessions: ShareSessionCache,
        is_enabled: Callable[[], bool],
    ) -> None:
        """is_enabled: share.version."""
        self._replicas = replicas
        self._manager = manager
        self._sessions = sessions
        self._is_enabled = is_enabled

    def share_acknowledge(
        self, request: ShareAcknowledgeRequest, context: Context
    ) -> ShareAcknowledgeResponse | Pending[Any]:
        given = acknowledgements_of(request.topics)
        epoch = request.share_session_epoch
        key = SessionKey(request.group_id or "", request.member_id or "")
        try:
            self.check(request.group_id, request.member_id)
            if epoch == INITIAL_EPOCH:
                raise KafkaError(
                    ErrorCode.INVALID_SHARE_SESSION_EPOCH, "an acknowledgement cannot open a share session"
                )
            self._sessions.advance(key, epoch)
        except KafkaError as error:
            return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
        pending: Pending[ShareAcknowledgeResponse] = Pending()

        def done(results: Results) -> None:
            pending.complete(self._acknowledged(key.group_id, results, context))

        self.acknowledge(key, given, request.is_renew_ack, context, done)
        if epoch == FINAL_EPOCH:
            self._sessions.close(key)
        return pending

    def check(self, group_id: str | None, member: str | None) -> None:
        """Raises KafkaError for a request that this broker does not serve."""
        if not self._is_enabled():
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "share groups need share.version 1")
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the request names no group")
        if not member or len(member) > MEMBER_ID_MAX_CHARACTERS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"a member id has 1 to {MEMBER_ID_MAX_CHARACTERS} characters")

    def acknowledge(
        self,
        member: SessionKey,
        given: Mapping[PartitionKey, list[Acknowledgement]],
        may_renew: bool,
        context: Context,
        on_done: Callable[[Results], None],
    ) -> None:
        """`on_done` is called once, perhaps within this call, with the result of each partition.

        A partition for which nothing is acknowledged has a result if it does not exist, or if another one has
        acknowledgements that make sense.
        """
        call = _Acknowledge(given, on_done)
        empty, others = [], 0
        for key, acknowledgements in given.items():

            def stored(code: ErrorCode, key: PartitionKey = key) -> None:
                call.result(key, None if code is ErrorCode.NONE else KafkaError(code, why(code)))

            try:
                self._check_topic_id(key)
                check_acknowledgements(acknowledgements, may_renew=may_renew)
                if not acknowledgements:
                    self._check_exists(key, context)
                    empty.append(key)
                    continue
                partition = self.led(key, context)
                others += 1
                partition.topic_metrics.share_acknowledges += 1
                loaded = self._manager.get(SharePartitionKey(member.group_id, *key))
                if loaded is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the member holds no records here")
                self._manager.acknowledge(loaded, member.member_id, acknowledgements, stored)
            except KafkaError as error:
                call.result(key, error)
        for key in empty:
            if others:
                call.result(key, None)
            else:
                call.leave_out(key)
        call.step()

    def is_readable(self, key: PartitionKey, context: Context) -> bool:
        """Whether the partition exists, here or on another broker, and the client may read its topic."""
        topic_id, index = key
        name = self._replicas.topic_name(topic_id)
        if name is None or self._replicas.state_of(topic_id, "", index) is None:
            return False
        return context.refuses is None or not context.refuses(name)

    def _check_topic_id(self, key: PartitionKey) -> None:
        if self._replicas.topic_name(key[0]) is None:
            raise self._replicas.no_partition(*key)

    def _check_exists(self, key: PartitionKey, context: Context) -> None:
        name = self._replicas.topic_name(key[0])
        if name:
            check_readable(name, context)
        if self._replicas.state_of(key[0], "", key[1]) is None:
            raise self._replicas.no_partition(*key)

    def led(self, key: PartitionKey, context: Context) -> Partition:
        """The partition, if the client may read it and this broker leads it. Raises KafkaError."""
        topic_id, index = key
        name = self._replicas.topic_name(topic_id)
        if name:
            check_readable(name, context)
        partition = self._replicas.partitions_of(topic_id).get(index)
        if partition is None:
            raise self._replicas.no_partition(topic_id, index)
        if partition.role is not ReplicaRole.LEADER:
            raise partition.not_leader()
        return partition

    def _acknowledged(self, group_id: str, results: Results, context: Context) -> ShareAcknowledgeResponse:
        response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=self._manager.lock_duration_ms(group_id))
        topics: dict[Uuid, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
        leaders: set[int] = set()
        for key, error in results.items():
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(topic_id=key[0])
            part = ShareAcknowledgeResponse.PartitionData(
                partition_index=key[1],
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
            known = self.leader_of(key, error)
            if known is not None:
                leader, epoch = known
                part.current_leader = ShareAcknowledgeResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                leaders.add(leader)
            topic.partitions.append(part)
        response.responses = list(topics.values())
        response.node_endpoints = [
            ShareAcknowledgeResponse.NodeEndpoint(
                node_id=node.id, host=endpoint.host, port=endpoint.port, rack=node.rack
            )
            for node, endpoint in self._replicas.endpoints_of(sorted(leaders), context.listener)
        ]
        return response

    def leader_of(self, key: PartitionKey, error: KafkaError | None) -> tuple[int, int] | None:
        """Leader and epoch, for a client that asked the wrong broker.

        None: it did not. The fields of the answer are 0 then, as on Apache Kafka.
        """
        if error is None or error.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return None
        state = self._replicas.state_of(key[0], "", key[1])
        return _NO_LEADER if state is None else (state.leader, state.leader_epoch)


def why(code: ErrorCode) -> str:
    """For an error of the share coordinator."""
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return "the share coordinator did not answer in time; try again"
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return "the leader of the partition or the state of the share group has changed; try again"
    return f"the share coordinator answered {code.name}"
