"""The values of members that a scenario leaves out: every member of the vocabulary is optional.

The defaults of a replica, a broker or an epoch follow from the values of the others in the file. Members whose default
is the current state (the ISR that an `alter_partition` requests, the offset of a fetch) are filled in by the layer that
plays the event. If the file says nothing about a follower's `leo` or `state`, the product's initial value is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

Members = Mapping[str, Any]

REPLICAS: Final = (1, 2, 3)
_OF_A_STARTUP: Final = frozenset(("start", "logs_loaded", "register_response", "controlled_stop"))
_OF_A_FOLLOWER: Final = frozenset(("become_follower", "fetch_response"))
_CHANGES_OF_ROLE: Final = frozenset(("become_leader", "metadata_update"))
_FIRST_BROKER: Final = {"broker": 1}
_EVENTS: Final[Mapping[str, Mapping[str, Members]]] = {
    "broker": {
        "advance_clock": {"ms": 0},
        "alter_partition_response": {"error": "NONE"},
        "append": {"acks": -1, "records": 1},
        "consumer_fetch": {"fetchOffset": 0},
        "list_offsets": {"timestamp": -1},
        "metadata_update_broker": {"fenced": False},
        "register_response": {"brokerEpoch": 101},
    },
    "controller": {
        "alter_config": {
            "resourceType": "topic",
            "resourceName": "foo",
            "op": "SET",
            "name": "min.insync.replicas",
            "values": {},
        },
        "clear_elr_record": {"topic": "foo"},
        "create_topic": {"topic": "foo", "assignments": []},
        "delete_topic": {"topic": "foo"},
        "elect_leaders": {"electionType": 0},
        "fence_broker": _FIRST_BROKER,
        "heartbeat": _FIRST_BROKER,
        "periodic": {"task": "electPreferred"},
        "register_broker": _FIRST_BROKER,
        "unregister_broker": _FIRST_BROKER,
        "update_feature": {"feature": "eligible.leader.replicas.version", "level": 1},
    },
    "controller_kip": {
        "alter_config": {"value": 1},
        "register_broker": _FIRST_BROKER,
        "unclean_recovery_elects": {"leader": 1},
    },
    "recovery": {
        "advance_clock": {"ms": 0},
        "broker_fenced": _FIRST_BROKER,
        "broker_registered": _FIRST_BROKER,
        "broker_unfenced": _FIRST_BROKER,
        "elect_leaders": {"tool": "PREFERRED"},
        "heartbeat": _FIRST_BROKER,
        "log_info_response": _FIRST_BROKER,
        "send_failed": _FIRST_BROKER,
    },
}


def completed(scenario: Members) -> Members:
    """With every member that does not depend on the moment."""
    layer = scenario["layer"]
    complete = _SETUPS.get(layer)
    setup = scenario.get("setup", {})
    setup = {**_implied(setup, {step["event"]["type"] for step in scenario["steps"]}), **setup}
    known = _EVENTS.get(layer, {})
    steps = [{**step, "event": {**known.get(step["event"]["type"], {}), **step["event"]}} for step in scenario["steps"]]
    return {**scenario, "setup": setup if complete is None else complete(setup), "steps": steps}


def _implied(setup: Members, events: set[str]) -> Members:
    """By events that only one kind of setup has."""
    if events & _OF_A_STARTUP or "logDirs" in setup:
        return {"role": "startup"}
    if events & _OF_A_FOLLOWER and not events & _CHANGES_OF_ROLE:
        return {"role": "follower"}
    return {"partition": {}} if "kafka_topics_describe" in events else {}


def _partition(given: Members, brokers: Iterable[int] = REPLICAS) -> Members:
    replicas = given.get("replicas") or [*brokers] or [*REPLICAS]
    outside = {*given.get("elr", ()), *given.get("lastKnownElr", ())}
    isr = given.get("isr", [replica for replica in replicas if replica not in outside])
    leader = isr[0] if isr else -1
    return {"leader": leader, "leaderEpoch": 0, "partitionEpoch": 0, **given, "replicas": replicas, "isr": isr}


def _controller(setup: Members) -> Members:
    brokers = [{"id": number, **broker} for number, broker in enumerate(setup.get("brokers", []), 1)]
    numbers = [broker["id"] for broker in brokers]
    return {
        **setup,
        "brokers": brokers,
        "partitions": [_partition(row, numbers) for row in setup.get("partitions", [])],
    }


def _builder(setup: Members) -> Members:
    return _controller({"partitions": [{}], **setup})


def _admin(setup: Members) -> Members:
    topics = [{"name": "foo", "partitions": 1, **topic} for topic in setup.get("topics", [])]
    return {**setup, "topics": topics}


def _broker(setup: Members) -> Members:
    if setup.get("role") == "startup":
        directories = setup.get("logDirs", [{}])
        return {
            **setup,
            "role": "startup",
            "logDirs": [{"dir": f"log-{number}", **each} for number, each in enumerate(directories, 1)],
        }
    follows = "leader" in setup and setup.get("localBroker", setup["leader"]) != setup["leader"]
    role = setup.get("role", "follower" if follows else "leader")
    leads = role == "leader"
    followers = setup.get("followers", [])
    named = [*setup.get("isr", ()), *(each["id"] for each in followers if "id" in each)]
    named += [setup[name] for name in ("localBroker", "leader") if name in setup]
    replicas = setup.get("replicas") or (sorted(set(named)) if len(set(named)) > 1 else sorted({*named, *REPLICAS}))
    me = setup.get("localBroker", setup.get("leader", replicas[0]) if leads else None)
    if me is None:
        me = next(replica for replica in replicas if replica != setup.get("leader", replicas[0]))
    others = [replica for replica in replicas if replica != me]
    epochs = [{"epoch": number, "start": number, **entry} for number, entry in enumerate(setup.get("epochCache") or ())]
    starts = [entry["start"] for entry in epochs]
    ends = [setup.get(name, 0) for name in ("highWatermark", "logStartOffset", "leaderEpochStartOffset")]
    end = setup.get("logEndOffset", max([*ends, *starts, *(each.get("leo", 0) for each in followers)]))
    return {
        "leader": me if leads else next(iter(others), me),
        "leaderEpoch": max((entry["epoch"] for entry in epochs), default=0),
        "highWatermark": min([end, *(each["leo"] for each in followers if "leo" in each)]),
        **setup,
        "role": role,
        "localBroker": me,
        "replicas": replicas,
        "logEndOffset": end,
        "followers": [{"id": number, **each} for number, each in zip(_numbers(others), followers, strict=False)],
        **({"epochCache": epochs} if setup.get("epochCache") is not None else {}),
    }


def _numbers(others: list[int]) -> list[int]:
    """Of followers without one: replicas in their order, and no more than there could be."""
    return others + [max(others, default=0) + 1 + more for more in range(1000)]


_SETUPS: Final[Mapping[str, Callable[[Members], Members]]] = {
    "admin": _admin,
    "broker": _broker,
    "controller": _controller,
    "controller_kip": _partition,
    "partition_builder": _builder,
}
