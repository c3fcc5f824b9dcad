"""Whether a cluster is ready, and which controller is active, as its own nodes say."""

from __future__ import annotations

from heirlog.blocking import Client
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages import DescribeClusterRequest, DescribeQuorumRequest
from heirlog.protocol.types import METADATA_TOPIC

TIMEOUT_S = 1.0


def known_brokers(address: str) -> set[int]:
    """Ids of the unfenced brokers that the broker at host:port knows; empty while it does not answer.

    Its Metadata answer would not say: while all brokers are fenced it names that broker itself.
    """
    try:
        with Client(address, timeout_s=TIMEOUT_S) as client:
            response = client.send_to_any(DescribeClusterRequest())
    except OSError:
        return set()
    return {broker.broker_id for broker in response.brokers if not broker.is_fenced}


def leads_quorum(address: str) -> bool:
    """Whether the controller at host:port leads the metadata quorum; False without an answer."""
    nested = DescribeQuorumRequest
    asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
    try:
        with Client(address, timeout_s=TIMEOUT_S) as client:
            response = client.send_to_any(nested(topics=[asked]))
    except (OSError, KafkaError):
        return False
    return any(not partition.error_code for topic in response.topics for partition in topic.partitions)
