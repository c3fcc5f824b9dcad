"""Decisions about random requests on random ACLs, against a second, naive definition; what is remembered of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.metadata import authorizer as authorizer_module
from heirlog.metadata.acls import Acl, AclOperation, AclPermissionType, Acls, PatternType, ResourceType
from heirlog.metadata.authorizer import DECISIONS_MAX, Authorizer, decide
from heirlog.protocol.types import Uuid

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
ALICE, BOB, HOST = "User:alice", "User:bob", "10.0.0.1"

names = st.sampled_from(["*", "a", "aa", "ab", "aab", "b", "*a"])
principals = st.sampled_from([ALICE, BOB, "User:*"])
hosts = st.sampled_from([HOST, "10.0.0.2", "*"])
operations = st.sampled_from([o for o in AclOperation if o not in (AclOperation.UNKNOWN, AclOperation.ANY)])
acls = st.builds(
    Acl,
    resource_type=st.sampled_from([TOPIC, GROUP]),
    resource_name=names,
    pattern_type=st.sampled_from([LITERAL, PREFIXED]),
    principal=principals,
    host=hosts,
    operation=operations,
    permission=st.sampled_from([ALLOW, ALLOW, DENY]),
)


def allow(name: str, operation: AclOperation, pattern: PatternType = LITERAL, principal: str = ALICE) -> Acl:
    return Acl(TOPIC, name, pattern, principal, "*", operation, ALLOW)


def deny(name: str, operation: AclOperation, pattern: PatternType = LITERAL, principal: str = ALICE) -> Acl:
    return Acl(TOPIC, name, pattern, principal, "*", operation, DENY)


def holding(*given: Acl) -> Acls:
    held = Acls()
    for number, acl in enumerate(given):
        held.put(Uuid(number.to_bytes(16, "big")), acl)
    return held


def authorizer(*given: Acl, by_default: bool = False) -> Authorizer:
    held = holding(*given)
    return Authorizer(["User:admin"], by_default, lambda: held)


def concerns(acl: Acl, kind: ResourceType, name: str) -> bool:
    if acl.resource_type != kind:
        return False
    if acl.pattern_type == PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def naive(given: list[Acl], principal: str, host: str, operation: AclOperation, name: str, by_default: bool) -> bool:
    """KIP-11 and KIP-290, said once more and without any index."""
    concerned = [acl for acl in given if concerns(acl, TOPIC, name)]
    if not concerned:
        return by_default
    mine = [acl for acl in concerned if acl.principal in (principal, "User:*") and acl.host in (host, "*")]
    if any(acl.permission == DENY and acl.operation in (operation, AclOperation.ALL) for acl in mine):
        return False
    enough = {operation, AclOperation.ALL}
    if operation == AclOperation.DESCRIBE:
        enough |= {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    if operation == AclOperation.DESCRIBE_CONFIGS:
        enough |= {AclOperation.ALTER_CONFIGS}
    return any(acl.permission == ALLOW and acl.operation in enough for acl in mine)


@settings(max_examples=80, deadline=None)
@given(st.lists(acls, max_size=12), principals, hosts, operations, names, st.booleans())
def test_decisions_are_those_of_a_naive_definition(
    given: list[Acl], principal: str, host: str, operation: AclOperation, name: str, by_default: bool
) -> None:
    decided = authorizer(*given, by_default=by_default).may(principal, host, operation, TOPIC, name)
    assert decided == naive(given, principal, host, operation, name, by_default)


def test_denying_outweighs_allowing_wherever_it_stands() -> None:
    asked = authorizer(allow("orders", AclOperation.ALL), deny("ord", AclOperation.WRITE, PREFIXED, "User:*"))
    assert asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "orders")
    assert not asked.may(ALICE, HOST, AclOperation.WRITE, TOPIC, "orders")


def test_denying_an_operation_denies_nothing_that_it_implies() -> None:
    asked = authorizer(allow("*", AclOperation.WRITE), deny("t", AclOperation.READ))
    assert asked.may(ALICE, HOST, AclOperation.DESCRIBE, TOPIC, "t")
    assert not asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t")


def test_a_super_user_may_do_what_is_denied_to_everybody() -> None:
    asked = authorizer(deny("*", AclOperation.ALL, principal="User:*"))
    assert asked.may("User:admin", HOST, AclOperation.WRITE, TOPIC, "t")
    assert not asked.may(ALICE, HOST, AclOperation.WRITE, TOPIC, "t")


def test_one_acl_on_a_resource_ends_the_default_for_everybody() -> None:
    asked = authorizer(allow("t", AclOperation.READ), by_default=True)
    assert not asked.may(BOB, HOST, AclOperation.READ, TOPIC, "t")
    assert asked.may(BOB, HOST, AclOperation.READ, TOPIC, "other")
    assert asked.may(BOB, HOST, AclOperation.READ, GROUP, "t")


def test_an_acl_on_every_name_is_on_names_that_begin_with_an_asterisk_too() -> None:
    asked = authorizer(Acl(GROUP, "*", LITERAL, "User:*", "*", AclOperation.READ, DENY), by_default=True)
    assert not asked.may(ALICE, HOST, AclOperation.READ, GROUP, "*a")


def test_decisions_end_with_the_acls_that_they_were_made_on() -> None:
    held = holding(allow("t", AclOperation.READ))
    asked = Authorizer([], False, lambda: held)
    assert asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t")
    held.put(Uuid(bytes(15) + b"\x07"), deny("t", AclOperation.READ))
    assert not asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t")
    held = holding()
    assert not asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t")
    held = holding(allow("t", AclOperation.READ))
    assert asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t"), "of an image that a snapshot replaced"


def test_a_decision_looks_at_no_acl_of_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request names a hundred thousand topics, and each of ten thousand users has an ACL on all of them."""
    others = [allow("*", AclOperation.READ, principal=f"User:{number}") for number in range(100)]
    others += [allow("t", AclOperation.READ, PREFIXED, f"User:{number}") for number in range(100)]
    asked = authorizer(*others, allow("*", AclOperation.READ), deny("t2", AclOperation.ALL, PREFIXED, "User:*"))
    looked_at: list[Acl] = []

    def recorded(acls: Iterable[Acl], *rest: Any) -> bool:
        looked_at.extend(found := list(acls))
        return decide(found, *rest)

    monkeypatch.setattr(authorizer_module, "decide", recorded)
    assert asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t1")
    assert not asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t2")
    assert len(looked_at) == 3


@pytest.mark.parametrize("name", ["t" * 249, "t" * 30_000])
def test_a_long_name_is_a_name(name: str) -> None:
    asked = authorizer(allow(name[:-1], AclOperation.READ, PREFIXED), deny(name, AclOperation.WRITE))
    assert asked.may(ALICE, HOST, AclOperation.READ, TOPIC, name)
    assert not asked.may(ALICE, HOST, AclOperation.WRITE, TOPIC, name)
    assert not asked.may(ALICE, HOST, AclOperation.READ, TOPIC, name[:-2])


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    asked = authorizer(allow("t", AclOperation.READ))
    for number in range(DECISIONS_MAX + 10):
        asked.may(ALICE, HOST, AclOperation.READ, TOPIC, f"name-{number}")
    assert len(asked._decisions) <= DECISIONS_MAX
    before = len(asked._decisions)
    assert asked.may(ALICE, HOST, AclOperation.READ, TOPIC, "t" * 30_000) is False
    assert len(asked._decisions) == before


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], False),
        ([allow("t", AclOperation.WRITE)], True),
        ([allow("t", AclOperation.READ)], False),
        ([allow("t", AclOperation.WRITE), deny("t", AclOperation.WRITE)], False),
        ([allow("tt", AclOperation.WRITE), deny("t", AclOperation.WRITE)], True),
        ([allow("tt", AclOperation.WRITE), deny("t", AclOperation.WRITE, PREFIXED)], False),
        ([allow("t", AclOperation.WRITE, PREFIXED), deny("t", AclOperation.WRITE)], True),
        ([allow("t", AclOperation.WRITE), deny("*", AclOperation.ALL)], False),
        ([allow("*", AclOperation.WRITE), deny("t", AclOperation.WRITE, PREFIXED)], True),
    ],
)
def test_whether_any_topic_may_be_written_to(given: list[Acl], expected: bool) -> None:
    assert authorizer(*given).may_any(ALICE, HOST, AclOperation.WRITE, TOPIC) is expected


def test_all_operations_of_a_resource_in_one_bit_field() -> None:
    asked = authorizer(allow("t", AclOperation.READ), allow("t", AclOperation.ALTER_CONFIGS))
    assert asked.operations(ALICE, HOST, TOPIC, "t") == 1 << 3 | 1 << 8 | 1 << 10 | 1 << 11
    assert asked.operations(BOB, HOST, TOPIC, "t") == 0
