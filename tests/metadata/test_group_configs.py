"""Configurations of groups: judged by the server's bounds, described with the server's defaults."""

from __future__ import annotations

import pytest
from metadata.test_configs import config, image_of, node

from heirlog.metadata.config_def import ConfigError
from heirlog.metadata.configs import ConfigSource, describe_group
from heirlog.metadata.group_configs import validate_group_configs
from heirlog.metadata.image import GROUP_RESOURCE


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        ({"consumer.session.timeout": "1"}, "Unknown group config name"),
        ({"consumer.session.timeout.ms": "soon"}, "not a number"),
        ({"consumer.session.timeout.ms": "60001"}, "less than or equal to group.consumer.max.session.timeout.ms"),
        ({"share.heartbeat.interval.ms": "4999"}, "greater than or equal to group.share.min.heartbeat.interval.ms"),
        ({"share.record.lock.duration.ms": "60001"}, "group.share.max.record.lock.duration.ms, which is 60000"),
        ({"share.auto.offset.reset": "by_duration:P"}, "by_duration: and a duration"),
        ({"share.isolation.level": "serializable"}, "expected one of"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas, which is 2"),
    ],
)
def test_what_is_wrong_is_refused(configs: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        validate_group_configs(configs, node())
    assert sentence in refusal.value.sentence


def test_a_session_is_longer_than_the_pause_between_heartbeats() -> None:
    static = node(
        group_consumer_min_session_timeout_ms="1000",
        group_consumer_session_timeout_ms="16000",
        group_consumer_max_heartbeat_interval_ms="20000",
    )
    validate_group_configs({"consumer.heartbeat.interval.ms": "15999"}, static)
    with pytest.raises(ConfigError, match=r"must be greater than consumer\.heartbeat\.interval\.ms"):
        validate_group_configs({"consumer.heartbeat.interval.ms": "16000"}, static)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"group_consumer_session_timeout_ms": "44999"}, "group.consumer.session.timeout.ms is 44999"),
        ({"group_consumer_session_timeout_ms": "60001"}, "group.consumer.max.session.timeout.ms is 60000"),
        ({"group_share_heartbeat_interval_ms": "15001"}, "group.share.max.heartbeat.interval.ms is 15000"),
        ({"group_share_min_session_timeout_ms": "60001"}, "group.share.max.session.timeout.ms is 60000"),
        ({"group_share_max_share_sessions": "199"}, "not be less than group.share.max.size, which is 200"),
        (
            {"group_consumer_heartbeat_interval_ms": "45000", "group_consumer_max_heartbeat_interval_ms": "45000"},
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
    ],
)
def test_the_server_starts_only_with_defaults_that_a_group_may_have(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        node(**given)
    assert sentence in refusal.value.sentence


@pytest.mark.parametrize("reset", ["latest", "earliest", "by_duration:P1DT2H3M4.5S", "by_duration:PT0.1S"])
def test_share_groups_may_begin_by_age(reset: str) -> None:
    validate_group_configs({"share.auto.offset.reset": reset, "streams.num.standby.replicas": "0"}, node())


def test_a_group_is_described_with_its_own_values_and_the_servers() -> None:
    image = image_of(config(GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "50000"))
    static = node(group_consumer_session_timeout_ms="46000")
    (own,) = [one for one in describe_group(image, static, "g") if one.name == "consumer.session.timeout.ms"]
    assert (own.value, own.source, own.read_only) == ("50000", ConfigSource.DYNAMIC_GROUP, False)
    assert [(one.value, one.source) for one in own.synonyms] == [("50000", 8)]
    (other,) = [one for one in describe_group(image, static, "h") if one.name == "consumer.session.timeout.ms"]
    assert (other.value, other.source) == ("46000", ConfigSource.DEFAULT)
    assert [(one.value, one.source) for one in other.synonyms] == [("46000", ConfigSource.DEFAULT)]
