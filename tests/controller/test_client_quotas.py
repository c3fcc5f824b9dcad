"""AlterClientQuotas as a handler: which records it makes, and what it answers for each entity."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from heirlog.controller.client_quotas import alter_client_quotas
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.metadata.apply import apply_all
from heirlog.metadata.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterClientQuotasRequest

Entry = AlterClientQuotasRequest.EntryData
ALICE = [(USER, "alice")]


def entry(parts: list[tuple[str, str | None]], *ops: tuple[str, float | None]) -> Entry:
    return Entry(
        entity=[AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


class Cluster:
    def __init__(self) -> None:
        self.image = Image()

    def alter(self, *entries: Entry, validate_only: bool = False) -> tuple[int, list[int]]:
        """How many records were made, and the error code of each entity."""
        request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
        result = alter_client_quotas(self.image, request)
        apply_all(self.image, result.records, self.image.offset + 1, 1)
        answer = result.respond(0)
        assert [len(each.entity) for each in answer.entries] == [len(each.entity) for each in entries]
        return len(result.records), [each.error_code for each in answer.entries]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_quota_is_set_changed_and_removed_and_what_changes_nothing_makes_no_record(cluster: Cluster) -> None:
    assert cluster.alter(entry(ALICE, (PRODUCER_BYTE_RATE, 1024.0), (REQUEST_PERCENTAGE, 12.5))) == (2, [0])
    assert cluster.alter(entry(ALICE, (PRODUCER_BYTE_RATE, 1024.0))) == (0, [0])
    assert cluster.alter(entry(ALICE, (PRODUCER_BYTE_RATE, 2048.0), (CONTROLLER_MUTATION_RATE, None))) == (1, [0])
    assert cluster.image.client_quotas.by_entity == {
        ((USER, "alice"),): {PRODUCER_BYTE_RATE: 2048.0, REQUEST_PERCENTAGE: 12.5}
    }
    assert cluster.alter(entry(ALICE, (PRODUCER_BYTE_RATE, None), (REQUEST_PERCENTAGE, None))) == (2, [0])
    assert not cluster.image.client_quotas.by_entity


def test_user_and_client_id_are_one_entity_in_either_order(cluster: Cluster) -> None:
    both = [(USER, "alice"), (CLIENT_ID, None)]
    assert cluster.alter(entry(both, (PRODUCER_BYTE_RATE, 1.0))) == (1, [0])
    assert cluster.alter(entry(both[::-1], (PRODUCER_BYTE_RATE, 1.0))) == (0, [0])


def test_validate_only_answers_the_same_and_changes_nothing(cluster: Cluster) -> None:
    bad = entry([], (PRODUCER_BYTE_RATE, 1.0))
    assert cluster.alter(entry(ALICE, (PRODUCER_BYTE_RATE, 1.0)), bad, validate_only=True) == (
        0,
        [ErrorCode.NONE, ErrorCode.INVALID_REQUEST],
    )


BAD: list[Any] = [
    ([], (PRODUCER_BYTE_RATE, 1.0)),
    ([(USER, "")], (PRODUCER_BYTE_RATE, 1.0)),
    ([("host", "a")], (PRODUCER_BYTE_RATE, 1.0)),
    ([(USER, "a"), (USER, "b")], (PRODUCER_BYTE_RATE, 1.0)),
    ([(IP, "10.0.0.1"), (USER, "a")], (CONNECTION_CREATION_RATE, 1.0)),
    ([(IP, "example.org")], (CONNECTION_CREATION_RATE, 1.0)),
    ([(IP, "10.0.0.1")], (PRODUCER_BYTE_RATE, 1.0)),
    (ALICE, (CONNECTION_CREATION_RATE, 1.0)),
    (ALICE, ("unknown", 1.0)),
    (ALICE, (PRODUCER_BYTE_RATE, 0.0)),
    (ALICE, (PRODUCER_BYTE_RATE, -1.0)),
    (ALICE, (PRODUCER_BYTE_RATE, 1.5)),
    (ALICE, (PRODUCER_BYTE_RATE, 1e19)),
    (ALICE, (REQUEST_PERCENTAGE, nan)),
    (ALICE, (REQUEST_PERCENTAGE, inf)),
    (ALICE, (PRODUCER_BYTE_RATE, 1.0), (PRODUCER_BYTE_RATE, 2.0)),
]


@pytest.mark.parametrize("bad", BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_entity_is_refused_alone_and_as_a_whole(cluster: Cluster, bad: Any) -> None:
    parts, *ops = bad
    good = entry([(CLIENT_ID, "c")], (PRODUCER_BYTE_RATE, 1.0))
    assert cluster.alter(entry(parts, (CONTROLLER_MUTATION_RATE, 1.0), *ops), good) == (
        1,
        [ErrorCode.INVALID_REQUEST, ErrorCode.NONE],
    )
    assert list(cluster.image.client_quotas.by_entity) == [((CLIENT_ID, "c"),)]


@pytest.mark.parametrize("address", ["10.0.0.1", "::1", "0.0.0.0", None])
def test_an_address_or_the_default_of_all_has_a_rate_of_connections(cluster: Cluster, address: str | None) -> None:
    assert cluster.alter(entry([(IP, address)], (CONNECTION_CREATION_RATE, 5.0))) == (1, [0])
    too_large = entry([(IP, address)], (CONNECTION_CREATION_RATE, 2.0**31))
    assert cluster.alter(too_large) == (0, [ErrorCode.INVALID_REQUEST])


def test_an_entity_that_comes_twice_is_not_written_at_all(cluster: Cluster) -> None:
    twice = [entry(ALICE, (PRODUCER_BYTE_RATE, 1.0)), entry(ALICE, (REQUEST_PERCENTAGE, 1.0))]
    assert cluster.alter(*twice) == (0, [ErrorCode.INVALID_REQUEST] * 2)


def test_more_quotas_than_one_request_may_change_are_refused_together(cluster: Cluster) -> None:
    entries = [entry([(USER, f"u{n}")], (PRODUCER_BYTE_RATE, 1.0)) for n in range(MAX_RECORDS_PER_USER_OP + 1)]
    records, codes = cluster.alter(*entries)
    assert (records, set(codes)) == (0, {ErrorCode.POLICY_VIOLATION})
