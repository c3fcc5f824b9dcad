"""The state of one share partition: how far a share group has got in one partition of a topic.

    initialized --write--> updates on a snapshot --many, or none for a while--> the next snapshot --delete--> nothing

Two epochs keep out writers that do not know that they were replaced:

* the *state epoch* rises with each initialization (a group that subscribes, or an administrator who moves its start
  offset). A leader that has loaded an earlier state cannot write (FENCED_STATE_EPOCH).
* the *leader epoch* is that of the partition's leader. The first read by a newer leader is written down, so the old one
  is fenced from then on (FENCED_LEADER_EPOCH), even if the new one writes nothing. -1 in a write skips the check; in a
  read it is older than any leader.

A group that is deleted and begins again has the same state epochs again. So a new state has no leader (-1) until one
reads it, and takes no write of a leader before: that one has loaded the state of the deleted group.

Rules return the record that makes a change; applying it is the only way the state changes.

Source: KIP-932.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from heirlog.broker.share_coordinator.batches import StateBatch, StateBatches, combined
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import Uuid, uuid_text

NO_EPOCH = -1
"""In a write: do not compare the epoch."""
UNCHANGED = -1
"""Start offset of a write that does not move it."""
UNKNOWN_COUNT = -1
UNINITIALIZED_OFFSET = -1
NOT_READ = -1
"""Leader epoch of a state that no leader has read."""
LOWEST_STATE_EPOCH = 0
"""Below that of each state that a group has initialized. It restores a state that an election has lost."""


class SharePartitionKey(NamedTuple):
    group: str
    topic_id: Uuid
    partition: int

    @property
    def text(self) -> str:
        """What the partition of `__share_group_state` is chosen by, and FindCoordinator is asked for."""
        return f"{self.group}:{uuid_text(self.topic_id)}:{self.partition}"


@dataclass(frozen=True, slots=True)
class ShareState:
    snapshot_epoch: int = 0
    """Number of the last snapshot."""
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_OFFSET
    """-1: initialized, and the first leader that loads it chooses where to start."""
    delivery_complete_count: int = UNKNOWN_COUNT
    """Records at or above the start offset that need no delivery any more."""
    batches: StateBatches = ()
    create_ms: int = 0
    write_ms: int = 0
    """Of the last snapshot. It differs from `create_ms` in a snapshot that only exists for pruning."""
    update_count: int = 0
    """Updates since the last snapshot; not stored."""


class ShareUpdate(NamedTuple):
    """What a write changes; the rest stays as in the snapshot."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: StateBatches


class ShareRecord(NamedTuple):
    key: SharePartitionKey
    value: ShareState | ShareUpdate | None
    """None: the state is deleted."""


class StateWrite(NamedTuple):
    """What a leader asks to be written."""

    state_epoch: int
    leader_epoch: int
    start_offset: int = UNCHANGED
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()


# -- rules ------------------------------------------------------------------------------------------------------------


def initialized(before: ShareState | None, state_epoch: int, start_offset: int, wall_ms: int) -> ShareState:
    """A new state, or a new beginning of an old one. Raises KafkaError.

    The same epoch is the same request, sent again or arriving late: `before` itself, because members may have got
    further meanwhile.
    """
    if before is None:
        # a leader that has loaded the state before it was lost may write what it knows
        leader_epoch = 0 if state_epoch == LOWEST_STATE_EPOCH else NOT_READ
        return ShareState(0, state_epoch, leader_epoch, start_offset, create_ms=wall_ms, write_ms=wall_ms)
    if state_epoch < before.state_epoch:
        raise KafkaError(
            ErrorCode.FENCED_STATE_EPOCH,
            f"the share partition was initialized with state epoch {before.state_epoch}, and this one is {state_epoch}",
        )
    if state_epoch == before.state_epoch:
        return before
    return ShareState(
        before.snapshot_epoch + 1,
        state_epoch,
        # a leader that was fenced before stays so
        before.leader_epoch,
        start_offset,
        create_ms=wall_ms,
        write_ms=wall_ms,
    )


def is_newest_leader(leader_epoch: int, newest: int) -> bool:
    """Guard 38: only the newest leader of a partition reads and writes the state of its share partitions (KIP-932).

    Without it one that does not know yet that it was replaced tells its members that records are finished which the
    next leader delivers again.
    """
    return leader_epoch >= newest


def check_leader(before: ShareState | None, leader_epoch: int) -> ShareState:
    """The state that this leader may read or write. Raises KafkaError."""
    state = _existing(before)
    if not is_newest_leader(leader_epoch, state.leader_epoch):
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"leader epoch {state.leader_epoch} of the partition has used the state, and this one is {leader_epoch}",
        )
    return state


def _existing(state: ShareState | None) -> ShareState:
    if state is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The share partition has not been initialized.")
    return state


def read_by(state: ShareState, leader_epoch: int) -> ShareUpdate | None:
    """What a read by a newer leader writes; None for one that is known."""
    if leader_epoch <= state.leader_epoch:
        return None
    return ShareUpdate(state.snapshot_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())


def written(before: ShareState | None, write: StateWrite, updates_max: int, wall_ms: int) -> ShareState | ShareUpdate:
    """An update; a snapshot if there are `updates_max` updates already. Raises KafkaError."""
    state = _existing(before)
    if write.leader_epoch != NO_EPOCH:
        check_leader(state, write.leader_epoch)
        if state.leader_epoch == NOT_READ:
            raise KafkaError(
                ErrorCode.FENCED_STATE_EPOCH,
                "the group was deleted and began again after the leader had loaded the state of the share partition",
            )
    if write.state_epoch != NO_EPOCH and write.state_epoch < state.state_epoch:
        raise KafkaError(
            ErrorCode.FENCED_STATE_EPOCH,
            f"the share partition was initialized again with state epoch {state.state_epoch}, "
            f"and the leader has loaded {write.state_epoch}",
        )
    update = ShareUpdate(
        state.snapshot_epoch,
        state.leader_epoch if write.leader_epoch == NO_EPOCH else write.leader_epoch,
        write.start_offset,
        write.delivery_complete_count,
        combined((), write.batches, write.start_offset),
    )
    if state.update_count < updates_max:
        return update
    return next_snapshot(updated(state, update), wall_ms, create_ms=wall_ms)


def next_snapshot(state: ShareState, wall_ms: int, *, create_ms: int | None = None) -> ShareState:
    """All of the state again, so that its earlier records are not needed any more."""
    return replace(
        state,
        snapshot_epoch=state.snapshot_epoch + 1,
        create_ms=state.create_ms if create_ms is None else create_ms,
        write_ms=wall_ms,
        update_count=0,
    )


def updated(state: ShareState, update: ShareUpdate) -> ShareState:
    # a write may arrive once more, after later ones: what is finished stays so until the next initialization
    start_offset = max(state.start_offset, update.start_offset)
    return replace(
        state,
        leader_epoch=max(state.leader_epoch, update.leader_epoch),
        start_offset=start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=combined(state.batches, update.batches, start_offset),
        update_count=state.update_count + 1,
    )


def is_cold(state: ShareState) -> bool:
    """Whether the last snapshot was made for pruning, and nothing was written since."""
    return state.update_count == 0 and state.create_ms != state.write_ms


# -- applying ---------------------------------------------------------------------------------------------------------


def applied(before: ShareState | None, record: ShareRecord) -> ShareState | None:
    """Never fails: pruning and a lossy election may leave any end of a log. An update without its snapshot says
    nothing, because the offsets that it does not name are not known."""
    value = record.value
    if isinstance(value, ShareUpdate):
        return None if before is None else updated(before, value)
    if value is None or before is None or value.leader_epoch >= before.leader_epoch:
        return value
    return replace(value, leader_epoch=before.leader_epoch)
