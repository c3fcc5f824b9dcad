from __future__ import annotations

import pytest

from heirlog.protocol.types import Uuid
from heirlog.storage.directory_names import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    free_name,
    parse_deleted_name,
    parse_directory_name,
    stray_partition,
)

TOPIC_ID = Uuid(bytes(range(16)))


def name_of(topic: str, partition: int, suffix: str, *used: str) -> str:
    return free_name((topic, partition), TOPIC_ID, suffix, lambda name: name in used)


def test_directory_names_are_parsed_from_the_last_dash() -> None:
    assert parse_directory_name("a-b-12") == ("a-b", 12)
    assert parse_directory_name("a") is parse_directory_name("-1") is parse_directory_name("a-x") is None


@pytest.mark.parametrize("topic", ["t", "with-dashes.and.dots"])
def test_a_name_says_whose_log_it_was(topic: str) -> None:
    assert parse_deleted_name(name_of(topic, 7, DELETE_SUFFIX)) == ((topic, 7), False)
    assert stray_partition(name_of(topic, 7, STRAY_SUFFIX)) == 7


@pytest.mark.parametrize("suffix", [DELETE_SUFFIX, STRAY_SUFFIX])
def test_no_such_name_is_taken_for_that_of_a_log(suffix: str) -> None:
    assert parse_directory_name(name_of("t", 7, suffix)) is None


def test_other_names_are_neither_deleted_nor_set_aside() -> None:
    for name in ("t-7", "t-7.0123-future", "lost+found", name_of("t", 7, STRAY_SUFFIX)):
        assert parse_deleted_name(name) is None
    for name in ("t-7", "t-7-stray", "t-7.0123-stray", name_of("t", 7, DELETE_SUFFIX)):
        assert stray_partition(name) is None


def test_a_name_that_is_used_is_not_given_again() -> None:
    first = name_of("t", 0, DELETE_SUFFIX)
    second = name_of("t", 0, DELETE_SUFFIX, first)
    third = name_of("t", 0, DELETE_SUFFIX, first, second)
    assert len({first, second, third}) == 3
    assert name_of("t", 0, DELETE_SUFFIX) == first, "the same log gets the same name: a seed can be replayed"


def test_a_long_topic_name_is_shortened_and_the_name_says_so() -> None:
    name = name_of("t" * 249, 7, DELETE_SUFFIX)
    deleted = parse_deleted_name(name)
    assert len(name) == 255 and deleted is not None
    (topic, partition), is_cut = deleted
    assert set(topic) == {"t"} and len(topic) < 249 and (partition, is_cut) == (7, True)
