"""Meant differences in producers and their transactions (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.deviation import (
    INVALID_REQUEST,
    SHOWN_NAMES,
    A,
    B,
    D,
    Deviation,
    at,
    new_topics,
    topic,
)
from answers.players import SAFE_DOWNGRADE, TRANSACTION_VERSION, UPGRADE, Difference
from answers.shape import Plan
from answers.world import Batch, Symbol
from answers.worn_ids import LAST_EPOCH

PRODUCER, SUCCESSOR, LATER = (f"{SHOWN_NAMES}{letter}" for letter in "tsv")
"""Each of one example only: the epochs in it count from 0."""
UNSUPPORTED_VERSION = 35
INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED = 49, 51, 90
FENCED = (PRODUCER_FENCED, 47)
"""The second one below InitProducerId 4."""
FIRST_OF_LEVEL_2 = {0: 12, 24: 4, 26: 5, 28: 5}
"""Versions of Produce, AddPartitionsToTxn, EndTxn and TxnOffsetCommit."""


def _of_transaction(epoch: int, producer: str = PRODUCER) -> Batch:
    return Batch(producer=producer, sequence=0, epoch_ahead=epoch, transactional=True)


def _producing(producer: str, *topics: tuple[str, dict[int, Batch]]) -> Plan:
    data = [
        {"name": name, "partition_data": [{"index": index, "records": records} for index, records in parts.items()]}
        for name, parts in topics
    ]
    return Plan(0, 12, {"transactional_id": producer, "acks": -1, "timeout_ms": 5000, "topic_data": data})


def _level(level: int, upgrade_type: int) -> Plan:
    update = {"feature": TRANSACTION_VERSION, "max_version_level": level, "upgrade_type": upgrade_type}
    return Plan(57, 1, {"feature_updates": [update], "timeout_ms": 20_000, "validate_only": False})


def _has_no_room(difference: Difference) -> bool:
    """Apache Kafka cannot store that the client is of level 2."""
    plan = difference.plan
    is_of_2 = plan.version >= FIRST_OF_LEVEL_2.get(plan.key, 100)
    fields = (".error_code", ".base_offset", ".log_start_offset", ".producer_id", ".producer_epoch")
    # of a whole AddPartitionsToTxn
    is_left_out = ".results_by_transaction[" in difference.path and difference.theirs == "not there"
    return is_of_2 and (at(difference, *fields) or is_left_out) and UNSUPPORTED_VERSION in _codes(difference.answer)


def _names_reserved_epoch(difference: Difference) -> bool:
    fields = difference.plan.fields
    epoch = fields.get("producer_epoch", fields.get("v3_and_below_producer_epoch"))
    return epoch == LAST_EPOCH + 1 and difference.ours == INVALID_PRODUCER_ID_MAPPING


def _is_of_several(plan: Plan) -> bool:
    parts = [part for topic in plan.fields["topic_data"] for part in topic["partition_data"]] if plan.key == 0 else []
    return len({(part["records"].producer, part["records"].epoch_ahead) for part in parts}) > 1


def _codes(answer: Any) -> set[int]:
    if isinstance(answer, dict):
        own = {value for name, value in answer.items() if name.endswith("error_code")}
        return own.union(*map(_codes, answer.values()))
    return set().union(*map(_codes, answer)) if isinstance(answer, list) else set()


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


def _repeats_an_id(difference: Difference) -> bool:
    plan = difference.plan
    if plan.key != 24 or plan.version < 4:
        return False
    ids = [transaction["transactional_id"] for transaction in plan.fields["transactions"]]
    return len(set(ids)) < len(ids)


TRANSACTION_DEVIATIONS: list[Deviation] = [
    Deviation(
        "batches of several producers and an unknown partition",
        "batches of several producers in a Produce with a transactional id",
        lambda d: _is_of_several(d.plan) and INVALID_PRODUCER_ID_MAPPING in _codes(d.answer),
        (
            new_topics(topic(D)),
            _producing(PRODUCER, (A, {0: _of_transaction(0)}), (D, {n: _of_transaction(n + 1) for n in (0, 9)})),
        ),
    ),
    Deviation(
        "a client of level 2 at level 0",
        "a transaction of a client of transaction.version 2",
        _has_no_room,
        (
            new_topics(topic(D)),
            _level(0, SAFE_DOWNGRADE),
            _starting(LATER),
            _producing(LATER, (D, {0: _of_transaction(0, LATER)})),
            _level(2, UPGRADE),
        ),
        is_harmless=False,
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
        "a reserved epoch",
        "a request with epoch 32767",
        _names_reserved_epoch,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "the id after one that a coordinator has used up",
        "a producer with the last epoch of its id whose transaction",
        lambda d: d.plan.key == 22 and at(d, ".producer_epoch") and (d.theirs, d.ours) == (0, 1),
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "another epoch of a used-up id",
        "an epoch in InitProducerId that is not the current one",
        lambda d: d.plan.key == 22 and d.theirs == -1 and d.ours in FENCED,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a part of a batch that is known to be written",
        "repeat of a batch older than the last five",
        lambda d: d.plan.key == 0 and (d.theirs, d.ours) == (45, 46),
        by_chance=True,
    ),
    Deviation(
        "a topic without partitions",
        "a topic without partitions in a Produce",
        lambda d: d.plan.key == 0 and d.theirs == "not there" and "'partition_responses': []" in str(d.ours),
        by_chance=True,
    ),
    Deviation(
        "a transactional id twice",
        "a transactional id that is twice in AddPartitionsToTxn 4-5",
        _repeats_an_id,
        (
            Plan(
                24,
                4,
                {
                    "transactions": [
                        {
                            "transactional_id": PRODUCER,
                            "producer_id": _id_of(PRODUCER),
                            "producer_epoch": 0,
                            "verify_only": False,
                            "topics": [{"name": name, "partitions": [9]}],
                        }
                        for name in (A, B)
                    ]
                },
            ),
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
