"""What a change of min ISR clears, with the recovery manager on."""

from __future__ import annotations

import pytest

from heirlog.controller import alter_configs
from heirlog.metadata.image import TOPIC_RESOURCE
from heirlog.protocol.records import BeginTransactionRecord, ClearElrRecord, EndTransactionRecord
from heirlog.testing.conformance.controller_layer import ControllerScenario


def scenario(manager: bool, partitions: int = 1) -> ControllerScenario:
    return ControllerScenario(
        {
            "features": {"metadata.version": 29, "eligible.leader.replicas.version": 1},
            "config": {"topic": {"foo": {"min.insync.replicas": "2"}}},
            "brokers": [{"id": 1}, {"id": 2}, {"id": 3, "state": "fenced"}],
            "partitions": [
                {
                    "partition": number,
                    "replicas": [1, 2, 3],
                    "isr": [1],
                    "elr": [2, 3],
                    "leader": 1,
                    "leaderEpoch": 1,
                    "partitionEpoch": 1,
                }
                for number in range(partitions)
            ],
        },
        manager=manager,
    )


def lists(played: ControllerScenario, value: str) -> tuple[list[int], list[int]]:
    event = {"resourceType": "topic", "resourceName": "foo", "op": "SET", "name": "min.insync.replicas"}
    seen = played.play({"type": "alter_config", "value": value, **event})
    assert seen["error"] == "NONE"
    return seen["partitions"][0]["elr"], seen["partitions"][0]["lastKnownElr"]


def test_without_the_manager_the_lists_are_gone() -> None:
    assert lists(scenario(manager=False), "3") == ([], [])


def test_members_cleared_below_the_new_min_isr_are_remembered_as_lost() -> None:
    assert lists(scenario(manager=True), "3") == ([], [2, 3])
    assert lists(scenario(manager=True), "9") == ([], [2, 3])


def test_an_isr_that_reaches_the_new_min_isr_needs_no_memory() -> None:
    assert lists(scenario(manager=True), "1") == ([], [])


def test_what_does_not_fit_into_a_batch_is_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    played = scenario(manager=True, partitions=3)
    monkeypatch.setattr(alter_configs, "MAX_RECORDS_PER_BATCH", 4)
    assert lists(played, "3") == ([], [2, 3])
    written = [type(record) for record in played.written]
    assert written[0] is BeginTransactionRecord and written[-1] is EndTransactionRecord
    assert written.index(ClearElrRecord) == 2 and len(written) == 7
    assert played.image.config(TOPIC_RESOURCE, "foo", "min.insync.replicas") == "3"
