"""Producing, fetching and what is asked of partitions: requests that mean something."""

from __future__ import annotations

from typing import Any

from answers.scene import Scene
from answers.world import TIME_MS, Batch, Symbol

Fields = dict[str, Any]


def produce(scene: Scene) -> Fields:
    topics = []
    for name in set(scene.some(scene.topic)):
        parts = [
            {"index": index, "records": batch(scene, name, index)}
            for index in dict.fromkeys(scene.some(scene.partition))
        ]
        topics.append({"name": name, "topic_id": scene.topic_id(name), "partition_data": parts})
    return {"acks": scene.one(-1, -1, -1, 1, 1, 0, 2, -2), "timeout_ms": 5000, "topic_data": topics}


def batch(scene: Scene, topic: str, partition: int) -> Batch:
    values = tuple(scene.one(b"v", b"longer" * 30, None, b"") for _ in range(scene.one(1, 1, 2, 5)))
    if scene.producers and scene.happens(0.6):
        producer = scene.rng.choice(scene.producers)
        place = (producer, topic, partition)
        following = scene.sequences.get(place, 0)
        wrong = scene.happens(0.35)
        sequence = max(0, following - scene.one(1, 2, 5, -1, -3)) if wrong else following
        if not wrong:
            scene.sequences[place] = sequence + len(values)
        return Batch(
            values, producer=producer, sequence=sequence, epoch_ahead=0 if scene.happens(0.9) else scene.one(-1, 1, 2)
        )
    return Batch(
        values,
        keys=scene.happens(0.85),
        compression=scene.one(0, 0, 0, 0, 1, 2, 3, 4),
        time_ms=TIME_MS if scene.happens(0.8) else scene.one(-1, 0, TIME_MS - 5000, TIME_MS + 5000, 2**50),
        control=scene.happens(0.03),
        transactional=scene.happens(0.03),
        damage=scene.one("crc", "magic", "short", "twice", "empty") if scene.happens(0.12) else "",
    )


def fetch(scene: Scene) -> Fields:
    client = scene.rng.randrange(2)
    epoch = scene.sessions.get(client, 0)
    if scene.happens(0.25):
        epoch = scene.one(-1, -1, 0, 0, 1, 2, 9)
    topics = [
        {
            "topic": name,
            "topic_id": scene.topic_id(name),
            "partitions": [
                {
                    "partition": scene.partition(),
                    "current_leader_epoch": scene.leader_epoch(),
                    "fetch_offset": scene.offset(),
                    "last_fetched_epoch": scene.one(-1, -1, -1, 0, 1),
                    "log_start_offset": -1,
                    "partition_max_bytes": scene.one(1, 100, 1000, 1 << 20, 0),
                }
                for _ in range(scene.one(1, 1, 2))
            ],
        }
        for name in set(scene.some(scene.topic))
    ]
    forgotten = [
        {"topic": name, "topic_id": scene.topic_id(name), "partitions": scene.some(scene.partition)}
        for name in (scene.some(scene.topic) if epoch > 0 and scene.happens(0.2) else ())
    ]
    return {
        "replica_id": -1,
        "max_wait_ms": scene.one(0, 0, 20),
        "min_bytes": scene.one(0, 1, 1, 1000),
        "max_bytes": scene.one(1, 1000, 1 << 20, 1 << 20),
        "isolation_level": scene.one(0, 1) if scene.happens(0.93) else 2,
        "session_id": Symbol("sessions", client, 0) if epoch != 0 or scene.happens(0.2) else 0,
        "session_epoch": epoch,
        "topics": topics if epoch <= 0 or scene.happens(0.4) else [],
        "forgotten_topics_data": forgotten,
        "client": client,
    }


def list_offsets(scene: Scene) -> Fields:
    times = (-1, -1, -2, -2, -3, -4, -5, -6, -7, 0, TIME_MS, TIME_MS + 1, TIME_MS + 10**6)
    topics = [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": scene.partition(),
                    "current_leader_epoch": scene.leader_epoch(),
                    "timestamp": scene.one(*times),
                }
                for _ in range(scene.one(1, 1, 2, 3))
            ],
        }
        for name in scene.some(scene.topic)
    ]
    return {
        "replica_id": scene.one(-1, -1, -1, -2),
        "isolation_level": scene.one(0, 1) if scene.happens(0.93) else 2,
        "topics": topics,
        "timeout_ms": 5000,
    }


def offset_for_leader_epoch(scene: Scene) -> Fields:
    topics = [
        {
            "topic": name,
            "partitions": [
                {
                    "partition": scene.partition(),
                    "current_leader_epoch": scene.leader_epoch(),
                    "leader_epoch": scene.leader_epoch(),
                }
                for _ in range(scene.one(1, 1, 2))
            ],
        }
        for name in set(scene.some(scene.topic))
    ]
    return {"replica_id": scene.one(-1, -1, -2), "topics": topics}


def delete_records(scene: Scene) -> Fields:
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "offset": scene.offset()} for index in set(scene.some(scene.partition))
            ],
        }
        for name in set(scene.some(scene.topic))
    ]
    return {"topics": topics, "timeout_ms": 5000}


def init_producer_id(scene: Scene) -> Fields:
    producer = scene.rng.choice(scene.producers) if scene.producers and scene.happens(0.1) else None
    return {
        "transactional_id": None,
        "transaction_timeout_ms": scene.one(60_000, 1, 0, -1, 2**31 - 1),
        "producer_id": -1 if producer is None else Symbol("producer_ids", producer, 4000),
        "producer_epoch": -1 if producer is None else 0,
        "keeps": len(scene.producers),
    }


def describe_producers(scene: Scene) -> Fields:
    topics = [{"name": name, "partition_indexes": scene.some(scene.partition)} for name in set(scene.some(scene.topic))]
    return {"topics": topics}


def list_transactions(scene: Scene) -> Fields:
    return {
        "state_filters": scene.one([], ["Ongoing"], ["Empty", "nonsense"]),
        "producer_id_filters": scene.one([], [4000]),
        "duration_filter": scene.one(-1, 1000),
        "transactional_id_pattern": scene.one(None, "", "a.*"),
    }


BUILDERS = {
    0: produce,
    1: fetch,
    2: list_offsets,
    21: delete_records,
    22: init_producer_id,
    23: offset_for_leader_epoch,
    61: describe_producers,
    66: list_transactions,
}
