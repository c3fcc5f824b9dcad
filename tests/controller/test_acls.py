"""CreateAcls and DeleteAcls as handlers: which records they make, and what they answer."""

from __future__ import annotations

import random
from typing import Any

import pytest

from heirlog.controller import acls
from heirlog.controller.acls import create_acls, delete_acls
from heirlog.metadata.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.metadata.apply import apply_all
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateAclsRequest, DeleteAclsRequest

ANY = 1


def creation(name: str = "t", **more: Any) -> CreateAclsRequest.AclCreation:
    fields = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }
    return CreateAclsRequest.AclCreation(**(fields | more))


def meaning(**more: Any) -> DeleteAclsRequest.DeleteAclsFilter:
    fields = {"resource_type_filter": ANY, "pattern_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    return DeleteAclsRequest.DeleteAclsFilter(**(fields | more))


class Cluster:
    """An image, and the two requests on it."""

    def __init__(self) -> None:
        self.image = Image()
        self._random = random.Random(1)

    def create(self, *creations: CreateAclsRequest.AclCreation) -> tuple[int, list[tuple[int, str | None]]]:
        """How many records were made, and the results."""
        outcome = create_acls(self.image, CreateAclsRequest(creations=list(creations)), self._random)
        apply_all(self.image, outcome.records, self.image.offset + 1, 1)
        results = outcome.respond(0).results
        return len(outcome.records), [(result.error_code, result.error_message) for result in results]

    def delete(self, *filters: DeleteAclsRequest.DeleteAclsFilter) -> tuple[int, list[Any]]:
        outcome = delete_acls(self.image, DeleteAclsRequest(filters=list(filters)))
        apply_all(self.image, outcome.records, self.image.offset + 1, 1)
        return len(outcome.records), outcome.respond(0).filter_results


OK = (ErrorCode.NONE, "")


def test_what_exists_or_is_given_twice_is_created_once() -> None:
    cluster = Cluster()
    assert cluster.create(creation(), creation("u"), creation()) == (2, [OK] * 3)
    assert cluster.create(creation()) == (0, [OK])
    assert len(cluster.image.acls.by_id) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_type": 77}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 77}, "Invalid patternType UNKNOWN"),
        ({"operation": 77}, "Invalid operation UNKNOWN"),
        ({"permission_type": 77}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` "
            "(no colon is present separating the principal type from the principal name)",
        ),
    ],
)
def test_one_that_says_nothing_is_refused_alone(change: dict[str, Any], sentence: str) -> None:
    made = Cluster().create(creation(**change), creation())
    assert made == (1, [(ErrorCode.INVALID_REQUEST, sentence), OK])


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_a_word_of_filters_refuses_the_whole_request(field: str) -> None:
    made = Cluster().create(creation(**{field: ANY}), creation())
    assert made == (0, [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2)


def test_what_several_filters_match_is_told_by_each_and_removed_once() -> None:
    cluster = Cluster()
    cluster.create(creation("a"), creation("b"), creation("b", permission_type=AclPermissionType.DENY))
    records, results = cluster.delete(
        meaning(resource_name_filter="b"), meaning(permission_type=AclPermissionType.DENY)
    )
    assert records == 2
    assert [len(result.matching_acls) for result in results] == [2, 1]
    assert {(acl.error_code, acl.error_message) for result in results for acl in result.matching_acls} == {(0, None)}
    assert [acl.resource_name for acl in cluster.image.acls.by_id.values()] == ["a"]


def test_filters_that_match_the_same_acls_again_and_again_have_a_bounded_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acls, "ANSWERED_MAX", 5)
    cluster = Cluster()
    cluster.create(*(creation(principal=f"User:{number}") for number in range(2)))
    records, results = cluster.delete(*[meaning()] * 4)
    assert records == 2
    assert [len(result.matching_acls) for result in results] == [2, 2, 0, 0]
    assert [result.error_code for result in results] == [0, 0, ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION]


def test_a_filter_with_an_unknown_number_removes_nothing_and_the_others_theirs() -> None:
    cluster = Cluster()
    cluster.create(creation("a"))
    records, results = cluster.delete(meaning(resource_type_filter=77), meaning(operation=77), meaning())
    assert records == 1
    assert [(result.error_code, result.error_message) for result in results] == [
        (ErrorCode.INVALID_REQUEST, "Unknown patternFilter."),
        (ErrorCode.INVALID_REQUEST, "Unknown entryFilter."),
        (ErrorCode.NONE, None),
    ]
