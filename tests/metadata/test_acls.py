"""ACLs in an image: what concerns a name, what a filter means, and records that come, go, are undone and snapshot."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.metadata.acls import Acl, AclFilter, AclOperation, AclPermissionType, Acls, PatternType, ResourceType
from heirlog.metadata.apply import UnsupportedRecord, apply_all, image_of_snapshot
from heirlog.metadata.image import Image
from heirlog.protocol.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from heirlog.protocol.types import Uuid

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW = AclPermissionType.ALLOW
ALICE, BOB = "User:alice", "User:bob"
ONE, TWO = b"1" * 16, b"2" * 16


def acl_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def on(name: str, pattern: PatternType, kind: ResourceType = TOPIC) -> Acl:
    return Acl(kind, name, pattern, ALICE, "*", AclOperation.READ, ALLOW)


def concerns(acl: Acl, name: str) -> bool:
    if acl.resource_type != TOPIC:
        return False
    if acl.pattern_type == PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


names = st.sampled_from(["*", "a", "aa", "ab", "aab", "b", "*a"])
acls = st.builds(on, names, st.sampled_from([LITERAL, PREFIXED]), st.sampled_from([TOPIC, GROUP]))


@settings(max_examples=30, deadline=None)
@given(st.lists(acls, max_size=12), st.sets(st.integers(0, 11)), names)
def test_what_concerns_a_name_is_found_after_any_additions_and_removals(
    given: list[Acl], removed: set[int], name: str
) -> None:
    held = Acls()
    for number, acl in enumerate(given):
        held.put(acl_id(number), acl)
    for number in sorted(removed & set(range(len(given)))):
        held.put(acl_id(number), None)
    left = [acl for number, acl in enumerate(given) if number not in removed]
    found = sorted(map(repr, held.matching_resource(TOPIC, name)))
    assert found == sorted(repr(acl) for acl in left if concerns(acl, name))


filters = st.builds(
    AclFilter,
    resource_type=st.sampled_from([ResourceType.ANY, TOPIC, GROUP]),
    resource_name=st.none() | names,
    pattern_type=st.sampled_from([PatternType.ANY, PatternType.MATCH, LITERAL, PREFIXED]),
    principal=st.sampled_from([None, ALICE, BOB, "User:carol"]),
    host=st.none(),
    operation=st.just(AclOperation.ANY),
    permission=st.just(AclPermissionType.ANY),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(replace, acls, principal=st.sampled_from([ALICE, BOB])), max_size=12), filters)
def test_a_filter_finds_what_it_matches_whether_it_names_a_resource_or_not(given: list[Acl], wanted: AclFilter) -> None:
    held = Acls()
    for number, acl in enumerate(given):
        held.put(acl_id(number), acl)
    found = sorted(held.matching(wanted))
    assert found == [(acl_id(number), acl) for number, acl in enumerate(given) if wanted.matches(acl)]


def record(record_id: bytes, name: str = "t", operation: int = AclOperation.READ) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=record_id,
        resource_type=TOPIC,
        resource_name=name,
        pattern_type=LITERAL,
        principal=ALICE,
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


def image_of(*records: object) -> Image:
    image = Image()
    apply_all(image, records, 0, 1)
    return image


def test_records_put_acls_into_the_image_and_take_them_out() -> None:
    image = image_of(record(ONE), record(TWO, "u"), RemoveAccessControlEntryRecord(id=ONE))
    assert image.acls.by_id == {TWO: on("u", LITERAL)}


def test_a_journal_puts_back_what_records_changed_and_nothing_decided_since_counts() -> None:
    image = image_of(record(ONE))
    before, version = dict(image.acls.by_id), image.acls.version
    journal = image.journal()
    apply_all(image, [record(TWO), RemoveAccessControlEntryRecord(id=ONE)], 1, 1, journal)
    assert not journal.is_empty
    image.undo(journal)
    assert image == image_of(record(ONE))
    assert image.acls.by_id == before and image.acls.version > version


def test_a_snapshot_keeps_every_acl_also_with_numbers_from_a_newer_version() -> None:
    image = image_of(record(TWO, operation=99), record(ONE))
    assert list(image.records()) == [record(ONE), record(TWO, operation=99)]
    assert image_of_snapshot(image.records(), 1, 1) == image
    assert AclOperation(99) is AclOperation.UNKNOWN


def test_an_acl_that_comes_twice_or_goes_without_having_been_there_is_a_wrong_cluster() -> None:
    with pytest.raises(UnsupportedRecord):
        image_of(record(ONE), record(ONE))
    with pytest.raises(UnsupportedRecord):
        image_of(RemoveAccessControlEntryRecord(id=ONE))


ANY = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)


def test_filters_mean_everything_that_they_do_not_name() -> None:
    given = [
        Acl(kind, name, pattern, principal, "*", AclOperation.READ, ALLOW)
        for kind, name, pattern, principal in product([TOPIC, GROUP], ["a", "*"], [LITERAL, PREFIXED], [ALICE, BOB])
    ]
    assert [acl for acl in given if ANY.matches(acl)] == given
    some = AclFilter(TOPIC, "a", LITERAL, ALICE, "*", AclOperation.READ, ALLOW)
    assert [acl for acl in given if some.matches(acl)] == [given[0]]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (PatternType.MATCH, {("ab", 3), ("*", 3), ("a", 4), ("ab", 4)}),
        (PatternType.ANY, {("ab", 3), ("ab", 4)}),
        (LITERAL, {("ab", 3)}),
        (PREFIXED, {("ab", 4)}),
    ],
)
def test_a_filter_with_a_name_matches_by_its_pattern_type(pattern: PatternType, expected: set[tuple[str, int]]) -> None:
    given = [
        Acl(TOPIC, name, kind, ALICE, "*", AclOperation.READ, ALLOW)
        for name, kind in product(["a", "ab", "b", "*"], [LITERAL, PREFIXED])
    ]
    wanted = AclFilter(TOPIC, "ab", pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)
    assert {(acl.resource_name, acl.pattern_type) for acl in given if wanted.matches(acl)} == expected
