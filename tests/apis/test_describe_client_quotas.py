"""DescribeClientQuotas: what a filter matches, filters without meaning, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.described import context, image_with
from apis.guarded import C_DENIED, CLUSTER, Guarded

from heirlog.apis import describe_client_quotas
from heirlog.metadata.acls import AclOperation
from heirlog.metadata.as_records import client_quota_record
from heirlog.metadata.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    Entity,
    entity_of,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeClientQuotasRequest

EXACT, DEFAULT, ANY = 0, 1, 2
ALICE, EVERY_USER, CLIENT = ((USER, "alice"),), ((USER, None),), ((CLIENT_ID, "c"),)
BOTH, ADDRESS = entity_of([(USER, "alice"), (CLIENT_ID, "c")]), ((IP, "10.0.0.1"),)
EVERYTHING = {ALICE, EVERY_USER, CLIENT, BOTH, ADDRESS}


@pytest.fixture
def quotas(port: Any) -> Any:
    port.image = image_with(
        *(client_quota_record(entity, PRODUCER_BYTE_RATE, 10.0) for entity in (ALICE, EVERY_USER, CLIENT, BOTH)),
        client_quota_record(ADDRESS, CONNECTION_CREATION_RATE, 3.0),
        client_quota_record(BOTH, REQUEST_PERCENTAGE, 2.5),
    )
    return port


def request(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )


def described(port: Any, asked: DescribeClientQuotasRequest) -> dict[Entity, dict[str, float]]:
    answer: Any = describe_client_quotas.handle(port, asked, context(1))
    assert answer.error_code == ErrorCode.NONE
    return {
        entity_of((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], False, EVERYTHING),
        ([], True, set()),
        ([(USER, ANY, None)], False, {ALICE, EVERY_USER, BOTH}),
        ([(USER, ANY, None)], True, {ALICE, EVERY_USER}),
        ([(USER, DEFAULT, None)], False, {EVERY_USER}),
        ([(USER, EXACT, "alice")], False, {ALICE, BOTH}),
        ([(USER, EXACT, "alice")], True, {ALICE}),
        ([(USER, EXACT, "alice"), (CLIENT_ID, ANY, None)], True, {BOTH}),
        ([(USER, EXACT, "bob")], False, set()),
        ([(IP, ANY, None)], True, {ADDRESS}),
    ],
)
def test_a_filter_matches_entities_by_types_and_names(
    quotas: Any, components: list[tuple[str, int, str | None]], strict: bool, expected: set[Entity]
) -> None:
    assert set(described(quotas, request(*components, strict=strict))) == expected


def test_all_quotas_of_an_entity_are_described(quotas: Any) -> None:
    both = request((USER, EXACT, "alice"), (CLIENT_ID, EXACT, "c"))
    assert described(quotas, both) == {BOTH: {PRODUCER_BYTE_RATE: 10.0, REQUEST_PERCENTAGE: 2.5}}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([(USER, ANY, None), (USER, DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([(USER, EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([(USER, DEFAULT, "alice")], ErrorCode.INVALID_REQUEST),
        ([(USER, ANY, "alice")], ErrorCode.INVALID_REQUEST),
        ([(USER, 3, None)], ErrorCode.INVALID_REQUEST),
        ([(IP, ANY, None), (USER, ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_without_a_meaning_is_refused(
    quotas: Any, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    answer: Any = describe_client_quotas.handle(quotas, request(*components), context(1))
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    refused = node.ask(request())
    assert (refused.error_code, refused.entries) == (C_DENIED, None)
    node.allow(AclOperation.DESCRIBE_CONFIGS, CLUSTER)
    assert node.ask(request()).entries == []
