"""What happens to share groups over several requests, which chance would hardly put in this order.

    locks that end              a member acquires, keeps silent for longer than its lock, and fetches again
    deliveries that run out     a member releases what it has until the group gives the records up (KIP-932's limit)
    a transaction               committed or aborted, among other records; the group may read committed ones only
    a reset                     the group's members leave, an administrator alters its offsets, and they come back
    deleted records             the log start offset passes what a member holds
    a topic that is recreated   while members have a session with a partition of it
    more partitions             of a topic whose partitions a group shares

Each episode has a group of its own where it needs one that no other request of the sequence touches. It yields requests
and pauses, and is continued once these are answered or over, so it may read in the scene what the answers were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from answers import share_group_requests
from answers.group_requests import LONG_MS
from answers.scene import Scene
from answers.shape import Plan
from answers.share_group_requests import ACCEPT, ALTERED, FIRST_WAIT_MS, GAP, GROUP, REJECT, RELEASE
from answers.world import UNKNOWN_ID, Batch, Symbol

LOCK_MS = 1000
"""The shortest that a group may have."""
LOCK_ENDS_S = 1.8
"""By then every node has taken back what was acquired with such a lock."""
ALONE = 3
"""A client of which no other request opens a session: on Apache Kafka only its last one ends with its connection."""
DISCONNECTED_S = 0.3
"""By then a node has released what the members of a closed connection held."""
READS_COMMITTED, DELETED, RECREATED = "t", "r", "d"
"""Groups: one that reads what is committed, one whose records are deleted, and one whose topic is."""
LONGEST = 7
"""Deliveries; the limit is 5."""


@dataclass(frozen=True)
class Pause:
    """Between two requests. disconnects: the client whose connection is closed, with which its sessions end."""

    seconds: float
    disconnects: int | None = None


Episode = Iterator[Plan | Pause]


class _Member:
    """Of one group and with one client; it sends what is correct."""

    def __init__(self, scene: Scene, group: str, client: int = 0) -> None:
        self.scene, self.group, self.client = scene, f"{scene.name}-{group}", client
        self.member_id = share_group_requests.id_of(client)

    def _plan(self, key: int, version: int, **fields: Any) -> Plan:
        who = {"group_id": self.group, "member_id": self.member_id}
        return Plan(key, version, who | fields, self.client)

    def joins(self, *topics: str) -> Plan:
        return self._plan(76, 1, member_epoch=0, rack_id=None, subscribed_topic_names=list(topics))

    def beats(self) -> Plan:
        epoch = self.scene.member_epochs.get((self.group, self.member_id), 0)
        return self._plan(76, 1, member_epoch=epoch, rack_id=None, subscribed_topic_names=None)

    def leaves(self) -> Plan:
        return self._plan(76, 1, member_epoch=-1, rack_id=None, subscribed_topic_names=None)

    def fetches(self, topic: str, partition: int = 0, *, most: int = 500, mode: int = 0) -> Plan:
        epoch = self.scene.share_sessions.get((self.group, self.client), 0)
        is_loaded = (self.group, topic, partition) in self.scene.shared and epoch > 0
        return self._plan(
            78,
            2,
            share_session_epoch=epoch,
            max_wait_ms=0 if is_loaded else FIRST_WAIT_MS,
            min_bytes=0 if is_loaded else 1,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=most,
            share_acquire_mode=mode,
            is_renew_ack=False,
            topics=[] if is_loaded else [_part(topic, partition, [])],
            forgotten_topics_data=[],
        )

    def acknowledges(self, kind: Callable[[], int], topic: str, partition: int = 0, *, each: bool = False) -> Plan:
        """All that it holds. each: with a type for every offset."""
        held = sorted(self.scene.acquired.get((self.group, self.client), []))
        batches = [
            {
                "first_offset": first,
                "last_offset": last,
                "acknowledge_types": [kind() for _ in range(last - first + 1 if each else 1)],
            }
            for at, number, first, last in held
            if (at, number) == (topic, partition)
        ]
        epoch = self.scene.share_sessions.get((self.group, self.client), 0)
        topics = [_part(topic, partition, batches)] if batches else []
        return self._plan(79, 2, share_session_epoch=epoch, is_renew_ack=False, topics=topics)

    def ends_its_session(self) -> Plan:
        return self._plan(79, 2, share_session_epoch=-1, is_renew_ack=False, topics=[])

    def configures(self, name: str, value: str | None) -> Plan:
        change = {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
        resource = {"resource_type": GROUP, "resource_name": self.group, "configs": [change]}
        return Plan(44, 1, {"resources": [resource], "validate_only": False})

    def summarized(self, topic: str) -> Iterator[Plan]:
        """What an administrator sees."""
        wanted = {"group_id": self.group, "topics": [{"topic_name": topic, "partitions": [0]}]}
        yield Plan(90, 1, {"groups": [wanted]})
        yield Plan(77, 1, {"group_ids": [self.group], "include_authorized_operations": False})


def _part(topic: str, partition: int, batches: list[dict[str, Any]]) -> dict[str, Any]:
    parts = [{"partition_index": partition, "acknowledgement_batches": batches}]
    return {"topic_id": Symbol("topic_ids", topic, UNKNOWN_ID), "partitions": parts}


def _produced(topic: str, *batches: Batch, transactional_id: str | None = None) -> Iterator[Plan]:
    for batch in batches:
        data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
        yield Plan(0, 9, {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 5000, "topic_data": data})


def _records(scene: Scene) -> Batch:
    return Batch((b"v",) * scene.one(1, 2, 3, 7))


def _has_joined(member: _Member, topic: str) -> Episode:
    yield member.configures("share.auto.offset.reset", "earliest")
    yield member.joins(topic)
    yield member.beats()


def ended_locks(scene: Scene) -> Episode:
    topic, member, other = scene.topics[0], _Member(scene, "l", 0), _Member(scene, "l", 1)
    yield member.configures("share.record.lock.duration.ms", str(LOCK_MS))
    yield from _has_joined(member, topic)
    yield from _produced(topic, _records(scene), _records(scene))
    yield member.fetches(topic, most=scene.one(1, 500), mode=scene.one(0, 1))
    if scene.happens(0.5):
        yield member.acknowledges(lambda: scene.one(ACCEPT, RELEASE, REJECT, GAP), topic, each=scene.happens(0.5))
        yield member.fetches(topic, most=scene.one(1, 500))
    yield Pause(LOCK_ENDS_S)
    # too late, and with what another member has by now
    if scene.happens(0.5):
        yield member.acknowledges(lambda: ACCEPT, topic)
    yield other.configures("share.record.lock.duration.ms", scene.one(None, str(LONG_MS)))
    yield other.joins(topic)
    yield other.fetches(topic)
    yield member.acknowledges(lambda: ACCEPT, topic)
    yield other.acknowledges(lambda: scene.one(ACCEPT, RELEASE), topic, each=scene.happens(0.5))
    yield member.fetches(topic)
    yield from member.summarized(topic)


def used_up_deliveries(scene: Scene) -> Episode:
    topic, member = scene.topics[0], _Member(scene, "u")
    yield from _has_joined(member, topic)
    yield from _produced(topic, *(_records(scene) for _ in range(scene.one(1, 2, 3))))
    spared = scene.one(0.0, 0.0, 0.2)
    for _ in range(LONGEST * scene.one(1, 2, 3)):
        yield member.fetches(topic, most=scene.one(500, 500, 2), mode=scene.one(0, 0, 1))
        if not scene.acquired.get((member.group, member.client)):
            break
        yield member.acknowledges(lambda: ACCEPT if scene.happens(spared) else RELEASE, topic, each=spared > 0)
    yield from _produced(topic, _records(scene))
    yield member.fetches(topic)
    yield from member.summarized(topic)


def transaction(scene: Scene) -> Episode:
    reads_committed = scene.happens(0.6)
    topic, member = scene.topics[0], _Member(scene, READS_COMMITTED if reads_committed else "w", 1)
    name = f"{scene.name}-t"
    producer = Symbol("producer_ids", name, -1)
    yield member.configures("share.isolation.level", "read_committed" if reads_committed else "read_uncommitted")
    yield from _has_joined(member, topic)
    fresh = {"transaction_timeout_ms": LONG_MS, "producer_id": -1, "producer_epoch": -1}
    yield Plan(22, 4, {"transactional_id": name, **fresh}, keeps=name)
    for _ in range(scene.one(1, 2)):
        epoch = scene.epochs.get(name, 0)
        who = {"producer_id": producer, "producer_epoch": epoch}
        topics = [{"name": topic, "partitions": [0]}]
        adding = {"transactional_id": name, **who, "topics": topics}
        yield Plan(24, 3, {f"v3_and_below_{field}": value for field, value in adding.items()})
        written = 0
        for _ in range(scene.one(1, 2)):
            batch = Batch((b"v",) * scene.one(1, 3), producer=name, sequence=written, transactional=True)
            written += len(batch.values)
            yield from _produced(topic, batch, transactional_id=name)
            if scene.happens(0.5):
                yield from _produced(topic, _records(scene))
        if scene.happens(0.5):
            # the transaction is open
            yield member.fetches(topic)
            yield member.acknowledges(lambda: scene.one(ACCEPT, RELEASE), topic)
        yield Plan(26, 5, {"transactional_id": name, **who, "committed": scene.happens(0.5)}, keeps=name)
    yield from _produced(topic, _records(scene))
    for _ in range(2):
        yield member.fetches(topic, most=scene.one(2, 500))
        yield member.acknowledges(lambda: scene.one(ACCEPT, RELEASE, REJECT), topic, each=scene.happens(0.5))
    yield from member.summarized(topic)


def reset(scene: Scene) -> Episode:
    topic, member = scene.topics[0], _Member(scene, ALTERED.removeprefix("-"), ALONE)
    yield from _has_joined(member, topic)
    yield from _produced(topic, _records(scene), _records(scene), _records(scene))
    yield member.fetches(topic)
    yield member.acknowledges(lambda: scene.one(ACCEPT, ACCEPT, REJECT, RELEASE), topic, each=True)
    if scene.happens(0.5):
        yield member.ends_its_session()
    else:
        yield member.fetches(topic)
    yield member.leaves()
    # before that Apache Kafka keeps what it knows of the partition (docs/internals/share-groups.md)
    yield Pause(DISCONNECTED_S, disconnects=member.client)
    parts = [{"partition_index": 0, "start_offset": scene.one(0, 1, 2, 5, 50)}]
    if scene.happens(0.75):
        yield Plan(91, 0, {"group_id": member.group, "topics": [{"topic_name": topic, "partitions": parts}]})
    else:
        yield Plan(92, 0, {"group_id": member.group, "topics": [{"topic_name": topic}]})
    yield from member.summarized(topic)
    yield member.joins(topic)
    yield member.fetches(topic)
    yield member.acknowledges(lambda: ACCEPT, topic)
    yield from member.summarized(topic)


def deleted_records(scene: Scene) -> Episode:
    topic, member = scene.topics[0], _Member(scene, DELETED, 1)
    yield from _has_joined(member, topic)
    yield from _produced(topic, *(_records(scene) for _ in range(scene.one(2, 3, 4))))
    yield member.fetches(topic, most=scene.one(1, 500))
    if scene.happens(0.6):
        kinds = scene.one((RELEASE,), (RELEASE, ACCEPT))
        yield member.acknowledges(lambda: scene.one(*kinds), topic, each=scene.happens(0.5))
    parts = [{"partition_index": 0, "offset": scene.one(1, 2, 3, 5, -1)}]
    yield Plan(21, 2, {"topics": [{"name": topic, "partitions": parts}], "timeout_ms": 5000})
    yield from _produced(topic, _records(scene))
    yield member.fetches(topic)
    yield member.acknowledges(lambda: ACCEPT, topic)
    yield member.fetches(topic)
    yield from member.summarized(topic)


def recreated_topic(scene: Scene) -> Episode:
    topic, member = scene.topics[1], _Member(scene, RECREATED, 1)
    yield from _has_joined(member, topic)
    yield from _produced(topic, _records(scene))
    yield member.fetches(topic)
    if scene.happens(0.5):
        yield member.acknowledges(lambda: scene.one(ACCEPT, RELEASE), topic)
    yield Plan(20, 5, {"topic_names": [topic], "timeout_ms": 20_000})
    yield member.acknowledges(lambda: ACCEPT, topic)
    yield member.beats()
    new = {"replication_factor": 1, "assignments": [], "configs": []}
    topics = [{"name": topic, "num_partitions": 1, **new}]
    yield Plan(19, 7, {"topics": topics, "timeout_ms": 20_000, "validate_only": False})
    yield member.joins(topic)
    yield member.beats()
    yield from _produced(topic, _records(scene))
    if scene.happens(0.5):
        # its session still names the topic that is gone
        yield member.ends_its_session()
    scene.shared.discard((member.group, topic, 0))
    yield member.fetches(topic)
    yield member.acknowledges(lambda: ACCEPT, topic)
    yield from member.summarized(topic)


def more_partitions(scene: Scene) -> Episode:
    topic, member = scene.topics[0], _Member(scene, "p", 0)
    yield from _has_joined(member, topic)
    yield Plan(37, 3, {"topics": [{"name": topic, "count": 4, "assignments": None}], "timeout_ms": 20_000})
    yield member.joins(topic)
    yield member.beats()
    yield member.fetches(topic, 3)
    yield from member.summarized(topic)


EPISODES: tuple[Callable[[Scene], Episode], ...] = (
    ended_locks,
    used_up_deliveries,
    transaction,
    reset,
    deleted_records,
    recreated_topic,
    more_partitions,
)
