"""What a run of records changed: the delta for publishing it, and the old values for a controller that must undo it.

A journal remembers, for everything the records touched, the value from *before the first touch*. That one memory serves
both readers:

* `Image.undo` puts those values back through the image's own setters, so that the per-broker indexes follow. Journals
  are undone newest first; afterwards the image equals the one that the first of them started from.
* a broker reads the keys as "what changed" and compares the value before with the value now.

None means "was not there".
"""

from __future__ import annotations

from typing import Any

from heirlog.metadata.acls import Acl
from heirlog.metadata.client_quotas import Entity
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.metadata.state import (
    BrokerRegistration,
    ControllerRegistration,
    PartitionRegistration,
    ScramKey,
    TopicImage,
)
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid
from heirlog.security.scram import ScramCredential


class ImageJournal:
    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "epoch",
        "features",
        "is_of_snapshot",
        "next_producer_id",
        "offset",
        "partitions",
        "scram",
        "topics",
        "transaction",
        "transaction_length",
    )

    def __init__(self, offset: int, epoch: int, open_transaction: list[tuple[Any, int]] | None) -> None:
        """`Image.journal` makes one; pass it to every `apply` whose changes it shall remember."""
        self.is_of_snapshot = False
        """The changes were found by comparing with a snapshot: what is gone was not removed by a record seen here."""
        self.offset = offset
        self.epoch = epoch
        self.transaction = open_transaction
        # the open list only grows; where it ended is enough to cut it back
        self.transaction_length = len(open_transaction or ())
        self.topics: dict[Uuid, TopicImage | None] = {}
        self.partitions: dict[PartitionKey, PartitionRegistration | None] = {}
        self.brokers: dict[BrokerId, BrokerRegistration | None] = {}
        self.controllers: dict[BrokerId, ControllerRegistration | None] = {}
        self.configs: dict[tuple[int, str, str], str | None] = {}
        """By (resource type, resource name, config name)."""
        self.features: dict[str, int | None] = {}
        self.next_producer_id: int | None = None
        self.acls: dict[Uuid, Acl | None] = {}
        self.scram: dict[ScramKey, ScramCredential | None] = {}
        self.delegation_tokens: dict[str, DelegationToken | None] = {}
        self.client_quotas: dict[tuple[Entity, str], float | None] = {}
        """By (entity, name of the quota)."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing visible changed (NoOp records, or an open transaction)."""
        return not (
            self.partitions
            or self.brokers
            or self.topics
            or self.configs
            or self.features
            or self.controllers
            or self.acls
            or self.scram
            or self.delegation_tokens
            or self.client_quotas
            or self.next_producer_id is not None
        )

    def changed_config_resources(self) -> list[tuple[int, str]]:
        """(resource type, resource name) in the order of their first change."""
        return list(dict.fromkeys((kind, name) for kind, name, _ in self.configs))
