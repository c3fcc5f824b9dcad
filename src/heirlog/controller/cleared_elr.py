"""What a change of `min.insync.replicas` removes from the ELR, and how the recovery manager remembers it.

A ClearElr record empties both lists: eligibility that was proven under one min ISR proves nothing under another one.
With the recovery manager off nothing more happens. With the manager on, a partition whose ISR is below its new
effective min ISR keeps the members of both lists as LastKnownELR, so that a recovery knows which replicas to ask. These
records follow the ClearElr in the same batch. If one batch is too small, all of them are one metadata transaction;
otherwise a failover could lose half of the lists.

Source: KIP-966, "Other behaviors", "Unclean recovery".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from heirlog.controller.controller_result import all_or_none
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.min_isr import MIN_ISR
from heirlog.protocol.records import ClearElrRecord, ConfigRecord, PartitionChangeRecord
from heirlog.protocol.types import Uuid

_NAME: Final = "Changes of min.insync.replicas"


def with_losses(image: Image, static: StaticConfig, records: Sequence[Any], max_records: int) -> list[Any]:
    """`records` of configuration changes, then the LastKnownELRs that keep what their ClearElr records remove."""
    losses = _losses(image, static, records) if image.recovery_manager_enabled else ()
    return all_or_none(_NAME, [*records, *losses], max_records)


def _losses(image: Image, static: StaticConfig, records: Sequence[Any]) -> Iterator[PartitionChangeRecord]:
    changed = {
        (record.resource_type, record.resource_name): record.value
        for record in records
        if isinstance(record, ConfigRecord) and record.name == MIN_ISR
    }

    def stored(kind: int, name: str) -> str | None:
        return changed[kind, name] if (kind, name) in changed else image.config(kind, name, MIN_ISR)

    for topic_id in _cleared(image, records):
        value = stored(TOPIC_RESOURCE, image.topics[topic_id].name)
        if value is None:
            # while ELR is on, no broker has a value of its own
            value = stored(BROKER_RESOURCE, "")
        min_isr = static.int(MIN_ISR) if value is None else int(value)
        for partition, state in sorted(image.partitions[topic_id].items()):
            remembered: list[int] = list(dict.fromkeys((*state.last_known_elr, *state.elr)))
            if remembered and len(state.isr) < min(min_isr, len(state.replicas)):
                yield PartitionChangeRecord(topic_id=topic_id, partition_id=partition, last_known_elr=remembered)


def _cleared(image: Image, records: Sequence[Any]) -> list[Uuid]:
    names = {record.topic_name for record in records if isinstance(record, ClearElrRecord)}
    if "" in names:
        return sorted(image.partitions)
    return sorted(image.topic_ids[name] for name in names if name in image.topic_ids)
