"""The differences that are meant: each with the row of docs/compatibility.md that says so.

A difference has one name at most, the first that applies; `examples` show each in every run, so that a name that
nothing needs any more is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers.players import Difference
from answers.shape import Plan
from answers.share_group_requests import ALTERED
from answers.world import UNKNOWN_ID, Batch, Symbol
from heirlog.metadata.server_configs import AUTHORIZERS, SERVER_CONFIGS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
UNKNOWN_SERVER_ERROR, INVALID_REQUEST, NOT_COORDINATOR = -1, 42, 16
UNSUPPORTED_CODEC = 76
INVALID_RECORD, INVALID_ACKS, GROUP_NOT_FOUND = 87, 21, 69
OWN_CONFIGS = ("unclean.recovery.", "heirlog.", "log.level", "eligible.leader.replicas.enabled")
NEEDS_A_RESTART = ("listeners", "advertised.listeners", "listener.security.protocol.map")
OURS = "heirlog.recovery.version"
DESCRIBED = frozenset((9, 15, 24, 32, 43, 47, 61, 69, 77))
"""These are answered once for each name."""
CONFIGURED = frozenset((19, 32))
SHOWN_NAMES = "shown-"
"""Begins the names of what the examples are about."""
A, B, C, D = (f"{SHOWN_NAMES}{letter}" for letter in "abcd")
PRODUCER, SUCCESSOR = f"{SHOWN_NAMES}t", f"{SHOWN_NAMES}s"
"""Each of one example only: the epochs in it count from 0."""
UNKNOWN_PARTITIONS = (3, 100)
INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED = 49, 51, 90
FENCED = (PRODUCER_FENCED, 47)
"""The second one below InitProducerId 4."""
BROKER, CLIENT_METRICS, GROUP = 4, 16, 32
SET, DELETE = 0, 1
GROUP_OF_CONFIGS, SESSION_TIMEOUT = f"{SHOWN_NAMES}i", "consumer.session.timeout.ms"
CHANGED = frozenset((33, 44))
NEWEST = -3


@dataclass(frozen=True)
class Deviation:
    name: str
    row: str
    """How the row begins."""
    applies: Callable[[Difference], bool]
    examples: tuple[Plan, ...] = ()
    is_harmless: bool = True
    """The nodes hold the same afterwards: the sequence continues with the same names."""


def _at(difference: Difference, *ends: str) -> bool:
    return difference.path.endswith(ends)


def _missing_here(difference: Difference) -> bool:
    return bool(difference.ours == "not there")


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
    is_code = _of_resource(difference, BROKER) and _at(difference, ".error_code")
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


def _of_deleted_records(difference: Difference) -> bool:
    """The newest timestamp: of a record that can be read it is older, or there is none."""
    plan, theirs, ours = difference.plan, difference.theirs, difference.ours
    if plan.key != 2 or not any(
        part["timestamp"] == NEWEST for topic in plan.fields["topics"] for part in topic["partitions"]
    ):
        return False
    if _at(difference, ".offset"):
        return bool(ours == -1 or ours > theirs > -1)
    if _at(difference, ".timestamp"):
        return bool(ours == -1 or -1 < ours < theirs)
    return _at(difference, ".leader_epoch") and bool(ours == -1)


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
        and _missing_here(difference)
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
    if plan.key in (1, 2) and plan.version >= 2:
        return plan.fields["isolation_level"] not in (0, 1)
    if plan.key == 3 and isinstance(difference.answer, dict):
        topics = difference.answer["topics"]
        return bool(topics) and all(topic["error_code"] == UNKNOWN_SERVER_ERROR for topic in topics)
    return plan.key in (9, 11, 44, 75) and difference.theirs == UNKNOWN_SERVER_ERROR


def _holds_nothing(difference: Difference) -> bool:
    """A group to which only offsets that were refused have been committed."""
    key, theirs, ours = difference.plan.key, difference.theirs, difference.ours
    if key == 16:
        return isinstance(theirs, dict) and theirs["group_state"] in ("", "Empty") and _missing_here(difference)
    if key == 15:
        return (
            (theirs, ours) == ("Empty", "Dead")
            or (ours == GROUP_NOT_FOUND and theirs == 0)
            or (ours == "a text" and theirs is None)
        )
    return key == 42 and (theirs, ours) == (0, GROUP_NOT_FOUND)


def _produced(difference: Difference) -> list[tuple[Any, int]]:
    if difference.plan.key != 0:
        return []
    by = "topic_id" if difference.plan.version >= 13 else "name"
    return [
        (topic[by], part["index"]) for topic in difference.plan.fields["topic_data"] for part in topic["partition_data"]
    ]


def _committed(difference: Difference) -> list[tuple[Any, int]]:
    plan = difference.plan
    topics = plan.fields["topics"] if plan.key == 8 else ()
    by = "topic_id" if plan.version >= 10 else "name"
    return [(topic[by], part["partition_index"]) for topic in topics for part in topic["partitions"]]


def _new_topics(*topics: dict[str, Any]) -> Plan:
    return Plan(19, 7, {"topics": list(topics), "timeout_ms": 20_000, "validate_only": False})


def _topic(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} | fields


def _of_share_member(epoch: int, *topics: str) -> Plan:
    """topics: what it subscribes to from now on."""
    who = {"group_id": f"{SHOWN_NAMES}m", "member_id": "m", "member_epoch": epoch, "rack_id": None}
    return Plan(76, 1, who | {"subscribed_topic_names": list(topics) or None})


def _of_share_state(group: str, **part: Any) -> dict[str, Any]:
    topic = {"topic_id": Symbol("topic_ids", D, UNKNOWN_ID), "partitions": [{"partition": 0} | part]}
    return {"group_id": group, "topics": [topic]}


def _of_transaction(epoch: int) -> Batch:
    return Batch(producer=PRODUCER, sequence=0, epoch_ahead=epoch, transactional=True)


def _id_of(producer: str) -> Symbol:
    return Symbol("producer_ids", producer, 4000)


def _starting(producer: str, producer_id: Any = -1, epoch: int = -1) -> Plan:
    limit = {"transactional_id": producer, "transaction_timeout_ms": 60_000}
    return Plan(22, 4, limit | {"producer_id": producer_id, "producer_epoch": epoch}, keeps=producer)


def _adding(producer: str, topic: str, epoch: int) -> Plan:
    return Plan(
        24,
        3,
        {
            "v3_and_below_transactional_id": producer,
            "v3_and_below_producer_id": _id_of(producer),
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
        },
    )


def _aborting(producer: str, version: int, epoch: int) -> Plan:
    fields = {"producer_id": _id_of(producer), "producer_epoch": epoch}
    return Plan(26, version, {"transactional_id": producer, "committed": False, **fields}, keeps=producer)


def _gets_epoch_of_successor(difference: Difference) -> bool:
    plan, ours = difference.plan, difference.ours
    is_of_answer = _at(difference, ".producer_id", ".producer_epoch") and ours == -1
    return plan.key == 26 and plan.version >= 5 and (ours == PRODUCER_FENCED or is_of_answer)


def _asked(partition: int) -> dict[str, int]:
    return {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}


def _changed(kind: int, name: str, key: str, value: str | None) -> dict[str, Any]:
    change = {"name": key, "config_operation": DELETE if value is None else SET, "value": value}
    return {"resource_type": kind, "resource_name": name, "configs": [change]}


def _described(kind: int, name: str, *keys: str) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}


def _raised_by_altering(difference: Difference) -> bool:
    """The epoch of a group whose offsets were altered."""
    plan, theirs, ours = difference.plan, difference.theirs, difference.ours
    named = [plan.fields.get("group_id"), *plan.fields.get("group_ids", ())]
    return (
        plan.key in (76, 77, 84, 87)
        and _at(difference, "_epoch")
        and any(str(each).endswith(ALTERED) for each in named)
        and ours > theirs
    )


def _first_offset(difference: Difference) -> bool:
    """Of a share partition from which a member has fetched, and acknowledged nothing."""
    is_of_state = difference.plan.key in (84, 87, 90) and difference.theirs == -1 and difference.ours >= 0
    return is_of_state and _at(difference, ".start_offset", ".lag", ".delivery_complete_count")


def _negative_offset(difference: Difference) -> bool:
    """In an AlterShareGroupOffsets."""
    topics = difference.plan.fields["topics"] if difference.plan.key == 91 else ()
    offsets = [part["start_offset"] for topic in topics for part in topic["partitions"]]
    return bool(offsets) and min(offsets) < 0


def _repeated_assignment(difference: Difference) -> bool:
    """Of a member whose heartbeat does not name the epoch that the answer gives to it."""
    plan, answer = difference.plan, difference.answer
    return (
        plan.key == 76
        and difference.path == ".assignment"
        and difference.theirs is None
        and plan.fields["member_epoch"] != answer["member_epoch"]
    )


def _malformed_batches(difference: Difference) -> bool:
    """In a WriteShareGroupState."""
    batches = [
        batch
        for topic in (difference.plan.fields["topics"] if difference.plan.key == 85 else ())
        for part in topic["partitions"]
        for batch in part["state_batches"]
    ]
    return any(not 0 <= batch["first_offset"] <= batch["last_offset"] for batch in batches)


def _deletes_what_is_not_there(difference: Difference) -> bool:
    is_error = difference.plan.key == 86 and _at(difference, ".error_code", ".error_message")
    return is_error and (difference.theirs == UNKNOWN_PARTITIONS[0] or difference.ours is None)


DEVIATIONS: list[Deviation] = [
    Deviation(
        "texts of errors",
        "error messages",
        lambda d: _at(d, "error_message") and d.ours == "a text" and d.theirs in (None, ""),
        (Plan(32, 4, {"resources": [_described(2, "nobody")]}),),
    ),
    Deviation(
        "configurations of our own",
        "own names",
        _own_config,
        (_new_topics(_topic(A), _topic(B)),),
    ),
    Deviation(
        "configurations that need a restart",
        "changing a broker's configuration at run time",
        _restart,
        (Plan(32, 4, {"resources": [_described(4, "0")]}),),
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
        (Plan(2, 5, {"replica_id": -1, "isolation_level": 2, "topics": [{"name": A, "partitions": [_asked(0)]}]}),),
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
        lambda d: d.plan.key == 74 and d.path.startswith(f".config_resources[[{GROUP}, ") and _missing_here(d),
        (
            Plan(44, 1, {"resources": [_changed(GROUP, GROUP_OF_CONFIGS, SESSION_TIMEOUT, "50000")]}),
            Plan(44, 1, {"resources": [_changed(GROUP, GROUP_OF_CONFIGS, SESSION_TIMEOUT, None)]}),
            Plan(74, 1, {"resource_types": [GROUP]}),
        ),
    ),
    Deviation(
        "the newest timestamp of deleted records",
        "the newest timestamp (ListOffsets -3) after DeleteRecords",
        _of_deleted_records,
        (
            _new_topics(_topic(C)),
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": C, "partition_data": [{"index": 0, "records": Batch()}]}],
                },
            ),
            Plan(
                21,
                2,
                {"timeout_ms": 5000, "topics": [{"name": C, "partitions": [{"partition_index": 0, "offset": -1}]}]},
            ),
            Plan(
                2,
                7,
                {
                    "replica_id": -1,
                    "isolation_level": 0,
                    "topics": [{"name": C, "partitions": [_asked(0) | {"timestamp": NEWEST}]}],
                },
            ),
        ),
    ),
    Deviation(
        "a group that holds nothing",
        "a new group whose first commit is refused",
        _holds_nothing,
        (
            Plan(
                8,
                5,
                {
                    "group_id": "shown-g",
                    "topics": [
                        {
                            "name": A,
                            "partitions": [
                                {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000}
                            ],
                        }
                    ],
                },
            ),
            Plan(15, 5, {"groups": ["shown-g"]}),
            Plan(42, 2, {"groups_names": ["shown-g"]}),
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
        "a partition twice in an OffsetCommit",
        "a name that is twice in a request",
        lambda d: len(_committed(d)) > len(set(_committed(d))),
        (
            Plan(
                8,
                5,
                {
                    "group_id": "shown-h",
                    "topics": [
                        {
                            "name": A,
                            "partitions": [
                                {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000},
                                {"partition_index": 0, "committed_offset": 2, "committed_metadata": ""},
                            ],
                        }
                    ],
                },
            ),
        ),
    ),
    Deviation(
        "the log start beside a batch that the log refuses",
        "the log start offset in an answer with INVALID_RECORD",
        lambda d: d.plan.key == 0 and _at(d, ".log_start_offset") and d.ours == -1,
        (
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": A, "partition_data": [{"index": 0, "records": Batch(control=True)}]}],
                },
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
    Deviation(
        "a batch and acks that are both wrong",
        "`acks` and records that are both wrong",
        lambda d: d.plan.key == 0 and d.theirs in (INVALID_RECORD, UNSUPPORTED_CODEC) and d.ours == INVALID_ACKS,
        (
            Plan(
                0,
                9,
                {
                    "acks": 2,
                    "topic_data": [{"name": A, "partition_data": [{"index": 0, "records": Batch(damage="empty")}]}],
                },
            ),
        ),
    ),
    Deviation(
        "a partition twice in a Produce",
        "a partition that is twice in a Produce",
        lambda d: len(_produced(d)) > len(set(_produced(d))),
        (
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": B, "partition_data": [{"index": 0, "records": Batch()}] * 2}],
                },
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "batches of several producers and an unknown partition",
        "batches of several producers in a Produce with a transactional id",
        lambda d: d.plan.key == 0 and d.theirs == INVALID_PRODUCER_ID_MAPPING and d.ours in UNKNOWN_PARTITIONS,
        (
            _new_topics(_topic(D)),
            Plan(
                0,
                12,
                {
                    "transactional_id": PRODUCER,
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [
                        {"name": A, "partition_data": [{"index": 0, "records": _of_transaction(0)}]},
                        {
                            "name": D,
                            "partition_data": [{"index": n, "records": _of_transaction(n + 1)} for n in (0, 9)],
                        },
                    ],
                },
            ),
        ),
    ),
    Deviation(
        "a marker with a negative epoch",
        "a negative producer id or epoch in WriteTxnMarkers",
        lambda d: d.plan.key == 27 and d.ours == INVALID_REQUEST,
        (
            Plan(
                27,
                2,
                {
                    "markers": [
                        {
                            "producer_id": 4000,
                            "producer_epoch": -2,
                            "transaction_result": True,
                            "topics": [{"name": A, "partition_indexes": [0]}],
                            "coordinator_epoch": 0,
                            "transaction_version": 0,
                        }
                    ]
                },
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "another producer's transaction",
        "InitProducerId with an old epoch while a transaction is open",
        lambda d: d.plan.key == 22 and d.theirs == CONCURRENT_TRANSACTIONS and d.ours in FENCED,
        (
            _new_topics(_topic(D)),
            _starting(PRODUCER),
            _adding(PRODUCER, D, 0),
            _starting(PRODUCER, _id_of(PRODUCER), 10),
        ),
        is_harmless=False,
    ),
    Deviation(
        "the epoch of a group whose offsets were altered",
        "AlterShareGroupOffsets",
        _raised_by_altering,
        (
            Plan(
                91,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}p{ALTERED}",
                    "topics": [{"topic_name": A, "partitions": [{"partition_index": 0, "start_offset": 0}]}],
                },
            ),
            Plan(77, 1, {"group_ids": [f"{SHOWN_NAMES}p{ALTERED}"]}),
        ),
    ),
    Deviation(
        "a share group that begins at a negative offset",
        "a negative start offset in AlterShareGroupOffsets",
        _negative_offset,
        (
            _new_topics(_topic(D)),
            Plan(
                91,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}n{ALTERED}",
                    "topics": [{"topic_name": D, "partitions": [{"partition_index": 0, "start_offset": -3}]}],
                },
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "the assignment that a member of a share group has missed",
        "ShareGroupHeartbeat with the previous epoch",
        _repeated_assignment,
        (_of_share_member(0, "none"), _of_share_member(1, "nowhere"), _of_share_member(1)),
    ),
    Deviation(
        "the first offset of a share group",
        "the first offset of a share group",
        _first_offset,
        (
            Plan(
                83,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}r",
                    "topics": [
                        {
                            "topic_id": Symbol("topic_ids", A, UNKNOWN_ID),
                            "partitions": [{"partition": 0, "state_epoch": 0, "start_offset": -1}],
                        }
                    ],
                },
            ),
            Plan(
                78,
                1,
                {
                    "group_id": f"{SHOWN_NAMES}r",
                    "member_id": "m",
                    "share_session_epoch": 0,
                    "max_wait_ms": 1000,
                    "min_bytes": 1,
                    "max_bytes": 1 << 20,
                    "max_records": 1,
                    "batch_size": 1,
                    "topics": [
                        {
                            "topic_id": Symbol("topic_ids", A, UNKNOWN_ID),
                            "partitions": [{"partition_index": 0, "acknowledgement_batches": []}],
                        }
                    ],
                },
            ),
            Plan(
                87,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}r",
                    "topics": [
                        {
                            "topic_id": Symbol("topic_ids", A, UNKNOWN_ID),
                            "partitions": [{"partition": 0, "leader_epoch": 0}],
                        }
                    ],
                },
            ),
        ),
    ),
    Deviation(
        "a share state that is not there is deleted",
        "DeleteShareGroupState of a partition that does not exist",
        _deletes_what_is_not_there,
        (
            Plan(
                86,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}q",
                    "topics": [{"topic_id": Symbol("topic_ids", A, UNKNOWN_ID), "partitions": [{"partition": 9}]}],
                },
            ),
        ),
    ),
    Deviation(
        "a batch of a share state that ends before it begins",
        "a batch in WriteShareGroupState that ends before it begins",
        _malformed_batches,
        (
            _new_topics(_topic(D)),
            Plan(83, 0, _of_share_state(f"{SHOWN_NAMES}w", state_epoch=0, start_offset=0)),
            Plan(
                85,
                0,
                _of_share_state(
                    f"{SHOWN_NAMES}w",
                    state_epoch=0,
                    leader_epoch=0,
                    start_offset=0,
                    state_batches=[{"first_offset": 5, "last_offset": 4, "delivery_state": 0, "delivery_count": 1}],
                ),
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "a share session of a group without a name",
        "ShareFetch and ShareAcknowledge for a group without a name",
        lambda d: d.plan.key in (78, 79) and d.plan.fields["group_id"] == "",
        (Plan(79, 1, {"group_id": "", "member_id": "m", "share_session_epoch": 1, "topics": []}),),
        is_harmless=False,
    ),
    Deviation(
        "the epoch of a successor",
        "EndTxn 5 with the epoch from before the current one",
        _gets_epoch_of_successor,
        (
            _new_topics(_topic(D)),
            _starting(SUCCESSOR),
            _starting(SUCCESSOR),
            _adding(SUCCESSOR, D, 1),
            _aborting(SUCCESSOR, 4, 1),
            # on a busy machine the nodes of Apache Kafka may not agree at first whether all markers are written
            *[_aborting(SUCCESSOR, 5, 0)] * 3,
        ),
        is_harmless=False,
    ),
]


def explained(difference: Difference) -> Deviation | None:
    return next((each for each in DEVIATIONS if each.applies(difference)), None)


def examples_of() -> Iterator[Plan]:
    # after one that is not harmless the topics of the others are gone
    for deviation in sorted(DEVIATIONS, key=lambda each: not each.is_harmless):
        yield from deviation.examples


def rowless() -> list[str]:
    """Deviations without a row."""
    text = DOCUMENT.read_text()
    return [each.name for each in DEVIATIONS if f"| {each.row}" not in text]
