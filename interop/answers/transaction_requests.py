"""Transactions: what producers, leaders and administrators ask of a coordinator and of the leaders of partitions.

A transactional id is also the name of its producer. Its epoch is the one of the last answer that gave one, which all
nodes answered alike; a request may name another one.
"""

from __future__ import annotations

from typing import Any

from answers.group_requests import LONG_MS
from answers.scene import Scene
from answers.shape import Plan
from answers.world import Batch, Symbol

Fields = dict[str, Any]
UNKNOWN_PRODUCER = 4000
HIGHER_COORDINATOR_EPOCH = 7
"""Than that of any coordinator: the nodes are never restarted."""
WAITS = (0, 22, 24, 25, 26, 28)
"""After these a coordinator may have markers to write."""
LEVELS = (2, 2, 1, 0)
"""Of transaction.version, one for each sequence."""
AT_ONCE = (0, 0, 0, 28)
"""What a client sends without waiting for an answer."""
SHORT_MS = 2500
"""Time limit of a transaction that is to be aborted; longer than the few requests in it take."""
LATE = (0, 22, 24, 26, 26, 28)
"""What the producer of an aborted transaction may send."""


def _version(scene: Scene, newest_below_2: int, *choices: int) -> Fields:
    """At level 0 Apache Kafka cannot store what clients of level 2 ask for, so there they mostly are of level 0."""
    if scene.transaction_version == 0 and scene.happens(0.95):
        return {"version": min(scene.one(*choices), newest_below_2)}
    return {"version": scene.one(*choices)}


def transactional_id(scene: Scene) -> str:
    return f"{scene.name}-{scene.one('t', 't', 't', 'u')}" if scene.happens(0.97) else scene.one("", f"{scene.name}-x")


def _producer(scene: Scene, name: str) -> Symbol:
    return Symbol("producer_ids", name if scene.happens(0.96) else f"{scene.name}-u", UNKNOWN_PRODUCER)


def _epoch(scene: Scene, name: str) -> int:
    known = scene.epochs.get(name, 0)
    return known if scene.happens(0.85) else max(0, known + scene.one(-1, -1, -2, 1))


def _who(scene: Scene, name: str) -> Fields:
    return {"producer_id": _producer(scene, name), "producer_epoch": _epoch(scene, name)}


def init_producer_id(scene: Scene) -> Fields:
    name = transactional_id(scene)
    who = _who(scene, name) if scene.happens(0.4) else {"producer_id": -1, "producer_epoch": -1}
    return {
        "transactional_id": name,
        "transaction_timeout_ms": LONG_MS if scene.happens(0.95) else scene.one(0, -1, 900_001, 2**31 - 1),
        **who,
        "keeps": name,
    }


def _topics(scene: Scene) -> list[Fields]:
    return [
        {"name": name, "partitions": list(dict.fromkeys(scene.some(scene.partition)))}
        for name in dict.fromkeys(scene.some(scene.topic))
    ]


def add_partitions_to_txn(scene: Scene) -> Fields:
    name = transactional_id(scene)
    who, topics = _who(scene, name), _topics(scene)
    old = {"transactional_id": name, **who, "topics": topics}
    transactions = [old | {"verify_only": scene.happens(0.5)}]
    if scene.happens(0.2):
        other = f"{scene.name}-u" if name != f"{scene.name}-u" else f"{scene.name}-t"
        more = {"transactional_id": other, **_who(scene, other), "topics": _topics(scene)}
        transactions.append(more | {"verify_only": scene.happens(0.5)})
    fields = {"transactions": transactions, **{f"v3_and_below_{field}": value for field, value in old.items()}}
    return fields | _version(scene, 3, *range(6))


def add_offsets_to_txn(scene: Scene) -> Fields:
    name = transactional_id(scene)
    return {"transactional_id": name, **_who(scene, name), "group_id": scene.group()}


def end_txn(scene: Scene) -> Fields:
    name = transactional_id(scene)
    fields = {"transactional_id": name, **_who(scene, name), "committed": scene.happens(0.6), "keeps": name}
    return fields | _version(scene, 4, *range(6))


def txn_offset_commit(scene: Scene) -> Fields:
    name, group = transactional_id(scene), scene.group()
    topics = [
        {
            "name": topic,
            "partitions": [
                {
                    "partition_index": index,
                    "committed_offset": scene.one(0, 1, 5, 100),
                    "committed_leader_epoch": scene.leader_epoch(),
                    "committed_metadata": scene.one("", "note", None, "m" * 5000) if scene.happens(0.3) else "",
                }
                for index in dict.fromkeys(scene.some(scene.partition))
            ],
        }
        for topic in dict.fromkeys(scene.some(scene.topic))
    ]
    is_member = scene.happens(0.15)
    return {
        "transactional_id": name,
        "group_id": group,
        **_who(scene, name),
        "generation_id": scene.one(0, 1, 2, -1) if is_member else -1,
        "member_id": Symbol("members", f"{group}/0", "stranger") if is_member else "",
        "group_instance_id": None,
        "topics": topics,
        **_version(scene, 4, *range(6)),
    }


def produce(scene: Scene) -> Fields:
    name = transactional_id(scene)
    topics = []
    for topic in dict.fromkeys(scene.some(scene.topic, 2)):
        parts = [
            {"index": index, "records": _batch(scene, name, topic, index)}
            for index in dict.fromkeys(scene.some(scene.partition, 2))
        ]
        topics.append({"name": topic, "topic_id": scene.topic_id(topic), "partition_data": parts})
    return {
        "transactional_id": name if scene.happens(0.97) else scene.one(None, "", f"{scene.name}-u"),
        "acks": -1,
        "timeout_ms": 5000,
        "topic_data": topics,
        **_version(scene, 11, 9, 10, 11, 12, 12, 12, 13, 13),
    }


def _batch(scene: Scene, name: str, topic: str, partition: int) -> Batch:
    values = (b"v",) * scene.one(1, 1, 2)
    place = (name, scene.epochs.get(name, 0), topic, partition)
    following = scene.sequences.get(place, 0)
    wrong = scene.happens(0.12)
    if not wrong:
        scene.sequences[place] = following + len(values)
    sequence = max(0, following + scene.one(-1, 1, 3)) if wrong else following
    ahead = 0 if scene.happens(0.93) else scene.one(-1, 1)
    transactional = scene.happens(0.95)
    return Batch(
        values,
        producer=name,
        sequence=sequence,
        # one that no coordinator checks raises the epoch, and Apache Kafka never completes the transaction
        epoch_ahead=ahead if transactional else min(ahead, 0),
        transactional=transactional,
    )


def write_txn_markers(scene: Scene) -> Fields:
    name = transactional_id(scene)
    topics = [{"name": topic["name"], "partition_indexes": topic["partitions"]} for topic in _topics(scene)]
    marker = {
        "producer_id": _producer(scene, name),
        # above that of the producer, Apache Kafka would never complete its transaction
        "producer_epoch": min(_epoch(scene, name), scene.epochs.get(name, 0)),
        "transaction_result": scene.happens(0.5),
        "topics": topics,
        # above that of the coordinator, the next transaction is never complete in these partitions
        "coordinator_epoch": scene.one(0, 0, 0, -1) if scene.happens(0.9) else HIGHER_COORDINATOR_EPOCH,
        "transaction_version": scene.one(0, 0, 1, 2),
    }
    return {"markers": [marker]}


def describe_transactions(scene: Scene) -> Fields:
    return {"transactional_ids": list(dict.fromkeys(scene.some(lambda: transactional_id(scene))))}


def list_transactions(scene: Scene) -> Fields:
    return {
        "state_filters": scene.one([], [], ["Ongoing"], ["Empty", "CompleteCommit", "CompleteAbort"], ["nonsense"]),
        "producer_id_filters": scene.one([], [], [_producer(scene, transactional_id(scene))]),
        "duration_filter": -1,
        "transactional_id_pattern": scene.one(None, None, "", f"{scene.name}.*", ".*-t", "("),
    }


def describe_producers(scene: Scene) -> Fields:
    return {"topics": [{"name": topic["name"], "partition_indexes": topic["partitions"]} for topic in _topics(scene)]}


def list_offsets(scene: Scene) -> Fields:
    topics = [
        {
            "name": topic["name"],
            "partitions": [
                {"partition_index": index, "current_leader_epoch": -1, "timestamp": scene.one(-1, -1, -3, -2)}
                for index in topic["partitions"]
            ],
        }
        for topic in _topics(scene)
    ]
    return {"replica_id": -1, "isolation_level": scene.one(0, 1, 1), "topics": topics, "timeout_ms": 5000}


def fetch(scene: Scene) -> Fields:
    topics = [
        {
            "topic": topic["name"],
            "topic_id": scene.topic_id(topic["name"]),
            "partitions": [
                {
                    "partition": index,
                    "current_leader_epoch": -1,
                    "fetch_offset": scene.one(0, 0, 0, 1, 2),
                    "last_fetched_epoch": -1,
                    "log_start_offset": -1,
                    "partition_max_bytes": 1 << 20,
                }
                for index in topic["partitions"]
            ],
        }
        for topic in _topics(scene)
    ]
    return {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "isolation_level": scene.one(0, 1, 1),
        "session_id": 0,
        "session_epoch": -1,
        "topics": topics,
        "forgotten_topics_data": [],
        "client": scene.rng.randrange(2),
    }


def offset_fetch(scene: Scene) -> Fields:
    group = scene.group()
    return {
        "group_id": group,
        "topics": None,
        "groups": [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}],
        "require_stable": scene.happens(0.6),
    }


def find_coordinator(scene: Scene) -> Fields:
    name = transactional_id(scene)
    return {"key": name, "key_type": 1, "coordinator_keys": [name, *scene.one([], [f"{scene.name}-u"])], "version": 4}


def is_of(name: str, plan: Plan, scene: Scene) -> bool:
    """Whether a Produce or a TxnOffsetCommit names the producer of this transactional id and its current epoch only."""
    fields = plan.fields
    if fields["transactional_id"] != name:
        return False
    if plan.key == 0:
        batches = [part["records"] for topic in fields["topic_data"] for part in topic["partition_data"]]
        return all(batch.producer == name and batch.epoch_ahead == 0 for batch in batches)
    is_named = isinstance(fields["producer_id"], Symbol) and fields["producer_id"].name == name
    return is_named and bool(fields["producer_epoch"] == scene.epochs.get(name, 0))


def with_limit(name: str, limit_ms: int) -> Plan:
    """InitProducerId of a new producer, with this limit for its transactions."""
    fields = {"transactional_id": name, "transaction_timeout_ms": limit_ms, "producer_id": -1, "producer_epoch": -1}
    return Plan(22, 4, fields, keeps=name)


def adding(scene: Scene, name: str) -> Plan:
    """AddPartitionsToTxn that begins a transaction."""
    who = {"producer_id": Symbol("producer_ids", name, UNKNOWN_PRODUCER), "producer_epoch": scene.epochs.get(name, 0)}
    fields = {"transactional_id": name, **who, "topics": [{"name": scene.topics[0], "partitions": [0, 1]}]}
    return Plan(24, 3, {f"v3_and_below_{field}": value for field, value in fields.items()})


BUILDERS = {
    0: produce,
    1: fetch,
    2: list_offsets,
    9: offset_fetch,
    10: find_coordinator,
    22: init_producer_id,
    24: add_partitions_to_txn,
    25: add_offsets_to_txn,
    26: end_txn,
    27: write_txn_markers,
    28: txn_offset_commit,
    61: describe_producers,
    65: describe_transactions,
    66: list_transactions,
}
OFTEN = (0, 0, 0, 24, 26, 26, 28, 28, 22)
"""Chosen as often again: without them nothing happens."""
