"""What a broker knows: how a new cluster's readiness, and a new topic's, is told."""

from __future__ import annotations

from heirlog.blocking.cluster import BlockingClient
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.metadata import MetadataRequest, MetadataResponse

TIMEOUT_S = 1.0


def known_brokers(address: str) -> set[int]:
    """Ids in the Metadata answer of the broker at host:port; empty while it does not answer."""
    response = _metadata(address, MetadataRequest(topics=[]))
    return {broker.node_id for broker in response.brokers} if response else set()


def knows_topic(address: str, topic: str) -> bool | None:
    """Whether the broker at host:port knows `topic` and a leader of each partition, or False: it knows nothing of it.

    None: something between, or no answer.
    """
    asked = [MetadataRequest.MetadataRequestTopic(name=topic)]
    response = _metadata(address, MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    if response is None:
        return None
    (found,) = response.topics
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    led = not found.error_code and all(not partition.error_code for partition in found.partitions)
    return True if led else None


def _metadata(address: str, request: MetadataRequest) -> MetadataResponse | None:
    try:
        with BlockingClient(address, timeout_s=TIMEOUT_S) as client:
            response: MetadataResponse = client.admin(request)
            return response
    except OSError:
        return None
