"""What to do about an error of the cluster: one clause for each code that a person can do something about."""

from __future__ import annotations

import re
from typing import Final

from heirlog.protocol.errors import ErrorCode

_ACLS: Final = "an administrator can allow it (heirlog acls add --help); heirlog acls list shows what is allowed"
_CONFIGS: Final = "heirlog configs describe topic TOPIC --all (or broker ID --all) shows names and values"
_BROKERS: Final = "heirlog broker list shows the brokers and which of them run"
_LEADERS: Final = (
    "heirlog topics describe --unavailable-partitions shows which partitions have no leader; start the brokers it names"
)
_MIN_ISR: Final = (
    "heirlog topics describe --under-min-isr-partitions shows which replicas are missing; start their brokers"
)
_AGAIN: Final = "try again; if the error stays, check that a controller runs"

NEXT_STEPS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "heirlog topics list shows all topics",
    ErrorCode.UNKNOWN_TOPIC_ID: "heirlog topics list shows all topics",
    ErrorCode.TOPIC_ALREADY_EXISTS: (
        "heirlog topics describe TOPIC shows it, heirlog topics alter TOPIC --partitions COUNT gives it more partitions"
    ),
    ErrorCode.INVALID_TOPIC_EXCEPTION: "regular expressions go with --include",
    ErrorCode.INVALID_PARTITIONS: "a topic can only get more partitions than it has (heirlog topics describe TOPIC)",
    ErrorCode.INVALID_REPLICATION_FACTOR: _BROKERS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: (
        "each partition needs as many brokers as the others, each of them registered (heirlog broker list)"
    ),
    ErrorCode.BROKER_NOT_AVAILABLE: _BROKERS,
    ErrorCode.BROKER_ID_NOT_REGISTERED: _BROKERS,
    ErrorCode.INVALID_CONFIG: _CONFIGS,
    ErrorCode.LEADER_NOT_AVAILABLE: _LEADERS,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: _BROKERS,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "heirlog recover plan shows for which replicas the partitions wait",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS: _MIN_ISR,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _MIN_ISR,
    ErrorCode.KAFKA_STORAGE_ERROR: "heirlog log-dirs shows which directories are offline",
    ErrorCode.NOT_CONTROLLER: _AGAIN,
    ErrorCode.REQUEST_TIMED_OUT: _AGAIN,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (
        "heirlog topics describe --under-min-isr-partitions shows whether brokers with its partition of "
        "__consumer_offsets (or __transaction_state) are missing; start them"
    ),
    ErrorCode.NOT_COORDINATOR: _AGAIN,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: _AGAIN,
    ErrorCode.GROUP_ID_NOT_FOUND: "heirlog groups list shows all groups",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "heirlog groups list shows what type each group is of: consume --share-group reads as a member of a share group"
    ),
    ErrorCode.FENCED_INSTANCE_ID: (
        "another consumer has joined as the same instance: give each its own group.instance.id"
    ),
    ErrorCode.NON_EMPTY_GROUP: "stop its consumers first (heirlog groups describe GROUP --members)",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop its consumers first (heirlog groups describe GROUP --members)",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.SECURITY_DISABLED: "set authorizer.class.name on every node (docs/guides/secure.md)",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "of heirlog up these files are in the data folder that it prints, in a folder for each node; a new cluster has "
        "it from heirlog up --config delegation.token.secret.key=SECRET"
    ),
    ErrorCode.TOPIC_DELETION_DISABLED: "set delete.topic.enable=true in server.properties of the controller",
    ErrorCode.MESSAGE_TOO_LARGE: "heirlog configs alter topic TOPIC max.message.bytes=BYTES raises the limit",
    ErrorCode.OFFSET_OUT_OF_RANGE: "give an offset from the log start to the high watermark, or -1",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "heirlog reassign --list shows the reassignments in progress",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: (
        "wait for it, or stop it with heirlog reassign --cancel --reassignment-json-file FILE"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "this cluster does not support the request; use a command of the cluster's version",
}


_PLACE: Final = re.compile(r"topic [^\s:]+:[\d,]+ ")
_READ_ONLY_CONFIG: Final = re.compile(r"Cannot update these configs dynamically: (?P<name>[^\s;]+)")
"""What heirlog and Apache Kafka say."""


def with_next_step(sentence: str, code: ErrorCode) -> str:
    """The sentence, and behind it what to do; as it is where there is no general advice."""
    # advice for programs: a command that ends has aborted its transaction
    sentence = sentence.removesuffix("; abort the transaction")
    of_sentence = _meant(sentence) or _instead_of_read_only(sentence) or _for_keyless(sentence)
    step = of_sentence or _for_a_name(sentence, code) or NEXT_STEPS.get(code)
    return f"{sentence.rstrip(' .,;')}; {step}" if step else sentence


def _for_a_name(sentence: str, code: ErrorCode) -> str | None:
    """Of a topic that is created, or one with a partition; other commands take what is not a name for an expression."""
    if code is not ErrorCode.INVALID_TOPIC_EXCEPTION:
        return None
    if sentence.startswith("cannot create"):
        return "name another topic"
    return "name the topic alone, and the partition with --partition" if _PLACE.search(sentence) else None


def _meant(sentence: str) -> str | None:
    """For a configuration that does not exist: the one that is like it."""
    from heirlog.local.similar_names import meant_config

    like = meant_config(sentence)
    return f"did you mean {like}?" if like else None


def _instead_of_read_only(sentence: str) -> str | None:
    """For a configuration that no request can change."""
    found = _READ_ONLY_CONFIG.search(sentence)
    if found is None:
        return None
    from heirlog.metadata.definition import Update
    from heirlog.metadata.server_configs import SERVER_CONFIGS

    name = found["name"].rstrip(".,")
    in_ms = SERVER_CONFIGS.get(f"{name.rpartition('.')[0]}.ms")
    if name.endswith((".hours", ".minutes")) and in_ms is not None and in_ms.update is not Update.READ_ONLY:
        return f"{in_ms.name} can change while a node runs"
    return "set it in server.properties, and restart the node"


def _for_keyless(sentence: str) -> str | None:
    """For records without keys in a topic that needs them."""
    if "record without key" not in sentence:
        return None
    return "each record there needs a key: produce has --key, --key-separator and --input-format json"
