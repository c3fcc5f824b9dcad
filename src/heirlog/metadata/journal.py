"""What a run of records changed: the delta for whoever publishes it, and the way back for a controller that must undo.

A journal remembers, for everything the records touched, the value from *before the first touch*. That one memory serves
both readers:

* `undo` puts those values back through the image's own setters, so that the per-broker indexes follow. Journals are
  undone newest first; afterwards the image equals the one that the first of them started from.
* a broker reads the keys as "what changed" and compares the value before with the value now.

None means "was not there".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.metadata.acls import Acl
from heirlog.metadata.state import BrokerState, ControllerState, PartitionState, TopicState
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid

if TYPE_CHECKING:
    from heirlog.metadata.image import Image


class Journal:
    __slots__ = (
        "_epoch",
        "_offset",
        "_transaction",
        "_transaction_length",
        "acls",
        "brokers",
        "configs",
        "controllers",
        "features",
        "is_of_snapshot",
        "next_producer_id",
        "partitions",
        "topics",
    )

    def __init__(self, image: Image) -> None:
        """Start remembering; pass it to every `image.apply` until it is done with."""
        self.is_of_snapshot = False
        """The changes were found by comparing with a snapshot: what is gone was not removed by a record seen here."""
        self._offset = image.offset
        self._epoch = image.epoch
        self._transaction: list[tuple[Any, int]] | None = image.open_transaction
        # the open list only grows; where it ended is enough to cut it back
        self._transaction_length = len(image.open_transaction or ())
        self.topics: dict[Uuid, TopicState | None] = {}
        self.partitions: dict[PartitionKey, PartitionState | None] = {}
        self.brokers: dict[BrokerId, BrokerState | None] = {}
        self.controllers: dict[BrokerId, ControllerState | None] = {}
        self.configs: dict[tuple[int, str, str], str | None] = {}
        """By (resource type, resource name, config name)."""
        self.features: dict[str, int | None] = {}
        self.next_producer_id: int | None = None
        self.acls: dict[Uuid, Acl | None] = {}

    @property
    def is_empty(self) -> bool:
        """Nothing that anybody could see changed (NoOp records, or an open transaction)."""
        return not (
            self.partitions
            or self.brokers
            or self.topics
            or self.configs
            or self.features
            or self.controllers
            or self.acls
            or self.next_producer_id is not None
        )

    def changed_config_resources(self) -> list[tuple[int, str]]:
        """(resource type, resource name) in the order of their first change."""
        return list(dict.fromkeys((kind, name) for kind, name, _ in self.configs))

    def undo(self, image: Image) -> None:
        """Put everything back. The journal must be the newest one not yet undone."""
        for topic_id, topic in self.topics.items():
            if topic is not None:
                image.set_topic(topic_id, topic)
        for (topic_id, partition), state in self.partitions.items():
            # one that came and went together with its topic has nothing to be put back into
            if topic_id in image.partitions:
                image.set_partition(topic_id, partition, state)
        for topic_id, topic in self.topics.items():
            if topic is None:
                image.set_topic(topic_id, None)
        for broker_id, broker in self.brokers.items():
            image.set_broker(broker_id, broker)
        for controller_id, controller in self.controllers.items():
            image.set_controller(controller_id, controller)
        for (kind, name, key), value in self.configs.items():
            image.set_config(kind, name, key, value)
        for feature, level in self.features.items():
            image.set_feature(feature, level)
        if self.next_producer_id is not None:
            image.next_producer_id = self.next_producer_id
        for acl_id, acl in self.acls.items():
            image.set_acl(acl_id, acl)
        transaction = self._transaction
        image.open_transaction = None if transaction is None else transaction[: self._transaction_length]
        image.offset, image.epoch = self._offset, self._epoch
