"""InitProducerId 6 (KIP-939): producers whose transactions only they end, as far as Apache Kafka 4.2 has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from answers.deviation import SHOWN_NAMES
from answers.group_requests import LONG_MS
from answers.scene import Scene
from answers.shape import Plan
from answers.transaction_requests import UNKNOWN_PRODUCER
from answers.transaction_requests import init_producer_id as with_limit
from answers.world import Symbol

INIT, DESCRIBE, LIST = 22, 65, 66
PRODUCER = f"{SHOWN_NAMES}2pc"
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
    """The first of each run: what is refused, and which time limit an id has. No transaction is open: on a busy machine
    nodes of Apache Kafka may answer before its markers are written, and after them.
    """
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
    # the producer returns, and names the epoch that it had
    yield from (_init(enable2_pc=True, **_who(0)), _described(), _listed())
    # what kafka-transactions.sh forceTerminateTransaction asks
    yield from (_init(4, transaction_timeout_ms=FORCED_MS), _described())


def _init(version: int = 6, **fields: Any) -> Plan:
    new = {"transactional_id": PRODUCER, "transaction_timeout_ms": LONG_MS, "producer_id": -1, "producer_epoch": -1}
    asked = new | fields
    return Plan(INIT, version, asked, keeps=asked["transactional_id"])


def _who(epoch: int) -> dict[str, Any]:
    return {"producer_id": Symbol("producer_ids", PRODUCER, UNKNOWN_PRODUCER), "producer_epoch": epoch}


def _described() -> Plan:
    return Plan(DESCRIBE, 0, {"transactional_ids": [PRODUCER]})


def _listed() -> Plan:
    return Plan(LIST, 2, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1})
