"""Meant differences in topics, configurations, features, and what concerns every API (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.deviation import (
    INVALID_REQUEST,
    SHOWN_NAMES,
    UNKNOWN_SERVER_ERROR,
    A,
    B,
    Deviation,
    asked,
    at,
    missing_here,
    new_topics,
    topic,
)
from answers.players import Difference
from answers.shape import Plan
from heirlog.metadata.server_configs import AUTHORIZERS, SERVER_CONFIGS

OWN_CONFIGS = ("unclean.recovery.", "heirlog.", "log.level", "eligible.leader.replicas.enabled")
NEEDS_A_RESTART = ("listeners", "advertised.listeners", "listener.security.protocol.map")
DESCRIBED = frozenset((9, 15, 24, 32, 43, 47, 61, 69, 77, 90))
"""These are answered once for each name."""
CONFIGURED = frozenset((19, 32))
CHANGED = frozenset((33, 44))
BROKER, CLIENT_METRICS, GROUP = 4, 16, 32
SET, DELETE = 0, 1
GROUP_OF_CONFIGS, SESSION_TIMEOUT = f"{SHOWN_NAMES}i", "consumer.session.timeout.ms"


def _own_config(difference: Difference) -> bool:
    ours = difference.ours
    return (
        difference.plan.key in CONFIGURED
        and difference.theirs == "not there"
        and isinstance(ours, dict)
        and str(ours.get("name")).startswith(OWN_CONFIGS)
    )


def _restart(difference: Difference) -> bool:
    return difference.plan.key == 32 and any(
        f"[['{name}']].{what}" in difference.path for name in NEEDS_A_RESTART for what in ("read_only", "config_type")
    )


def _of_resource(difference: Difference, kind: int) -> bool:
    return difference.path.startswith((f".results[[{kind}, ", f".responses[[{kind}, "))


def _unchecked(difference: Difference) -> bool:
    """By a controller, of a broker's configuration."""
    is_code = _of_resource(difference, BROKER) and at(difference, ".error_code")
    plan = difference.plan
    return plan.key in CHANGED and plan.controller and is_code and (difference.theirs, difference.ours) == (0, 42)


def _unknown_to_brokers(difference: Difference) -> bool:
    plan = difference.plan
    return (
        plan.key in CHANGED
        and difference.ours == INVALID_REQUEST
        and _of_resource(difference, BROKER)
        and any(
            config["name"] not in SERVER_CONFIGS or config["name"] in AUTHORIZERS
            for resource in plan.fields["resources"]
            if resource["resource_type"] == BROKER
            for config in resource["configs"]
        )
    )


def _more_keys(difference: Difference) -> bool:
    """DescribeConfigs: all that was asked for in the one answer for a resource."""
    resources = difference.plan.fields.get("resources", ())
    named = [(resource["resource_type"], resource["resource_name"]) for resource in resources]
    return (
        difference.plan.key == 32
        and ".configs[" in difference.path
        and difference.theirs == "not there"
        and len(set(named)) < len(named)
    )


def _twice(difference: Difference) -> bool:
    """A name that comes again, or what its place has in an order."""
    if _more_keys(difference):
        return True
    return (
        difference.plan.key in DESCRIBED
        and missing_here(difference)
        and difference.path.endswith("]")
        and ("#" in difference.path.rpartition("[")[2])
    )


def _meaningless(difference: Difference) -> bool:
    plan = difference.plan
    if (
        plan.key in (1, 78, 79, 91)
        and isinstance(difference.answer, dict)
        and difference.answer["error_code"] == UNKNOWN_SERVER_ERROR
    ):
        return True
    if plan.key == 90 and isinstance(difference.answer, dict):
        return any(group["error_code"] == UNKNOWN_SERVER_ERROR for group in difference.answer["groups"])
    if plan.key in (1, 2) and plan.version >= 2:
        return plan.fields["isolation_level"] not in (0, 1)
    if plan.key == 3 and isinstance(difference.answer, dict):
        topics = difference.answer["topics"]
        return bool(topics) and all(topic["error_code"] == UNKNOWN_SERVER_ERROR for topic in topics)
    return plan.key in (9, 11, 44, 75) and difference.theirs == UNKNOWN_SERVER_ERROR


def _changed(kind: int, name: str, key: str, value: str | None) -> dict[str, Any]:
    change = {"name": key, "config_operation": DELETE if value is None else SET, "value": value}
    return {"resource_type": kind, "resource_name": name, "configs": [change]}


def _described(kind: int, name: str, *keys: str) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}


ADMIN_DEVIATIONS: list[Deviation] = [
    Deviation(
        "texts of errors",
        "error messages",
        lambda d: at(d, "error_message") and d.ours == "a text" and d.theirs in (None, ""),
        (Plan(32, 4, {"resources": [_described(2, "nobody")]}),),
    ),
    Deviation(
        "configurations of our own",
        "own names",
        _own_config,
        (new_topics(topic(A), topic(B)),),
    ),
    Deviation(
        "configurations that need a restart",
        "changing a broker's configuration at run time",
        _restart,
        (Plan(32, 4, {"resources": [_described(4, "0")]}),),
    ),
    Deviation(
        "more partitions than one request may make",
        "an admin request that makes more than 10,000 metadata records",
        lambda d: d.plan.key == 37 and d.theirs == UNKNOWN_SERVER_ERROR and at(d, ".error_code"),
        (Plan(37, 3, {"topics": [{"name": A, "count": 1 << 30, "assignments": None}], "timeout_ms": 20_000}),),
    ),
    Deviation(
        "answered once",
        "a name that is twice in a request",
        _twice,
        (Plan(15, 5, {"groups": [A, A]}),),
    ),
    Deviation(
        "what Apache Kafka fails at",
        "an invalid value",
        _meaningless,
        (Plan(2, 5, {"replica_id": -1, "isolation_level": 2, "topics": [{"name": A, "partitions": [asked(0)]}]}),),
        is_harmless=False,
    ),
    Deviation(
        "a broker's configuration that only brokers check",
        "a broker's configuration that is sent to a controller",
        _unchecked,
        (
            Plan(
                44,
                1,
                {"resources": [_changed(BROKER, "", "num.io.threads", "x")], "validate_only": True},
                controller=True,
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "names that brokers do not know",
        "changing a broker's configuration at run time",
        _unknown_to_brokers,
        (Plan(44, 1, {"resources": [_changed(BROKER, "", "nobody.knows", "x")], "validate_only": True}),),
        is_harmless=False,
    ),
    Deviation(
        "configurations of client metrics",
        "configurations of client metrics",
        lambda d: _of_resource(d, CLIENT_METRICS),
        (Plan(32, 4, {"resources": [_described(CLIENT_METRICS, "x")]}),),
    ),
    Deviation(
        "a group that had configurations",
        "a group whose configurations are deleted",
        lambda d: d.plan.key == 74 and d.path.startswith(f".config_resources[[{GROUP}, ") and missing_here(d),
        (
            Plan(44, 1, {"resources": [_changed(GROUP, GROUP_OF_CONFIGS, SESSION_TIMEOUT, "50000")]}),
            Plan(44, 1, {"resources": [_changed(GROUP, GROUP_OF_CONFIGS, SESSION_TIMEOUT, None)]}),
            Plan(74, 1, {"resource_types": [GROUP]}),
        ),
    ),
    Deviation(
        "a feature or a partition to reassign twice",
        "a name that is twice in a request",
        lambda d: d.plan.key in (45, 57) and d.ours == INVALID_REQUEST,
        (
            Plan(
                57,
                1,
                {"feature_updates": [{"feature": "x", "max_version_level": 1}] * 2, "validate_only": True},
            ),
        ),
    ),
    Deviation(
        "APIs that are not there",
        "APIs and features that do not exist yet",
        lambda d: d.plan.key == 18 and ("api_keys" in d.path or "features" in d.path),
        (Plan(18, 3, {"client_software_name": "a", "client_software_version": "1"}),),
    ),
    Deviation(
        "features that are not there",
        "APIs and features that do not exist yet",
        lambda d: (d.plan.key == 57 and d.theirs in (0, None)) or (d.plan.key == 57 and ".results" in d.path),
        (
            Plan(
                57,
                1,
                {"feature_updates": [{"feature": "streams.version", "max_version_level": 1}], "validate_only": True},
            ),
        ),
    ),
]
