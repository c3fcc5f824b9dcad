from __future__ import annotations

import pytest

from heirlog.broker.groups.consumer.regular_expressions import (
    PATTERN_MAX_CHARACTERS,
    WORK_AT_A_TIME,
    compiled,
    matches,
)
from heirlog.metadata.survey import at_once
from heirlog.protocol.errors import ErrorCode, KafkaError

TOPICS = ["orders", "orders-eu", "pay", "__consumer_offsets"]


def test_the_complete_name_matches_and_internal_topics_are_names_too() -> None:
    found = at_once(matches(["orders.*", "pa", "(?:pay)|(?:x)", "__.*"], TOPICS, None))
    assert found == {
        "orders.*": {"orders", "orders-eu"},
        "pa": frozenset(),
        "(?:pay)|(?:x)": {"pay"},
        "__.*": {"__consumer_offsets"},
    }


def test_topics_that_the_client_must_not_describe_are_left_out() -> None:
    assert at_once(matches([".*"], TOPICS, lambda name: name != "pay")) == {".*": {"pay"}}


@pytest.mark.parametrize(
    "regex",
    ["(", "(?=look)ahead", r"(a)\1", "((a{100}){100}){100}", r"\p{L}{1000}", "a" * (PATTERN_MAX_CHARACTERS + 1)],
)
def test_what_re2_cannot_do_within_its_bounds_is_refused(regex: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        compiled(regex)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_expression_that_another_coordinator_accepted_matches_nothing() -> None:
    assert at_once(matches(["(?=x)x"], ["x"], None)) == {"(?=x)x": frozenset()}


def test_a_pattern_that_takes_other_engines_for_ever_does_not() -> None:
    assert at_once(matches(["(x+x+)+y"], ["x" * 249], None)) == {"(x+x+)+y": frozenset()}


def test_many_topics_are_matched_in_steps() -> None:
    assert sum(1 for _ in matches(["a.*"], (f"a{each}" for each in range(2000)), None)) >= 7


def test_an_expression_that_takes_long_for_each_topic_is_matched_in_many_steps() -> None:
    costly, names = "(.{0,50}a)" * 60, ["a" * 249, "b" * 249, "topic"]
    work = compiled(costly).programsize * sum(map(len, names))
    assert work > 5 * WORK_AT_A_TIME, "RE2 needs milliseconds for a name of 249 letters"
    assert sum(1 for _ in matches([costly], names, None)) > work // WORK_AT_A_TIME


def test_groups_of_an_expression_are_not_kept() -> None:
    """Each of them would take time at each letter of each name."""
    many = "(a*)*" * 1600
    assert compiled(many).groups == 0
    assert at_once(matches([many, "(?P<name>a)b"], ["a" * 249, "ab"], None)) == {
        many: {"a" * 249},
        "(?P<name>a)b": {"ab"},
    }
