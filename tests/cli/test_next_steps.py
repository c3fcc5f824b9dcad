"""An error of the cluster ends in what to do about it."""

from __future__ import annotations

import re
import shlex

from cli.conftest import Heirlog

from heirlog.cli.next_steps import NEXT_STEPS, with_next_step
from heirlog.protocol.errors import ErrorCode


def test_a_step_follows_the_sentence_and_where_there_is_none_nothing_does() -> None:
    received = with_next_step("cannot alter topic t: INVALID_CONFIG, no such name.", ErrorCode.INVALID_CONFIG)
    assert received.startswith("cannot alter topic t: INVALID_CONFIG, no such name; heirlog configs describe")
    assert with_next_step("a sentence.", ErrorCode.UNKNOWN_SERVER_ERROR) == "a sentence."
    excess = "cannot create topic t: POLICY_VIOLATION, too many partitions; add the others later."
    assert with_next_step(excess, ErrorCode.POLICY_VIOLATION) == excess, "its message says which policy, and what to do"


def test_a_configuration_that_does_not_exist_is_answered_with_the_one_that_is_like_it() -> None:
    for said, code, meant in (
        ("topic config name: retention.m", ErrorCode.INVALID_CONFIG, "did you mean retention.ms?"),
        ("broker config name: log.retention.hour", ErrorCode.INVALID_REQUEST, "did you mean log.retention.hours?"),
        (
            "group config name: share.auto.ofset.reset.",
            ErrorCode.INVALID_CONFIG,
            "did you mean share.auto.offset.reset?",
        ),
    ):
        answer = f"cannot alter it: {code.name}, Unknown {said}"
        assert with_next_step(answer, code) == f"{answer.rstrip('.')}; {meant}"
    unlike = with_next_step("INVALID_CONFIG, Unknown topic config name: xyz", ErrorCode.INVALID_CONFIG)
    assert unlike.endswith("shows names and values")


def test_a_configuration_that_only_a_start_reads_is_answered_with_what_can_be_changed() -> None:
    for name, step in (
        ("log.retention.hours", "log.retention.ms can change while a node runs"),
        ("log.roll.hours", "log.roll.ms can change while a node runs"),
        ("num.partitions", "set it in server.properties, and restart the node"),
    ):
        said = f"cannot alter brokers 1: INVALID_REQUEST, Cannot update these configs dynamically: {name}"
        assert with_next_step(said, ErrorCode.INVALID_REQUEST) == f"{said}; {step}"


def test_a_record_without_key_is_answered_with_how_to_give_it_one() -> None:
    refused = "transactional id t: foo-1 refused 69 bytes: a record without key in a topic with cleanup.policy=compact"
    answer = with_next_step(f"{refused}; abort the transaction", ErrorCode.INVALID_RECORD)
    assert answer.startswith(f"{refused}; each record there needs a key: produce has --key")


def test_every_command_that_is_named_is_there(heirlog: Heirlog) -> None:
    named = {command for step in NEXT_STEPS.values() for command in re.findall(r"heirlog ([a-z-]+(?: [a-z-]+)*)", step)}
    assert len(named) > 8
    for command in sorted(named):
        words = shlex.split(command)
        options = [word for word in words if word.startswith("--")]
        known = [word for word in words if not word.startswith("--")]
        # behind the command the sentence goes on
        found = next(
            (
                help_.out
                for size in (2, 1)
                if (help_ := heirlog(*known[:size], "--help")).code == 0
                and f"heirlog {' '.join(known[:size])}" in help_.out
            ),
            "",
        )
        assert found, f"heirlog {command}"
        assert all(option in found for option in options), f"heirlog {command}"
