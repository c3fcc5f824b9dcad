"""A client with blocking sockets, used by the commands, tests and Spark tasks.

`Client` is the one class to use; the other names are what it takes, returns and raises. What is asked of whom and when
is decided in `heirlog.client`, which the simulator drives as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from heirlog.blocking.client import READ_COMMITTED, READ_UNCOMMITTED, Client, Topic
from heirlog.client.errors import (
    AuthenticationFailed,
    EpochEnd,
    LogTruncated,
    OffsetOutOfRange,
    ProducerFenced,
    TopicRecreated,
    TransactionAbortable,
    Unsupported,
)
from heirlog.client.offsets import EARLIEST, LATEST, CommittedOffset, OffsetAt, TopicPartition
from heirlog.client.security import PLAINTEXT, Security, SecurityError, security_from_properties
from heirlog.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from heirlog.blocking.producer import BatchProducer
    from heirlog.blocking.share_consumer import ShareConsumer
    from heirlog.blocking.transactions import TransactionalBatchProducer
    from heirlog.client.fetching import Fetched
    from heirlog.client.share_groups import Acknowledge, DeliveredRecords
    from heirlog.client.transactions import CommittingMember, OpenTransaction

__all__ = [
    "EARLIEST",
    "LATEST",
    "PLAINTEXT",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "Acknowledge",
    "AuthenticationFailed",
    "BatchProducer",
    "Client",
    "CommittedOffset",
    "CommittingMember",
    "DeliveredRecords",
    "EpochEnd",
    "ErrorCode",
    "Fetched",
    "KafkaError",
    "LogTruncated",
    "OffsetAt",
    "OffsetOutOfRange",
    "OpenTransaction",
    "ProducerFenced",
    "Security",
    "SecurityError",
    "ShareConsumer",
    "Topic",
    "TopicPartition",
    "TopicRecreated",
    "TransactionAbortable",
    "TransactionalBatchProducer",
    "Unsupported",
    "security_from_properties",
]

_LAZY = {
    "Acknowledge": "heirlog.client.share_groups",
    "DeliveredRecords": "heirlog.client.share_groups",
    "ShareConsumer": "heirlog.blocking.share_consumer",
    "BatchProducer": "heirlog.blocking.producer",
    "Fetched": "heirlog.client.fetching",
    "CommittingMember": "heirlog.client.transactions",
    "OpenTransaction": "heirlog.client.transactions",
    "TransactionalBatchProducer": "heirlog.blocking.transactions",
}
"""Names that most commands do not use: they are imported on first use."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
