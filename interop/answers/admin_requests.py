"""Topics, configurations, ACLs, reassignments, elections, features and what describes a cluster."""

from __future__ import annotations

from typing import Any

from answers.scene import NODE_ID, Scene
from answers.world import NO_ID

Fields = dict[str, Any]
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
TOPIC_CONFIGS = {
    "retention.ms": ("1000000", "-1", "-2", " 60000 ", "x", ""),
    "cleanup.policy": ("delete", "compact", "delete,compact", "compact, delete", "", "nonsense", "delete,delete"),
    "min.insync.replicas": ("1", "2", "0", "-1"),
    "max.message.bytes": ("100", "1048588", "-1"),
    "segment.bytes": ("1048576", "14", "10"),
    "compression.type": ("producer", "gzip", "lz4", "uncompressed", "GZIP", "nonsense"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "createtime"),
    "unclean.leader.election.enable": ("true", "false", "TRUE", "yes", " true"),
    "file.delete.delay.ms": (" 60000 ", "60000"),
    "message.timestamp.before.max.ms": ("9223372036854775807", "1000"),
    "preallocate": ("true", "false"),
    "local.retention.ms": ("-2", "5", "0"),
    "leader.replication.throttled.replicas": ("0:0", "*", "none", "", "0:0,1:0"),
    "nonsense": ("1", ""),
}
BROKER_CONFIGS = {
    "log.retention.ms": ("1000000", "-1", "x"),
    "log.cleaner.threads": ("1", "2", "0", "99"),
    "message.max.bytes": ("1048588", "2000000", "-1"),
    "log.segment.bytes": ("2097152", "1"),
    "num.io.threads": ("8", "9", "99", "0"),
    "unclean.leader.election.enable": ("false", "true", "maybe"),
    "min.insync.replicas": ("1", "2", "0"),
    "compression.type": ("producer", "gzip", "nonsense"),
    "log.cleanup.policy": ("delete", "compact"),
    "super.users": ("User:x",),
    "process.roles": ("broker",),
    "node.id": ("1",),
    "max.connections": ("1000", "-1"),
    "leader.replication.throttled.rate": ("1000", "-1"),
}
GROUP_CONFIGS = {"consumer.session.timeout.ms": ("45000", "1", "x"), "consumer.heartbeat.interval.ms": ("5000", "1")}
SEVERAL_VALUES = ("cleanup.policy", "leader.replication.throttled.replicas", "super.users", "process.roles")
SET, DELETE, APPEND, SUBTRACT = range(4)
FEATURES = ("eligible.leader.replicas.version", "metadata.version", "kraft.version", "group.version", "nonsense")
ACL_NAMES = ("a", "ab", "*", "b")


def _later() -> Fields:
    return {"timeout_ms": 20_000}


def create_topics(scene: Scene) -> Fields:
    topics = []
    for name in scene.some(lambda: scene.new_topic() if scene.happens(0.85) else scene.topic()):
        topics.append(
            {
                "name": name,
                "num_partitions": scene.one(1, 1, 2, 3, -1, -2, 0),
                "replication_factor": scene.one(1, 1, 1, -1, -1, 0, 2, -2),
                "assignments": [],
                "configs": [
                    {"name": key, "value": value}
                    for key, value in ([_topic_config(scene)] if scene.happens(0.3) else ())
                ],
            }
        )
        if scene.happens(0.25):
            topics[-1] |= {
                "num_partitions": scene.one(-1, -1, -1, 1),
                "replication_factor": scene.one(-1, -1, -1, 1),
                "assignments": [
                    {"partition_index": index, "broker_ids": _replicas(scene)}
                    for index in scene.one((0,), (0, 1), (0, 1, 2), (1,), (0, 0))
                ],
            }
    return {"topics": topics, "validate_only": scene.happens(0.2), **_later()}


def _replicas(scene: Scene) -> list[int]:
    return scene.one([NODE_ID], [NODE_ID], [NODE_ID], [], [NODE_ID, NODE_ID], [NODE_ID, 1], [1], [-1])


def _topic_config(scene: Scene) -> tuple[str, str | None]:
    name = scene.rng.choice(tuple(TOPIC_CONFIGS))
    return name, None if scene.happens(0.05) else scene.rng.choice(TOPIC_CONFIGS[name])


def delete_topics(scene: Scene) -> Fields:
    names = [scene.new_topic() for _ in range(scene.one(1, 1, 2))]
    topics: list[Fields] = []
    for name in names:
        topics.append(
            {"name": name, "topic_id": NO_ID}
            if scene.happens(0.6)
            else {"name": None, "topic_id": scene.topic_id(name)}
        )
        if scene.happens(0.1):
            topics.append({"name": scene.one(None, name), "topic_id": scene.one(NO_ID, scene.topic_id(name))})
    return {"topics": topics, "topic_names": names, **_later()}


def create_partitions(scene: Scene) -> Fields:
    topics = []
    for name in scene.some(scene.topic):
        count = scene.one(1, 2, 3, 4, 4, 5, 0, -1)
        assignments = None if scene.happens(0.7) else [{"broker_ids": _replicas(scene)} for _ in range(scene.one(1, 2))]
        topics.append({"name": name, "count": count, "assignments": assignments})
    return {"topics": topics, "validate_only": scene.happens(0.3), **_later()}


def metadata(scene: Scene) -> Fields:
    def topic() -> Fields:
        name = scene.topic()
        by_id = scene.happens(0.3)
        return {"name": None if by_id else name, "topic_id": scene.topic_id(name) if by_id else NO_ID}

    return {
        "topics": scene.some(topic) if scene.happens(0.9) else scene.one([], None),
        "allow_auto_topic_creation": scene.happens(0.5),
        "include_cluster_authorized_operations": scene.happens(0.2),
        "include_topic_authorized_operations": scene.happens(0.3),
    }


def describe_topic_partitions(scene: Scene) -> Fields:
    return {
        "topics": [{"name": name} for name in scene.some(scene.topic)] if scene.happens(0.95) else [],
        "response_partition_limit": scene.one(2000, 1, 2, 3, 0, -1),
        "cursor": {"topic_name": scene.topic(), "partition_index": scene.partition()} if scene.happens(0.4) else None,
    }


def describe_cluster(scene: Scene) -> Fields:
    return {
        "include_cluster_authorized_operations": scene.happens(0.3),
        "endpoint_type": scene.one(1, 1, 2, 0, 3),
        "include_fenced_brokers": scene.happens(0.3),
    }


def describe_log_dirs(scene: Scene) -> Fields:
    topics = [{"topic": name, "partitions": scene.some(scene.partition)} for name in scene.some(scene.topic)]
    return {"topics": topics}


def api_versions(scene: Scene) -> Fields:
    return {
        "client_software_name": scene.one("a", "a-b", "", "a b", "-"),
        "client_software_version": scene.one("1", "1.0", ""),
    }


# -- configurations


def _resource(scene: Scene) -> tuple[int, str, dict[str, tuple[str, ...]]]:
    return scene.one(
        *[(TOPIC, scene.topic(), TOPIC_CONFIGS)] * 4,
        *[(BROKER, scene.one(str(NODE_ID), "", "", "1", "x"), BROKER_CONFIGS)] * 2,
        (GROUP, scene.group(), GROUP_CONFIGS),
        (scene.one(0, 1, 3, 64, -1), "x", TOPIC_CONFIGS),
    )


def describe_configs(scene: Scene) -> Fields:
    resources = []
    for kind, name, known in scene.some(lambda: _resource(scene)):
        keys = scene.some(lambda known=known: scene.rng.choice([*known, "x"])) if scene.happens(0.5) else None
        resources.append({"resource_type": kind, "resource_name": name, "configuration_keys": keys})
    return {
        "resources": resources,
        "include_synonyms": scene.happens(0.4),
        "include_documentation": scene.happens(0.2),
    }


def alter_configs(scene: Scene) -> Fields:
    resources = []
    for kind, name, known in {each[:2]: each for each in scene.some(lambda: _resource(scene), 2)}.values():
        names = set(scene.some(lambda known=known: scene.rng.choice([*known])))
        configs = [{"name": key, "value": scene.rng.choice(known[key])} for key in names]
        resources.append({"resource_type": kind, "resource_name": name, "configs": configs})
    return {"resources": resources, "validate_only": scene.happens(0.3)}


def incremental_alter_configs(scene: Scene) -> Fields:
    resources = []
    for kind, name, known in scene.some(lambda: _resource(scene), 2):
        configs = []
        for key in scene.some(lambda known=known: scene.rng.choice([*known])):
            operation = scene.one(SET, SET, SET, DELETE) if key not in SEVERAL_VALUES else scene.rng.randrange(4)
            if scene.happens(0.06):
                operation = scene.one(APPEND, SUBTRACT, 4, -1)
            value = scene.rng.choice(known[key]) if operation != DELETE else scene.one(None, "1")
            configs.append({"name": key, "config_operation": operation, "value": value})
        resources.append({"resource_type": kind, "resource_name": name, "configs": configs})
    return {"resources": resources, "validate_only": scene.happens(0.3)}


def list_config_resources(scene: Scene) -> Fields:
    return {"resource_types": scene.one([], [], [TOPIC], [BROKER, LOGGER], [GROUP], [METRICS], [0], [99])}


# -- ACLs


def create_acls(scene: Scene) -> Fields:
    def creation() -> Fields:
        kind = scene.one(2, 2, 2, 3, 5) if scene.happens(0.9) else scene.one(4, 6, 0, 1, 7, 99)
        return {
            "resource_type": kind,
            "resource_name": "kafka-cluster" if kind == 4 and scene.happens(0.7) else _acl_name(scene),
            "resource_pattern_type": scene.one(3, 3, 4) if scene.happens(0.9) else scene.one(0, 1, 2, 9),
            "principal": scene.one("User:a", "User:b", "User:*") if scene.happens(0.9) else scene.one("", "a", "User:"),
            "host": scene.one("*", "*", "10.0.0.1", "", "a host"),
            "operation": scene.one(3, 4, 2, 8) if scene.happens(0.85) else scene.one(0, 1, 9, 13, 14, 99),
            "permission_type": scene.one(3, 3, 2) if scene.happens(0.9) else scene.one(0, 1, 9),
        }

    return {"creations": scene.some(creation)}


def _acl_name(scene: Scene) -> str:
    # no ACL may be on what other sequences ask for
    return scene.one(*(f"{scene.name}-acl-{name}" for name in ACL_NAMES))


def _filter(scene: Scene) -> Fields:
    return {
        "resource_type_filter": scene.one(1, 2, 2, 3) if scene.happens(0.9) else scene.one(0, 4, 99),
        "resource_name_filter": scene.one(None, _acl_name(scene), _acl_name(scene), ""),
        "pattern_type_filter": scene.one(1, 2, 3, 4) if scene.happens(0.9) else scene.one(0, 9),
        "principal_filter": scene.one("User:a", "User:b", "User:a", None, "a"),
        "host_filter": scene.one(None, None, "*", "10.0.0.1"),
        "operation": scene.one(1, 1, 3, 4) if scene.happens(0.9) else scene.one(0, 99),
        "permission_type": scene.one(1, 1, 3, 2) if scene.happens(0.9) else scene.one(0, 9),
    }


def describe_acls(scene: Scene) -> Fields:
    return _filter(scene)


def delete_acls(scene: Scene) -> Fields:
    return {"filters": scene.some(lambda: _filter(scene))}


# -- what the controller decides


def _partitions(scene: Scene) -> list[Fields]:
    return [{"topic": name, "partitions": scene.some(scene.partition)} for name in scene.some(scene.topic)]


def elect_leaders(scene: Scene) -> Fields:
    return {
        "election_type": scene.one(0, 0, 1, 1, 2, -1),
        "topic_partitions": _partitions(scene) if scene.happens(0.9) else [],
        **_later(),
    }


def alter_partition_reassignments(scene: Scene) -> Fields:
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": scene.partition(), "replicas": scene.one(None, _replicas(scene), _replicas(scene))}
                for _ in range(scene.one(1, 1, 2))
            ],
        }
        for name in scene.some(scene.topic)
    ]
    return {"topics": topics, "allow_replication_factor_change": scene.happens(0.8), **_later()}


def list_partition_reassignments(scene: Scene) -> Fields:
    topics = [{"name": name, "partition_indexes": scene.some(scene.partition)} for name in scene.some(scene.topic)]
    return {"topics": topics if scene.happens(0.8) else None, **_later()}


def update_features(scene: Scene) -> Fields:
    updates = [
        {
            "feature": name,
            "max_version_level": scene.one(0, 1, 1, 2, 7, 26, 27, 28, 99, -1),
            "allow_downgrade": scene.happens(0.3),
            "upgrade_type": scene.one(1, 1, 2, 3, 0, 4),
        }
        for name in scene.some(lambda: scene.one(*FEATURES))
    ]
    # what is finalized stays: other sequences rely on it. Version 0 cannot only ask
    return {"feature_updates": updates, "validate_only": True, "version": 1, **_later()}


def describe_quorum(scene: Scene) -> Fields:
    topics = [
        {
            "topic_name": scene.one("__cluster_metadata", "__cluster_metadata", scene.topic()),
            "partitions": [{"partition_index": scene.one(0, 0, 0, 1)}],
        }
    ]
    return {"topics": topics}


def unregister_broker(scene: Scene) -> Fields:
    return {"broker_id": scene.one(1, 99, -1)}


BUILDERS = {
    3: metadata,
    18: api_versions,
    19: create_topics,
    20: delete_topics,
    29: describe_acls,
    30: create_acls,
    31: delete_acls,
    32: describe_configs,
    33: alter_configs,
    35: describe_log_dirs,
    37: create_partitions,
    43: elect_leaders,
    44: incremental_alter_configs,
    45: alter_partition_reassignments,
    46: list_partition_reassignments,
    55: describe_quorum,
    57: update_features,
    60: describe_cluster,
    64: unregister_broker,
    74: list_config_resources,
    75: describe_topic_partitions,
}
