"""Which operations each API asks for: the one table.

On a broker's listener an API that the active controller executes asks for nothing: the controller asks, of the client
that stands in the Envelope. What the needs of a rule mean, says `call.Rule`; what is answered where they are not met,
says its guard. `tests/node/test_authorization.py` holds that every route has a rule, and `docs/guides/secure.md`
shows the table.

Source: KIP-11 and the KIPs of the APIs; Kafka's KafkaApis and ControllerApis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heirlog.metadata.acls import Operation, ResourceType
from heirlog.node.authorization import cluster, configs, describing, groups, topics
from heirlog.node.authorization.call import Need, Rule
from heirlog.node.router import Role
from heirlog.protocol.api import DESCRIBE_RECOVERY, GET_REPLICA_LOG_INFO

CLUSTER, TOPIC, GROUP = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

NODES_ONLY: Final = Rule(cluster.whole, (Need(Operation.CLUSTER_ACTION, CLUSTER),))
"""What brokers and controllers ask each other."""
DESCRIBE_CLUSTER: Final = Rule(cluster.whole, (Need(Operation.DESCRIBE, CLUSTER),))
ALTER_CLUSTER: Final = Rule(cluster.whole, (Need(Operation.ALTER, CLUSTER),))
OPEN: Final = Rule(cluster.open_to_all)
FORWARDED: Final = Rule(cluster.open_to_all)

_READ_GROUP: Final = (Need(Operation.READ, GROUP),)
_DESCRIBE_CONFIGS: Final = Rule(
    configs.describe_configs,
    (
        Need(Operation.DESCRIBE_CONFIGS, TOPIC),
        Need(Operation.DESCRIBE_CONFIGS, GROUP),
        Need(Operation.DESCRIBE_CONFIGS, CLUSTER),
    ),
)
_ALTER_CONFIGS: Final = (
    Need(Operation.ALTER_CONFIGS, TOPIC),
    Need(Operation.ALTER_CONFIGS, GROUP),
    Need(Operation.ALTER_CONFIGS, CLUSTER),
)
RULES: Final[Mapping[Role, Mapping[int, Rule]]] = {
    Role.BROKER: {
        0: Rule(topics.produce, (Need(Operation.WRITE, TOPIC), Need(Operation.WRITE, TRANSACTIONAL_ID))),
        1: Rule(cluster.fetch, (Need(Operation.READ, TOPIC), Need(Operation.CLUSTER_ACTION, CLUSTER))),
        2: Rule(topics.list_offsets, (Need(Operation.DESCRIBE, TOPIC),)),
        3: Rule(
            describing.metadata,
            (Need(Operation.DESCRIBE, TOPIC),),
            also=(Need(Operation.CREATE, CLUSTER), Need(Operation.CREATE, TOPIC), Need(Operation.DESCRIBE, CLUSTER)),
        ),
        8: Rule(groups.offset_commit, (Need(Operation.READ, GROUP), Need(Operation.READ, TOPIC))),
        9: Rule(groups.offset_fetch, (Need(Operation.DESCRIBE, GROUP), Need(Operation.DESCRIBE, TOPIC))),
        10: Rule(
            groups.find_coordinator, (Need(Operation.DESCRIBE, GROUP), Need(Operation.DESCRIBE, TRANSACTIONAL_ID))
        ),
        11: Rule(groups.join_group, _READ_GROUP),
        12: Rule(groups.heartbeat, _READ_GROUP),
        13: Rule(groups.leave_group, _READ_GROUP),
        14: Rule(groups.sync_group, _READ_GROUP),
        15: Rule(groups.describe_groups, (Need(Operation.DESCRIBE, GROUP),)),
        16: Rule(groups.list_groups, (Need(Operation.DESCRIBE, CLUSTER), Need(Operation.DESCRIBE, GROUP))),
        18: OPEN,
        19: FORWARDED,
        20: FORWARDED,
        21: Rule(topics.delete_records, (Need(Operation.DELETE, TOPIC),)),
        22: Rule(
            cluster.init_producer_id,
            (
                Need(Operation.IDEMPOTENT_WRITE, CLUSTER),
                Need(Operation.WRITE, TOPIC),
                Need(Operation.WRITE, TRANSACTIONAL_ID),
            ),
        ),
        23: Rule(
            topics.offset_for_leader_epoch,
            (Need(Operation.CLUSTER_ACTION, CLUSTER), Need(Operation.DESCRIBE, TOPIC)),
        ),
        29: DESCRIBE_CLUSTER,
        30: FORWARDED,
        31: FORWARDED,
        32: _DESCRIBE_CONFIGS,
        33: FORWARDED,
        35: DESCRIBE_CLUSTER,
        37: FORWARDED,
        42: Rule(groups.delete_groups, (Need(Operation.DELETE, GROUP),)),
        43: FORWARDED,
        44: Rule(configs.alter_loggers, (Need(Operation.ALTER_CONFIGS, CLUSTER),)),
        45: FORWARDED,
        46: FORWARDED,
        47: Rule(groups.offset_delete, (Need(Operation.DELETE, GROUP), Need(Operation.READ, TOPIC))),
        55: FORWARDED,
        57: FORWARDED,
        60: Rule(cluster.describe_brokers, also=(Need(Operation.DESCRIBE, CLUSTER),)),
        61: Rule(topics.describe_producers, (Need(Operation.READ, TOPIC),)),
        64: FORWARDED,
        66: Rule(cluster.list_transactions, (Need(Operation.DESCRIBE, TRANSACTIONAL_ID),)),
        74: Rule(cluster.whole, (Need(Operation.DESCRIBE_CONFIGS, CLUSTER),)),
        75: Rule(describing.describe_topic_partitions, (Need(Operation.DESCRIBE, TOPIC),)),
        80: FORWARDED,
        81: FORWARDED,
        GET_REPLICA_LOG_INFO: Rule(cluster.replica_log_info, (Need(Operation.CLUSTER_ACTION, CLUSTER),)),
        DESCRIBE_RECOVERY: FORWARDED,
    },
    Role.CONTROLLER: {
        1: NODES_ONLY,
        18: OPEN,
        19: Rule(
            topics.create_topics,
            (Need(Operation.CREATE, CLUSTER), Need(Operation.CREATE, TOPIC)),
            also=(Need(Operation.DESCRIBE_CONFIGS, TOPIC),),
        ),
        20: Rule(
            topics.delete_topics,
            (Need(Operation.DELETE, CLUSTER), Need(Operation.DELETE, TOPIC)),
            also=(Need(Operation.DESCRIBE, TOPIC),),
        ),
        29: DESCRIBE_CLUSTER,
        30: Rule(cluster.create_acls, (Need(Operation.ALTER, CLUSTER),)),
        31: Rule(cluster.delete_acls, (Need(Operation.ALTER, CLUSTER),)),
        32: _DESCRIBE_CONFIGS,
        33: Rule(configs.alter_configs, _ALTER_CONFIGS),
        37: Rule(topics.create_partitions, (Need(Operation.ALTER, TOPIC),)),
        # ALTER is what Kafka shipped, CLUSTER_ACTION what KIP-966 asks for
        43: Rule(cluster.elect_leaders, (Need(Operation.ALTER, CLUSTER), Need(Operation.CLUSTER_ACTION, CLUSTER))),
        44: Rule(configs.incremental_alter_configs, _ALTER_CONFIGS, also=(Need(Operation.CLUSTER_ACTION, CLUSTER),)),
        45: ALTER_CLUSTER,
        46: DESCRIBE_CLUSTER,
        52: NODES_ONLY,
        53: NODES_ONLY,
        54: NODES_ONLY,
        55: DESCRIBE_CLUSTER,
        56: NODES_ONLY,
        57: Rule(cluster.update_features, (Need(Operation.ALTER, CLUSTER),)),
        58: NODES_ONLY,
        59: NODES_ONLY,
        60: Rule(
            cluster.describe_controllers,
            (Need(Operation.ALTER, CLUSTER),),
            also=(Need(Operation.DESCRIBE, CLUSTER),),
        ),
        62: NODES_ONLY,
        63: NODES_ONLY,
        64: ALTER_CLUSTER,
        67: NODES_ONLY,
        70: NODES_ONLY,
        73: NODES_ONLY,
        80: ALTER_CLUSTER,
        81: ALTER_CLUSTER,
        82: NODES_ONLY,
        DESCRIBE_RECOVERY: DESCRIBE_CLUSTER,
    },
}
