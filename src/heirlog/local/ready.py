"""Whether a cluster is ready, and which controller is active, as its own nodes say."""

from __future__ import annotations

from heirlog.blocking import Client
from heirlog.client.security import PLAINTEXT, Security
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages import DescribeClusterRequest, DescribeQuorumRequest
from heirlog.protocol.types import METADATA_TOPIC

TIMEOUT_S = 1.0


def known_brokers(address: str, security: Security = PLAINTEXT) -> set[int]:
    """Ids of the unfenced brokers that the broker at host:port knows; empty while it does not answer.

    Its Metadata answer would not say: while all brokers are fenced it names that broker itself.
    """
    try:
        with Client(address, timeout_s=TIMEOUT_S, security=security) as client:
            response = client.send_to_any(DescribeClusterRequest())
    except OSError:
        return set()
    return {broker.broker_id for broker in response.brokers if not broker.is_fenced}


def led_epoch(address: str, security: Security = PLAINTEXT) -> int | None:
    """The epoch of the metadata quorum in which the controller at host:port leads; None if it does not, or is silent.

    A leader that was cut off, or paused, may take itself for one for some seconds: the higher epoch is right.
    """
    nested = DescribeQuorumRequest
    asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
    try:
        with Client(address, timeout_s=TIMEOUT_S, security=security) as client:
            response = client.send_to_any(nested(topics=[asked]))
    except (OSError, KafkaError):
        return None
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    return next((partition.leader_epoch for partition in partitions if not partition.error_code), None)
