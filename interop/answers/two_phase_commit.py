"""InitProducerId 6 (KIP-939): producers whose transactions only they end, as far as Apache Kafka 4.2 has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from answers.deviation import SHOWN_NAMES, new_topics, topic
from answers.group_requests import LONG_MS
from answers.scene import Scene
from answers.shape import Plan
from answers.transaction_requests import UNKNOWN_PRODUCER
from answers.transaction_requests import init_producer_id as with_limit
from answers.world import Symbol

INIT, ADD, END, DESCRIBE, LIST = 22, 24, 26, 65, 66
PRODUCER, TOPIC = f"{SHOWN_NAMES}2pc", f"{SHOWN_NAMES}prepared"
FORCED_MS = 30_000
"""What kafka-transactions.sh forceTerminateTransaction sends, by its default."""


def init_producer_id(scene: Scene) -> dict[str, Any]:
    """Of a random sequence; what is not of version 6 is as in other sequences."""
    fields = with_limit(scene)
    if scene.happens(0.3):
        return fields
    flags = {"enable2_pc": scene.happens(0.9), "keep_prepared_txn": scene.happens(0.05)}
    limit_ms = scene.one(LONG_MS, 0, -1, 900_001, 2**31 - 1)
    return fields | flags | {"transaction_timeout_ms": limit_ms, "version": 6}


def examples() -> Iterator[Plan]:
    """The first of each run: refusals, a commit, a producer that returns, an administrator who ends a transaction."""
    yield new_topics(topic(TOPIC))
    for asked in (
        {"transactional_id": None},
        {"transactional_id": None, "enable2_pc": True, "keep_prepared_txn": True},
        {"transactional_id": "", "enable2_pc": True},
        {"keep_prepared_txn": True},
        {"keep_prepared_txn": True, "enable2_pc": True, "transaction_timeout_ms": 0},
        {"enable2_pc": True, "producer_epoch": 3},
        {"transaction_timeout_ms": 0},
        {"transaction_timeout_ms": 2**31 - 1},
        {"enable2_pc": True, "transaction_timeout_ms": -1},
    ):
        yield _init(**asked)
        yield _described()
    epoch = 0
    for commit, version in ((True, 5), (False, 5), (True, 4)):
        yield from (_adding(epoch), _described(), _listed(), _ending(epoch, commit, version), _described())
        epoch += version == 5
    # the producer returns, and names the epoch that it had
    mine = {"producer_id": Symbol("producer_ids", PRODUCER, UNKNOWN_PRODUCER), "producer_epoch": epoch}
    yield from (_init(enable2_pc=True, **mine), _described())
    epoch += 1
    # ... and while its transaction is open
    yield from (_adding(epoch), _init(enable2_pc=True), _described(), _init(enable2_pc=True), _described())
    epoch += 2
    yield from (_adding(epoch), _init(4, transaction_timeout_ms=FORCED_MS), _described())
    yield from (_ending(epoch, True, 5), _init(4, transaction_timeout_ms=FORCED_MS), _described(), _listed())


def _init(version: int = 6, **fields: Any) -> Plan:
    new = {"transactional_id": PRODUCER, "transaction_timeout_ms": LONG_MS, "producer_id": -1, "producer_epoch": -1}
    asked = new | fields
    return Plan(INIT, version, asked, keeps=asked["transactional_id"])


def _who(epoch: int) -> dict[str, Any]:
    return {"producer_id": Symbol("producer_ids", PRODUCER, UNKNOWN_PRODUCER), "producer_epoch": epoch}


def _adding(epoch: int) -> Plan:
    fields = {"transactional_id": PRODUCER, **_who(epoch), "topics": [{"name": TOPIC, "partitions": [0]}]}
    return Plan(ADD, 3, {f"v3_and_below_{field}": value for field, value in fields.items()})


def _ending(epoch: int, commit: bool, version: int) -> Plan:
    return Plan(END, version, {"transactional_id": PRODUCER, **_who(epoch), "committed": commit}, keeps=PRODUCER)


def _described() -> Plan:
    return Plan(DESCRIBE, 0, {"transactional_ids": [PRODUCER]})


def _listed() -> Plan:
    return Plan(LIST, 2, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1})
