"""What a running broker can be changed to, seen from the one that is asked. The answers are those of Kafka 4.2."""

from __future__ import annotations

import pytest

from heirlog.metadata.config_def import parse_static
from heirlog.metadata.dynamic_changes import POOLS, reason_against
from heirlog.metadata.image import BROKER_RESOURCE, Image

STATIC = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "100@localhost:9093",
}
IO = "num.io.threads"


def refused(
    name: str, value: str | None, broker: str = "", stored: dict[str, str] | None = None, given: str | None = None
) -> str | None:
    """stored: of which resource ("": of all brokers) which value. given: in this broker's file."""
    image = Image()
    for owner, old in (stored or {}).items():
        image.set_config(BROKER_RESOURCE, owner, name, old)
    static = parse_static(STATIC if given is None else {**STATIC, name: given})
    return reason_against(image, static, broker, {name: value})


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        ("8", "4", None),
        ("8", "16", None),
        ("8", "8", None),
        ("8", "3", "half the current value 8"),
        ("8", "17", "double the current value 8"),
        ("5", "2", None),
        ("5", "1", "half the current value 5"),
        ("1", "2", None),
        ("1", "3", "double the current value 1"),
        ("8", "x", None),
    ],
)
def test_a_number_goes_to_between_a_half_and_the_double(name: str, now: str, then: str, said: str | None) -> None:
    reason = refused(name, then, given=now)
    assert reason is None if said is None else reason is not None and reason.endswith(said)


def test_what_no_thread_can_do_without_is_said_where_no_limit_of_the_type_says_it() -> None:
    assert refused("num.replica.fetchers", "0") == (
        "Dynamic thread count update validation failed for num.replica.fetchers=0, value should be at least 1"
    )
    assert refused("log.cleaner.threads", "0") == "Log cleaner threads should be at least 1"


def test_the_value_that_counts_here_is_compared_with_the_one_that_would() -> None:
    assert refused(IO, "17", stored={"": "12"}) is None
    assert refused(IO, "25", stored={"": "12"}) is not None
    assert refused(IO, "100", stored={"1": "8"}) is None, "this broker's own value goes before that of all"
    assert refused(IO, "100", broker="1", stored={"1": "8"}) is not None
    assert refused(IO, "16", broker="1", stored={"": "32"}) is None
    assert refused(IO, "15", broker="1", stored={"": "32"}) is not None


def test_a_deletion_is_a_change_to_what_counts_then() -> None:
    assert refused(IO, None, stored={"": "16"}) is None
    assert refused(IO, None, stored={"": "32"}) == (
        "Dynamic thread count update validation failed for num.io.threads=8, "
        "value should be at least half the current value 32"
    )
    assert refused(IO, None, broker="1", stored={"1": "32", "": "20"}) is None


@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
def test_nobody_locks_everybody_out(name: str) -> None:
    assert refused(name, "0") == f"Invalid {name} 0: no client could connect any more; it must be at least 1"
    assert refused(name, "1", given="1000") is None
    assert refused(name, "x") is None, "the controller says what that is"


def together(changes: dict[str, str | None], **given: str) -> str | None:
    static = parse_static({**STATIC, **{name.replace("_", "."): value for name, value in given.items()}})
    return reason_against(Image(), static, "", changes)


def test_no_address_may_connect_only_where_one_has_a_number_of_its_own() -> None:
    per_ip, overrides = "max.connections.per.ip", "max.connections.per.ip.overrides"
    wrong = f"{per_ip} can be set to zero only if {overrides} property is set."
    assert together({per_ip: "0"}) == wrong
    assert together({per_ip: "0", overrides: "127.0.0.1:5"}) is None
    assert together({per_ip: "0"}, max_connections_per_ip_overrides="127.0.0.1:5") is None
    assert together({overrides: None}) is None


def test_each_thread_of_the_cleaner_has_room() -> None:
    wrong = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    assert together({"log.cleaner.dedupe.buffer.size": "1048576"}) == wrong
    assert together({"log.cleaner.dedupe.buffer.size": "1048577"}) is None
    assert together({"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "2000000"}) == wrong
    assert together({"log.cleaner.dedupe.buffer.size": "-1"}) == wrong
    assert together({"log.cleaner.dedupe.buffer.size": "1048577"}, log_cleaner_threads="0") is None


def test_what_stays_local_is_no_more_than_what_is_kept() -> None:
    assert together({"log.retention.ms": "0"}) == (
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    )
    assert together({"log.local.retention.ms": "5", "log.retention.ms": "3"}) == (
        "Invalid value 5 for configuration log.local.retention.ms: "
        "Value must not be more than log.retention.ms property value: 3"
    )
    unlimited = together({"log.local.retention.ms": "-1"})
    assert unlimited is not None and unlimited.endswith("-1 as log.retention.ms value is set as 604800000.")
    assert together({"log.local.retention.ms": "604800000"}) is None
    assert together({"log.local.retention.ms": "604800001"}) is not None
    assert together({"log.local.retention.ms": "9", "log.retention.ms": "-1"}) is None
    assert together({"log.local.retention.ms": "-2"}) is None
    assert together({"log.local.retention.bytes": "9"}) is None
    assert together({"log.local.retention.bytes": "9"}, log_retention_bytes="8") is not None


def test_a_listener_that_would_let_nobody_in_is_refused_by_its_own_broker() -> None:
    name = "listener.name.plaintext.max.connections"
    assert "no client could connect any more" in (refused(name, "0") or "")
    assert refused(name, "1") is None and refused(name, None) is None
    assert refused("listener.name.of_others.max.connections", "0") is None
