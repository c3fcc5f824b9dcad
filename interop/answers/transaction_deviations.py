"""Meant differences in producers and their transactions (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.deviation import INVALID_REQUEST, SHOWN_NAMES, UNKNOWN_PARTITIONS, A, D, Deviation, at, new_topics, topic
from answers.players import Difference
from answers.shape import Plan
from answers.world import Batch, Symbol

PRODUCER, SUCCESSOR = f"{SHOWN_NAMES}t", f"{SHOWN_NAMES}s"
"""Each of one example only: the epochs in it count from 0."""
INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED = 49, 51, 90
FENCED = (PRODUCER_FENCED, 47)
"""The second one below InitProducerId 4."""


def _of_transaction(epoch: int) -> Batch:
    return Batch(producer=PRODUCER, sequence=0, epoch_ahead=epoch, transactional=True)


def _id_of(producer: str) -> Symbol:
    return Symbol("producer_ids", producer, 4000)


def _starting(producer: str, producer_id: Any = -1, epoch: int = -1) -> Plan:
    limit = {"transactional_id": producer, "transaction_timeout_ms": 60_000}
    return Plan(22, 4, limit | {"producer_id": producer_id, "producer_epoch": epoch}, keeps=producer)


def _adding(producer: str, topic: str, epoch: int) -> Plan:
    return Plan(
        24,
        3,
        {
            "v3_and_below_transactional_id": producer,
            "v3_and_below_producer_id": _id_of(producer),
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
        },
    )


def _aborting(producer: str, version: int, epoch: int) -> Plan:
    fields = {"producer_id": _id_of(producer), "producer_epoch": epoch}
    return Plan(26, version, {"transactional_id": producer, "committed": False, **fields}, keeps=producer)


def _gets_epoch_of_successor(difference: Difference) -> bool:
    plan, ours = difference.plan, difference.ours
    is_of_answer = at(difference, ".producer_id", ".producer_epoch") and ours == -1
    return plan.key == 26 and plan.version >= 5 and (ours == PRODUCER_FENCED or is_of_answer)


TRANSACTION_DEVIATIONS: list[Deviation] = [
    Deviation(
        "batches of several producers and an unknown partition",
        "batches of several producers in a Produce with a transactional id",
        lambda d: d.plan.key == 0 and d.theirs == INVALID_PRODUCER_ID_MAPPING and d.ours in UNKNOWN_PARTITIONS,
        (
            new_topics(topic(D)),
            Plan(
                0,
                12,
                {
                    "transactional_id": PRODUCER,
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [
                        {"name": A, "partition_data": [{"index": 0, "records": _of_transaction(0)}]},
                        {
                            "name": D,
                            "partition_data": [{"index": n, "records": _of_transaction(n + 1)} for n in (0, 9)],
                        },
                    ],
                },
            ),
        ),
    ),
    Deviation(
        "a marker with a negative epoch",
        "a negative producer id or epoch in WriteTxnMarkers",
        lambda d: d.plan.key == 27 and d.ours == INVALID_REQUEST,
        (
            Plan(
                27,
                2,
                {
                    "markers": [
                        {
                            "producer_id": 4000,
                            "producer_epoch": -2,
                            "transaction_result": True,
                            "topics": [{"name": A, "partition_indexes": [0]}],
                            "coordinator_epoch": 0,
                            "transaction_version": 0,
                        }
                    ]
                },
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "another producer's transaction",
        "InitProducerId with an old epoch while a transaction is open",
        lambda d: d.plan.key == 22 and d.theirs == CONCURRENT_TRANSACTIONS and d.ours in FENCED,
        (
            new_topics(topic(D)),
            _starting(PRODUCER),
            _adding(PRODUCER, D, 0),
            _starting(PRODUCER, _id_of(PRODUCER), 10),
        ),
        is_harmless=False,
    ),
    Deviation(
        "the epoch of a successor",
        "EndTxn 5 with the epoch from before the current one",
        _gets_epoch_of_successor,
        (
            new_topics(topic(D)),
            _starting(SUCCESSOR),
            _starting(SUCCESSOR),
            _adding(SUCCESSOR, D, 1),
            _aborting(SUCCESSOR, 4, 1),
            # on a busy machine the nodes of Apache Kafka may not agree at first whether all markers are written
            *[_aborting(SUCCESSOR, 5, 0)] * 3,
        ),
        is_harmless=False,
    ),
]
