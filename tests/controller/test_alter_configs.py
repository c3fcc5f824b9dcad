"""AlterConfigs and IncrementalAlterConfigs: operations, refusals, and what they write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from controller.cluster import create, leading
from controller.fakes import Harness
from controller.registering import register_controller

from heirlog.controller.alter_configs import AlterConfigOpType, check_keys
from heirlog.metadata.apply import apply_all
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import AlterConfigsRequest, IncrementalAlterConfigsRequest
from heirlog.protocol.records import ClearElrRecord, ConfigRecord

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType


def increments(
    *resources: tuple[int, str, list[tuple[str, int, str | None]]], **more: Any
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=op, value=value)
                    for key, op, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        **more,
    )


def replacement(kind: int, name: str, values: Mapping[str, str | None], **more: Any) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=[
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in values.items()],
            )
        ],
        **more,
    )


def incremental(harness: Harness, kind: int, name: str, *changes: tuple[str, int, str | None], **more: Any) -> Any:
    (result,) = harness.ask("incremental_alter_configs", increments((kind, name, list(changes)), **more)).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def replace(harness: Harness, kind: int, name: str, values: Mapping[str, str | None], **more: Any) -> Any:
    (result,) = harness.ask("alter_configs", replacement(kind, name, values, **more)).responses
    return result


def stored(harness: Harness, kind: int = TOPIC, name: str = "foo") -> Mapping[str, str]:
    return harness.controller.image.configs.get((kind, name), {})


@pytest.fixture
def harness() -> Harness:
    harness = leading()
    create(harness, retention_ms="1000")
    return harness


def written(harness: Harness, since: int) -> list[Any]:
    return [record for batch in harness.quorum.log[since:] for record in batch.records]


def test_numbers_of_what_is_not_there_are_kept(harness: Harness) -> None:
    change = ("sasl.kerberos.min.time.before.relogin", SET, "58000")
    assert incremental(harness, BROKER, "1", change).error_code == ErrorCode.NONE
    assert stored(harness, BROKER, "1") == {"sasl.kerberos.min.time.before.relogin": "58000"}


def test_a_group_that_is_not_there_keeps_configurations(harness: Harness) -> None:
    assert incremental(harness, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")).error_code == ErrorCode.NONE
    assert replace(harness, GROUP, "h", {"share.auto.offset.reset": "by_duration:PT1H"}).error_code == ErrorCode.NONE
    assert stored(harness, GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    assert stored(harness, GROUP, "h") == {"share.auto.offset.reset": "by_duration:PT1H"}
    incremental(harness, GROUP, "g", ("consumer.session.timeout.ms", DELETE, None))
    assert stored(harness, GROUP, "g") == {}


def test_what_an_incremental_request_does_not_name_stays(harness: Harness) -> None:
    assert incremental(harness, TOPIC, "foo", ("segment.ms", SET, "5000")).error_code == ErrorCode.NONE
    assert stored(harness) == {"retention.ms": "1000", "segment.ms": "5000"}
    incremental(harness, TOPIC, "foo", ("retention.ms", DELETE, None), ("flush.ms", SET, "7"))
    assert stored(harness) == {"segment.ms": "5000", "flush.ms": "7"}


def test_what_a_replacing_request_does_not_name_is_deleted(harness: Harness) -> None:
    assert replace(harness, TOPIC, "foo", {"segment.ms": "5000"}).error_code == ErrorCode.NONE
    assert stored(harness) == {"segment.ms": "5000"}
    replace(harness, TOPIC, "foo", {})
    assert stored(harness) == {}


def test_lists_grow_and_shrink_by_members(harness: Harness) -> None:
    key = "leader.replication.throttled.replicas"
    incremental(harness, TOPIC, "foo", (key, APPEND, "0:1,1:2"))
    incremental(harness, TOPIC, "foo", (key, APPEND, "1:2,2:3"))
    assert stored(harness)[key] == "0:1,1:2,2:3"
    incremental(harness, TOPIC, "foo", (key, SUBTRACT, "1:2,9:9"))
    assert stored(harness)[key] == "0:1,2:3"


def test_a_list_that_is_not_stored_begins_at_its_default(harness: Harness) -> None:
    incremental(harness, TOPIC, "foo", ("cleanup.policy", APPEND, "delete"))
    assert stored(harness)["cleanup.policy"] == "delete"


def test_a_repeated_value_writes_nothing(harness: Harness) -> None:
    before = len(harness.quorum.log)
    assert incremental(harness, TOPIC, "foo", ("retention.ms", SET, "1000")).error_code == ErrorCode.NONE
    assert replace(harness, TOPIC, "foo", {"retention.ms": "1000"}).error_code == ErrorCode.NONE
    assert incremental(harness, TOPIC, "foo", ("segment.ms", DELETE, None)).error_code == ErrorCode.NONE
    assert written(harness, before) == []


def test_validate_only_checks_and_writes_nothing(harness: Harness) -> None:
    before = len(harness.quorum.log)
    good = incremental(harness, TOPIC, "foo", ("segment.ms", SET, "5000"), validate_only=True)
    bad = incremental(harness, TOPIC, "foo", ("segment.ms", SET, "-5"), validate_only=True)
    replaced = replace(harness, TOPIC, "foo", {}, validate_only=True)
    codes = [good.error_code, bad.error_code, replaced.error_code]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert written(harness, before) == []


@pytest.mark.parametrize(
    ("kind", "name", "change", "code", "sentence"),
    [
        (TOPIC, "foo", ("no.such.thing", SET, "1"), "INVALID_CONFIG", "Unknown topic config name: no.such.thing"),
        (TOPIC, "foo", ("retention.ms", SET, "soon"), "INVALID_CONFIG", "Invalid value soon for configuration"),
        (TOPIC, "foo", ("retention.ms", SET, "-2"), "INVALID_CONFIG", "at least -1"),
        (TOPIC, "foo", ("retention.ms", APPEND, None), "INVALID_REQUEST", "Null value not supported"),
        (TOPIC, "foo", ("retention.ms", APPEND, "1"), "INVALID_CONFIG", "Can't APPEND to key retention.ms"),
        (TOPIC, "foo", ("no.such.thing", SUBTRACT, "1"), "INVALID_CONFIG", "Can't SUBTRACT to key no.such.thing"),
        (TOPIC, "foo", ("cleanup.policy", APPEND, "burn"), "INVALID_CONFIG", "expected one of"),
        (TOPIC, "foo", ("retention.ms", 7, "1"), "INVALID_REQUEST", "Unknown config operation 7"),
        (TOPIC, "foo", ("leader.replication.throttled.replicas", SET, "0"), "INVALID_CONFIG", "literal '*'"),
        (TOPIC, "nowhere", ("retention.ms", SET, "1"), "UNKNOWN_TOPIC_OR_PARTITION", "'nowhere' does not exist"),
        (TOPIC, "", ("retention.ms", SET, "1"), "INVALID_REQUEST", "Default topic resources"),
        (TOPIC, "no good", ("retention.ms", SET, "1"), "INVALID_TOPIC_EXCEPTION", ""),
        (BROKER, "1", ("log.dirs", SET, "/x"), "INVALID_REQUEST", "Cannot update these configs dynamically: log.dirs"),
        (BROKER, "", ("node.id", SET, "7"), "INVALID_REQUEST", "Cannot update these configs dynamically: node.id"),
        (BROKER, "1", ("no.such.thing", SET, "1"), "INVALID_REQUEST", "Unknown broker config name"),
        (BROKER, "1", ("log.retention.ms", SET, "soon"), "INVALID_REQUEST", "Invalid value soon"),
        (BROKER, "9", ("log.retention.ms", SET, "1"), "BROKER_ID_NOT_REGISTERED", "No node with id 9"),
        (BROKER, "9", ("min.insync.replicas", SET, "1"), "INVALID_CONFIG", "cannot be altered while ELR is enabled"),
        (BROKER, "01", ("log.retention.ms", SET, "1"), "INVALID_REQUEST", "Invalid broker name 01"),
        (BROKER, "x", ("log.retention.ms", SET, "1"), "INVALID_REQUEST", "Invalid broker name x"),
        (BROKER, "", ("sasl.kerberos.min.time.before.relogin", SET, "1"), "INVALID_REQUEST", "default cluster level"),
        (
            BROKER,
            "1",
            ("ssl.key.password", SET, "secret"),
            "INVALID_REQUEST",
            "can be dynamically updated only per-listener using the listener prefix",
        ),
        *(
            (BROKER, "1", (f"listener.name.ext.{name}", SET, value), "INVALID_REQUEST", "Change the file and restart")
            for name, value in (
                ("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"),
                ("ssl.client.auth", "required"),
                ("scram-sha-256.sasl.jaas.config", "x"),
                ("connections.max.reauth.ms", "1000"),
            )
        ),
        (BROKER, "1", ("listener.name.ext.no.such", SET, "1"), "INVALID_REQUEST", "Unknown broker config name"),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "45000"), "INVALID_REQUEST", "Default group resources"),
        (GROUP, "g", ("no.such.thing", SET, "1"), "INVALID_CONFIG", "Unknown group config name: no.such.thing"),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "44999"),
            "INVALID_CONFIG",
            "greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (8, "1", ("root", SET, "DEBUG"), "INVALID_REQUEST", "Unexpected broker id"),
        (99, "1", ("x", SET, "y"), "UNSUPPORTED_VERSION", "resource type 99"),
    ],
)
def test_what_is_refused(
    harness: Harness, kind: int, name: str, change: tuple[str, int, str | None], code: str, sentence: str
) -> None:
    before = len(harness.quorum.log)
    result = incremental(harness, kind, name, change)
    assert ErrorCode(result.error_code).name == code
    assert sentence in result.error_message
    assert written(harness, before) == []


def test_a_bad_value_among_good_ones_refuses_the_resource_and_not_the_next(harness: Harness) -> None:
    create(harness, "bar")
    request = increments(
        (TOPIC, "foo", [("segment.ms", SET, "5000"), ("flush.ms", SET, "never")]),
        (TOPIC, "bar", [("flush.ms", SET, "9")]),
    )
    results = harness.ask("incremental_alter_configs", request).responses
    assert [ErrorCode(result.error_code).name for result in results] == ["INVALID_CONFIG", "NONE"]
    assert stored(harness) == {"retention.ms": "1000"}
    assert stored(harness, name="bar") == {"flush.ms": "9"}


def test_lags_that_contradict_each_other_are_refused_also_where_one_of_them_is_stored(harness: Harness) -> None:
    both = (("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "9"))
    result = incremental(harness, TOPIC, "foo", *both)
    assert ErrorCode(result.error_code) is ErrorCode.INVALID_CONFIG
    assert "min.compaction.lag.ms (10) > max.compaction.lag.ms (9)" in result.error_message
    assert incremental(harness, TOPIC, "foo", both[0]).error_code == ErrorCode.NONE
    assert incremental(harness, TOPIC, "foo", both[1]).error_code == ErrorCode.INVALID_CONFIG
    replacing = incremental(harness, TOPIC, "foo", ("min.compaction.lag.ms", DELETE, None), both[1])
    assert replacing.error_code == ErrorCode.NONE
    assert ErrorCode(
        create(harness, "bar", **{"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}).error_code
    ) is (ErrorCode.INVALID_CONFIG)


def test_a_resource_given_twice_is_refused_once(harness: Harness) -> None:
    twice = increments((TOPIC, "foo", [("flush.ms", SET, "1")]), (TOPIC, "foo", [("flush.ms", SET, "2")]))
    (result,) = harness.ask("incremental_alter_configs", twice).responses
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == "Each resource must appear at most once."
    assert stored(harness) == {"retention.ms": "1000"}


def test_an_unknown_resource_type_is_unsupported_also_where_it_comes_twice(harness: Harness) -> None:
    twice = increments((99, "x", [("a", SET, "1")]), (99, "x", [("a", SET, "1")]))
    (result,) = harness.ask("incremental_alter_configs", twice).responses
    assert result.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_of_a_key_given_twice_the_last_counts_and_null_deletes(harness: Harness) -> None:
    assert incremental(harness, TOPIC, "foo", ("flush.ms", SET, "1"), ("flush.ms", SET, "2")).error_code == 0
    assert stored(harness)["flush.ms"] == "2"
    assert incremental(harness, TOPIC, "foo", ("flush.ms", SET, None)).error_code == 0
    assert "flush.ms" not in stored(harness)
    missing = incremental(harness, TOPIC, "nowhere", ("flush.ms", SET, "1"), ("flush.ms", SET, "1"))
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_refuses_a_key_given_twice_and_null_for_a_value() -> None:
    def refused(*changes: tuple[str, int, str | None]) -> str:
        with pytest.raises(KafkaError) as refusal:
            check_keys(increments((TOPIC, "foo", list(changes))).resources[0])
        assert refusal.value.code is ErrorCode.INVALID_REQUEST
        return refusal.value.message

    assert "duplicate config keys" in refused(("flush.ms", SET, "1"), ("flush.ms", DELETE, None))
    assert refused(("flush.ms", SET, None)) == "Null value not supported for : flush.ms"
    assert "Null value" in refused(("flush.ms", APPEND, None))
    check_keys(increments((TOPIC, "foo", [("flush.ms", DELETE, None)])).resources[0])
    with pytest.raises(KafkaError, match="Null value"):
        check_keys(replacement(TOPIC, "foo", {"flush.ms": None}).resources[0])


def test_brokers_and_the_cluster_have_values_of_their_own(harness: Harness) -> None:
    assert incremental(harness, BROKER, "1", ("log.retention.ms", SET, "1")).error_code == ErrorCode.NONE
    assert incremental(harness, BROKER, "", ("message.max.bytes", SET, "2")).error_code == ErrorCode.NONE
    assert stored(harness, BROKER, "1") == {"log.retention.ms": "1"}
    assert stored(harness, BROKER, "")["message.max.bytes"] == "2"


@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
def test_a_listener_may_have_limits_of_its_own(harness: Harness, name: str) -> None:
    key = f"listener.name.plaintext.{name}"
    for broker in ("1", ""):
        assert incremental(harness, BROKER, broker, (key, SET, "7")).error_code == ErrorCode.NONE
        assert stored(harness, BROKER, broker)[key] == "7"
    refused = incremental(harness, BROKER, "", (key, SET, "many"))
    assert ErrorCode(refused.error_code) is ErrorCode.INVALID_REQUEST
    unknown = incremental(harness, BROKER, "1", ("listener.name.plaintext.num.partitions", SET, "7"))
    assert "Unknown broker config name" in unknown.error_message


def test_a_controller_is_a_node_too(harness: Harness) -> None:
    node = str(harness.static.node_id)
    register_controller(harness, harness.static.node_id)
    assert incremental(harness, BROKER, node, ("message.max.bytes", SET, "2")).error_code == ErrorCode.NONE


@pytest.mark.parametrize("rate", ["leader.replication.throttled.rate", "follower.replication.throttled.rate"])
def test_the_throttles_that_reassignment_tools_set_are_taken(harness: Harness, rate: str) -> None:
    replicas = rate.replace("rate", "replicas")
    assert incremental(harness, BROKER, "1", (rate, SET, "1000000")).error_code == ErrorCode.NONE
    for value in ("0:1,1:2", "*", ""):
        assert incremental(harness, TOPIC, "foo", (replicas, SET, value)).error_code == ErrorCode.NONE


def test_what_another_version_stored_can_be_deleted(harness: Harness) -> None:
    for kind, name in ((TOPIC, "foo"), (BROKER, "")):
        record = ConfigRecord(resource_type=kind, resource_name=name, name="of.the.future", value="1")
        apply_all(harness.controller.image, [record], harness.quorum.log_end_offset, 1)
        assert incremental(harness, kind, name, ("of.the.future", DELETE, None)).error_code == ErrorCode.NONE
        assert "of.the.future" not in stored(harness, kind, name)


def test_min_isr_and_the_clearing_of_the_elr_are_one_batch(harness: Harness) -> None:
    before = len(harness.quorum.log)
    incremental(harness, TOPIC, "foo", ("min.insync.replicas", SET, "2"))
    (batch,) = harness.quorum.log[before:]
    assert [type(record) for record in batch.records] == [ConfigRecord, ClearElrRecord]
    before = len(harness.quorum.log)
    replace(harness, TOPIC, "foo", {})
    (batch,) = harness.quorum.log[before:]
    assert isinstance(batch.records[-1], ClearElrRecord)


def test_an_implicit_deletion_of_the_cluster_min_isr_is_refused(harness: Harness) -> None:
    assert "min.insync.replicas" in stored(harness, BROKER, "")
    result = replace(harness, BROKER, "", {"message.max.bytes": "2"})
    assert ErrorCode(result.error_code) is ErrorCode.INVALID_CONFIG
    assert "message.max.bytes" not in stored(harness, BROKER, "")


def test_a_controller_that_is_not_active_refuses_by_resource(harness: Harness) -> None:
    harness.lose()
    assert incremental(harness, TOPIC, "foo", ("flush.ms", SET, "1")).error_code == ErrorCode.NOT_CONTROLLER
    assert replace(harness, TOPIC, "foo", {}).error_code == ErrorCode.NOT_CONTROLLER
