"""Which brokers a broker knows: how a new cluster's readiness is told."""

from __future__ import annotations

from heirlog.blocking.cluster import BlockingClient
from heirlog.protocol.messages.metadata import MetadataRequest

TIMEOUT_S = 1.0


def known_brokers(address: str) -> set[int]:
    """Ids in the Metadata answer of the broker at host:port; empty while it does not answer."""
    try:
        client = BlockingClient(address, timeout_s=TIMEOUT_S)
        try:
            response = client.admin(MetadataRequest(topics=[]))
        finally:
            client.close()
    except OSError:
        return set()
    return {broker.node_id for broker in response.brokers}
