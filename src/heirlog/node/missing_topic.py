"""What a topic looks like that nobody has created and a client or coordinator needs now.

An ordinary one has the controller's defaults. `__consumer_offsets` has what Kafka gives it: partitions and replicas of
its own configuration, compacted, in small segments. With fewer brokers than `offsets.topic.replication.factor` the
controller refuses it, as on Apache Kafka: offsets that were meant to be kept three times must not begin their life on
one broker. `heirlog up` writes a factor that fits its cluster.
"""

from __future__ import annotations

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.protocol.messages.create_topics import CreateTopicsRequest

CONTROLLER_DEFAULT = -1
"""num.partitions and default.replication.factor."""
SEGMENT_BYTES_MIN = 1_048_576
"""The least that segment.bytes of a topic may be."""

Topic = CreateTopicsRequest.CreatableTopic


def missing_topic(config: StaticConfig, name: str) -> CreateTopicsRequest.CreatableTopic:
    if name != OFFSETS_TOPIC:
        return Topic(name=name, num_partitions=CONTROLLER_DEFAULT, replication_factor=CONTROLLER_DEFAULT)
    segment_bytes = max(SEGMENT_BYTES_MIN, config.int("offsets.topic.segment.bytes"))
    return Topic(
        name=name,
        num_partitions=config.int("offsets.topic.num.partitions"),
        replication_factor=config.int("offsets.topic.replication.factor"),
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(segment_bytes)),
            )
        ],
    )
