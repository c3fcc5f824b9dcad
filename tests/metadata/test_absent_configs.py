"""Configurations of what heirlog does not have: numbers are taken, everything else but the default is refused."""

from __future__ import annotations

import pytest
from metadata.test_configs import node

from heirlog.metadata.absent_configs import ABSENT_CONFIGS
from heirlog.metadata.config_def import ConfigError
from heirlog.metadata.configs import describe_broker
from heirlog.metadata.image import Image

NUMBERS = {
    "sasl.kerberos.min.time.before.relogin": "58000",
    "sasl.login.refresh.window.jitter": "0.1",
    "remote.log.reader.threads": "3",
    "group.consumer.session.timeout.ms": "50000",
    "remote.log.reader.max.pending.tasks": "7",
}


def given(configs: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in configs.items()}


def test_numbers_tune_what_is_not_there() -> None:
    static = node(**given(NUMBERS))
    assert static["remote.log.reader.threads"] == 3 and static["sasl.login.refresh.window.jitter"] == 0.1
    received = {entry.name: entry.value for entry in describe_broker(Image(), static, "1")}
    assert {name: received[name] for name in NUMBERS} == NUMBERS


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("sasl.kerberos.service.name", "kafka", "no Kerberos"),
        ("ssl.engine.factory.class", "org.example.Engine", "cannot load Java classes"),
        ("remote.log.storage.system.enable", "true", "no tiered storage"),
        ("group.share.assignors", "other", "heirlog has the assignor simple"),
        ("group.coordinator.rebalance.protocols", "consumer", "name classic"),
        ("create.topic.policy.class.name", "org.example.Policy", "cannot load Java classes"),
        ("config.providers", "file", "write the value itself"),
        ("group.share.max.size", "0", "at least 1"),
    ],
)
def test_anything_else_asks_for_what_is_not_there(name: str, value: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=name) as refusal:
        node(**given({name: value}))
    assert sentence in refusal.value.sentence


def test_a_password_that_is_refused_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refusal:
        node(**given({"sasl.oauthbearer.assertion.private.key.passphrase": "hunter2"}))
    assert "hunter2" not in refusal.value.sentence


def test_every_default_is_taken_and_described() -> None:
    defaults = {name: one.default for name, one in ABSENT_CONFIGS.items() if one.default is not None}
    static = node(**given(defaults), group_coordinator_rebalance_protocols="classic")
    received = {entry.name: entry for entry in describe_broker(Image(), static, "1")}
    assert {name: received[name].value for name in defaults} == defaults
    hidden = [name for name in ABSENT_CONFIGS if received[name].sensitive]
    assert "sasl.oauthbearer.assertion.private.key.passphrase" in hidden and all(
        received[name].value is None for name in hidden
    )
