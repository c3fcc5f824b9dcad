"""What the options of `heirlog acls` name, before a cluster is asked."""

from __future__ import annotations

import pytest
from cli.conftest import Heirlog

from heirlog.cli.acls import Entries, Operations, Resources
from heirlog.cli.errors import UsageError
from heirlog.metadata.acls import AclPermissionType, PatternType, ResourceType

ALICE = ("--allow-principal", "User:alice")


def test_resources_are_one_per_name_by_kind() -> None:
    assert list(Resources()) == []
    assert list(Resources(topics=["a", "b"], cluster=True, users=["User:u"])) == [
        (ResourceType.TOPIC, "a"),
        (ResourceType.TOPIC, "b"),
        (ResourceType.CLUSTER, "kafka-cluster"),
        (ResourceType.USER, "User:u"),
    ]


def test_a_pattern_type_is_read_in_any_case_and_another_word_is_refused() -> None:
    assert Resources().pattern is PatternType.LITERAL
    assert Resources(pattern_type="Prefixed").pattern is PatternType.PREFIXED
    with pytest.raises(UsageError, match="any, literal, match, prefixed"):
        _ = Resources(pattern_type="unknown").pattern


def test_entries_are_all_principals_with_all_hosts_of_their_permission() -> None:
    entries = Entries(allowed=["User:a", "User:b"], denied=["User:c"], denied_hosts=["10.0.0.1", "10.0.0.2"])
    assert list(entries) == [
        (AclPermissionType.ALLOW, "User:a", "*"),
        (AclPermissionType.ALLOW, "User:b", "*"),
        (AclPermissionType.DENY, "User:c", "10.0.0.1"),
        (AclPermissionType.DENY, "User:c", "10.0.0.2"),
    ]


def test_a_principal_without_a_type_is_refused() -> None:
    with pytest.raises(UsageError, match="User:alice"):
        list(Entries(allowed=["alice"]))


def test_operations_are_given_by_name_or_in_a_short_form() -> None:
    assert not Operations().are_given
    assert not Operations(idempotent=True).are_given, "it only adds to --producer"
    assert Operations(named=["Read"]).are_given
    assert Operations(producer=True).are_given
    assert Operations(consumer=True).are_given


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "--topic", "t"], "name one with --allow-principal"),
        (["add", *ALICE], "name the resources"),
        (["add", *ALICE, "--topic", "t", "--resource-pattern-type", "any"], "to add them: literal, prefixed"),
        (["add", *ALICE, "--topic", "t", "--producer", "--operation", "Read"], "remove --operation"),
        (["add", *ALICE, "--topic", "t", "--consumer"], "--consumer needs --topic and --group"),
        (["add", *ALICE, "--group", "g", "--operation", "Write"], "--operation Write"),
        (["remove", *ALICE], "name the resources"),
        (["remove", "--topic", "t", "--operation", "Read"], "name the principal whose ACLs to remove"),
        (["list", "--topic", "t", "--resource-pattern-type", "some"], "--resource-pattern-type some"),
    ],
)
def test_misuse_is_refused_before_a_cluster_is_asked(heirlog: Heirlog, arguments: list[str], sentence: str) -> None:
    outcome = heirlog("acls", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
