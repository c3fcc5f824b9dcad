"""Committed metadata, from the quorum into the image that the broker role and the clients see.

    loading      records are applied, and the journal collects what they changed; the broker role is not notified
    publishing   once the broker role says that it has caught up with its own registration (without that role: once
                 everything that was committed is applied): first everything collected so far in one call, then every
                 commit

Every node keeps its own snapshots of the metadata log, whatever its roles. The image here has only committed state, so
a snapshot may be written between any two batches.

Without the first phase a restarted broker would act on metadata from before its stop: it would lead partitions that it
lost while it was away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from heirlog.metadata.apply import apply_all, image_of_snapshot
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.node.snapshots import SnapshotTrigger
from heirlog.raft.replay import CommittedBatch


class MetadataPublisher:
    """A quorum listener (`raft.replay.QuorumListener`).

    on_applied: called after every commit, also while loading (the broker role reports the applied offset).
    on_image: called with the image and the changes since the last call, once publishing.
    snapshots: when to write one; `write_snapshot(records, offset, epoch)` does (`raft.Quorum.snapshot`).
    """

    def __init__(
        self,
        on_applied: Callable[[], None],
        on_image: Callable[[Image, ImageJournal], None],
        snapshots: SnapshotTrigger,
        write_snapshot: Callable[[Iterable[Any], int, int], bool],
    ) -> None:
        self.image = Image()
        self.applied_time_ms = -1
        """When the newest applied record was written; unknown right after a snapshot."""
        self._snapshots = snapshots
        self._write_snapshot = write_snapshot
        self._journal = self.image.journal()
        self._on_applied = on_applied
        self._on_image = on_image
        self._publishing = False

    def publish(self) -> None:
        """The node has caught up: hand over what was collected, and from now on every commit. Idempotent."""
        if not self._publishing:
            self._publishing = True
            self._hand_over()

    def on_snapshot(self, records: Iterable[Any], offset: int, epoch: int) -> None:
        before, collected = self.image, self._journal
        self.image = image_of_snapshot(records, offset, epoch)
        self._journal = differences(before, self.image, collected)
        self._snapshots.taken()
        self._applied()

    def on_commit(self, batches: list[CommittedBatch]) -> None:
        image, journal = self.image, self._journal
        for batch in batches:
            apply_all(image, batch.records, batch.base_offset, batch.epoch, journal)
            # a batch of control records applies nothing and still counts: "caught up" is judged by offsets
            image.offset, image.epoch = batch.last_offset, batch.epoch
            self.applied_time_ms = batch.append_time_ms
            self._snapshots.committed(batch)
        self._applied()
        # half a metadata transaction has no records of its own that a snapshot could hold
        is_due = image.open_transaction is None and self._snapshots.is_due()
        if is_due and self._write_snapshot(image.records(), image.offset, image.epoch):
            self._snapshots.taken()

    def on_leader_change(self, leader_id: int, epoch: int, is_me: bool) -> None:
        """Nothing: who leads is asked of the quorum when a request is to be sent."""

    def _applied(self) -> None:
        self._on_applied()
        if self._publishing:
            self._hand_over()

    def _hand_over(self) -> None:
        journal, self._journal = self._journal, self.image.journal()
        # a snapshot that equals the image may stand for changes to the values that there were
        if journal.is_of_snapshot or not journal.is_empty:
            self._on_image(self.image, journal)


PARTS = (
    "topics",
    "brokers",
    "controllers",
    "features",
    "partitions",
    "configs",
    "acls",
    "client_quotas",
    "scram",
    "delegation_tokens",
)


def differences(before: Image, after: Image, collected: ImageJournal) -> ImageJournal:
    """What turned `before` into `after`, on top of what was collected about `before` and not yet handed over."""
    journal = after.journal()
    journal.is_of_snapshot = True
    for part in ("topics", "brokers", "controllers", "features"):
        old, new = getattr(before, part), getattr(after, part)
        _compare(old, new, getattr(journal, part))
    _compare(_partitions(before), _partitions(after), journal.partitions)
    _compare(_configs(before), _configs(after), journal.configs)
    _compare(before.acls.by_id, after.acls.by_id, journal.acls)
    _compare(before.scram, after.scram, journal.scram)
    _compare(before.delegation_tokens, after.delegation_tokens, journal.delegation_tokens)
    _compare(_client_quotas(before), _client_quotas(after), journal.client_quotas)
    for part in PARTS:
        # what was collected earlier remembers an older value "from before"
        getattr(journal, part).update(getattr(collected, part))
    return journal


def _compare(old: dict[Any, Any], new: dict[Any, Any], changed: dict[Any, Any]) -> None:
    for key, value in old.items():
        if new.get(key) != value:
            changed[key] = value
    for key in new:
        if key not in old:
            changed[key] = None


def _partitions(image: Image) -> dict[Any, Any]:
    return {
        (topic_id, index): state
        for topic_id, partitions in image.partitions.items()
        for index, state in partitions.items()
    }


def _configs(image: Image) -> dict[Any, Any]:
    return {(kind, name, key): value for (kind, name), values in image.configs.items() for key, value in values.items()}


def _client_quotas(image: Image) -> dict[Any, Any]:
    return {
        (entity, key): value
        for entity, quotas in image.client_quotas.by_entity.items()
        for key, value in quotas.items()
    }
