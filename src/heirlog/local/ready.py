"""Whether a new cluster is ready, according to the metadata of a broker."""

from __future__ import annotations

from heirlog.blocking import Client
from heirlog.protocol.messages import DescribeClusterRequest

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
