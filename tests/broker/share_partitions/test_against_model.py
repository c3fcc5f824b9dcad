"""Random sequences against a model that knows each offset by itself, without runs.

The model receives what was acquired, and judges it. All other changes it makes on its own, and both have to agree on
every offset after each step. Reloads continue with what was stored, as a new leader does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from heirlog.broker.share_coordinator.batches import StateBatch, combined
from heirlog.broker.share_partitions.acquisition import FetchedBatch, ShareLimits, Wanted
from heirlog.broker.share_partitions.delivery_window import RecordState
from heirlog.broker.share_partitions.share_partition import Acknowledgement, SharePartition, StateTransition
from heirlog.protocol.errors import KafkaError

MEMBERS = ("a", "b", "c")
LOCK_MS = 100
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED


@dataclass
class Offset:
    state: RecordState = AVAILABLE
    count: int = 0
    member: str = ""
    locked_until_ms: int = 0
    is_changing: bool = False


@dataclass
class Stored:
    """What the coordinator has."""

    start_offset: int = 0
    batches: tuple[StateBatch, ...] = ()

    def write(self, change: StateTransition) -> None:
        self.start_offset = max(self.start_offset, change.start_offset)
        self.batches = combined(self.batches, change.batches, self.start_offset)


@dataclass
class World:
    random: Random
    limits: ShareLimits
    now_ms: int = 0
    log: list[FetchedBatch] = field(default_factory=list)
    log_start: int = 0
    stored: Stored = field(default_factory=Stored)
    model: dict[int, Offset] = field(default_factory=dict)
    changing: list[tuple[StateTransition, dict[int, RecordState]]] = field(default_factory=list)
    accepted: set[int] = field(default_factory=set)
    """Offsets whose acceptance was answered with success."""
    deliveries: int = 0

    def __post_init__(self) -> None:
        self.share = SharePartition(self.limits, 0)

    @property
    def log_end(self) -> int:
        return self.log[-1].last + 1 if self.log else 0

    # -- steps

    def append(self) -> None:
        for _ in range(self.random.randrange(1, 4)):
            gap = self.random.choice((0, 0, 0, 1, 3))
            first = self.log_end + gap
            size = self.random.choice((1, 1, 2, 5))
            self.log.append(FetchedBatch(first, first + size - 1, self.random.random() < 0.1))

    def fetch(self) -> None:
        share, member = self.share, self.random.choice(MEMBERS)
        share.log_starts_at(self.log_start)
        self._below(self.log_start)
        offset = share.next_fetch_offset
        wanted = self.random.choice((1, 2, 5, 20))
        found = [batch for batch in self.log if batch.last >= max(offset, self.log_start)]
        found = found[: self.random.randrange(0, 6)]
        is_exact = self.random.random() < 0.5
        before_end, size_before = share.end_offset, share.window.size
        asked = Wanted(wanted, self.random.choice((1, 3, 100)), is_exact)
        acquired = share.acquire(member, offset, found, asked, self.now_ms + LOCK_MS)
        for at in range(before_end, share.end_offset):
            self.model[at] = Offset()
        taken = 0
        covered = {at for batch in found for at in range(max(batch.first, offset), batch.last + 1)}
        gaps_inside = set(range(max(offset, found[0].first), found[-1].last + 1)) - covered if found else set()
        for first, last, count in acquired:
            for at in range(first, last + 1):
                known = self.model[at]
                assert known.state is AVAILABLE and not known.is_changing, "only what nobody holds is acquired"
                assert at in covered or at in gaps_inside, "only what was read is acquired"
                assert at not in self.accepted, "an accepted record is never delivered again"
                known.state, known.member, known.locked_until_ms = ACQUIRED, member, self.now_ms + LOCK_MS
                known.count += 1
                assert known.count == count <= self.limits.delivery_count
                taken += 1
        aborted = {at for batch in found if batch.is_aborted for at in range(batch.first, batch.last + 1)}
        for at in aborted:
            if at in self.model and self.model[at].state is AVAILABLE and not self.model[at].is_changing:
                self.model[at].state = RecordState.ARCHIVED
        if found:
            for at in list(range(offset, found[0].first)):
                if at in self.model and self.model[at].state is AVAILABLE and not self.model[at].is_changing:
                    self.model[at].state = RecordState.ARCHIVED
        self.deliveries += taken
        assert not is_exact or taken <= wanted
        if found and found[0].first <= before_end:
            rest = max(batch.last - batch.first for batch in found)
            assert share.window.size <= max(self.limits.record_locks, size_before) + rest
        new = sum(last - max(first, before_end) + 1 for first, last, _ in acquired if last >= before_end)
        assert not is_exact or new <= max(0, self.limits.record_locks - size_before)
        self._trim()

    def acknowledge(self) -> None:
        held = sorted(at for at, each in self.model.items() if each.state is ACQUIRED)
        if not held:
            return
        first = self.random.choice(held)
        last = first + self.random.randrange(0, 5)
        member = self.model[first].member if self.random.random() < 0.9 else self.random.choice(MEMBERS)
        types = [self.random.randrange(5) for _ in range(first, last + 1)]
        if self.random.random() < 0.5:
            types = types[:1]
        may = last < self.share.end_offset and all(
            self.model[at].state is ACQUIRED and self.model[at].member == member and not self.model[at].is_changing
            for at in range(first, last + 1)
        )
        try:
            change = self.share.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms + 2 * LOCK_MS)
        except KafkaError:
            assert not may
            return
        assert may
        after: dict[int, RecordState] = {}
        for at in range(first, last + 1):
            kind = types[0] if len(types) == 1 else types[at - first]
            if kind == RENEW:
                self.model[at].locked_until_ms = self.now_ms + 2 * LOCK_MS
                continue
            given_back = self._given_back(at)
            after[at] = (RecordState.ARCHIVED, RecordState.ACKNOWLEDGED, given_back, RecordState.ARCHIVED)[kind]
            self.model[at].is_changing = True
        said = {at: batch for batch in change.batches for at in range(batch.first_offset, batch.last_offset + 1)}
        assert {at: batch.delivery_state for at, batch in said.items()} == after
        assert all(batch.delivery_count == self.model[at].count for at, batch in said.items())
        if after:
            self.changing.append((change, after))

    def _given_back(self, at: int) -> RecordState:
        return RecordState.ARCHIVED if self.model[at].count >= self.limits.delivery_count else AVAILABLE

    def settle(self) -> None:
        if not self.changing:
            return
        # the persister keeps their order
        change, after = self.changing.pop(0)
        is_stored = self.random.random() < 0.8
        if is_stored:
            self.stored.write(change)
        self.share.settle(change, is_stored=is_stored)
        for at, state in after.items():
            if at in self.model:
                self.model[at].is_changing = False
                if is_stored:
                    self.model[at].state = state
            if is_stored and state is RecordState.ACKNOWLEDGED:
                self.accepted.add(at)
        self._trim()

    def pass_time(self) -> None:
        self.now_ms += self.random.choice((10, 60, 150))
        due_ms = self.share.next_lock_end_ms()
        held = [each for each in self.model.values() if each.state is ACQUIRED and not each.is_changing]
        assert due_ms == min((each.locked_until_ms for each in held), default=None)
        self._effective(self.share.end_locks(self.now_ms))
        for at, each in self.model.items():
            if each.state is ACQUIRED and not each.is_changing and each.locked_until_ms <= self.now_ms:
                each.state = self._given_back(at)
        self._trim()

    def end_session(self) -> None:
        member = self.random.choice(MEMBERS)
        self._effective(self.share.release(member))
        for at, each in self.model.items():
            if each.state is ACQUIRED and not each.is_changing and each.member == member:
                each.state = self._given_back(at)
        self._trim()

    def _effective(self, change: StateTransition | None) -> None:
        if change is not None:
            # behind what is under way, which may hold an older start offset
            self.changing.append((change, {}))

    def delete_records(self) -> None:
        self.log_start = min(self.log_end, self.log_start + self.random.randrange(0, 8))
        self.share.log_starts_at(self.log_start)
        self._below(self.log_start)

    def change_leader(self) -> None:
        """Requests in flight are lost or stored, and nobody learns which."""
        for change, after in self.changing:
            if self.random.random() < 0.5:
                self.stored.write(change)
                self.accepted.update(at for at, state in after.items() if state is RecordState.ACKNOWLEDGED)
            else:
                break
        self.changing = []
        self.share = SharePartition(self.limits, self.stored.start_offset, self.stored.batches)
        stored = {at: batch for batch in self.stored.batches for at in range(batch.first_offset, batch.last_offset + 1)}
        self.model = {}
        end = max(stored, default=self.stored.start_offset - 1)
        for at in range(self.stored.start_offset, end + 1):
            batch = stored.get(at)
            state = AVAILABLE if batch is None else RecordState(batch.delivery_state)
            self.model[at] = Offset(state, 0 if batch is None else batch.delivery_count)
        self._trim()
        self.share.log_starts_at(self.log_start)
        self._below(self.log_start)

    # -- what both agree on

    def _below(self, offset: int) -> None:
        for at in [at for at in self.model if at < offset]:
            del self.model[at]
        self._trim()

    def _trim(self) -> None:
        for at in sorted(self.model):
            each = self.model[at]
            if each.is_changing or not each.state.is_terminal:
                break
            del self.model[at]

    def compare(self) -> None:
        window = self.share.window
        said: dict[int, tuple[object, ...]] = {}
        expected_first = window.start_offset
        for run in window.runs:
            assert run.first == expected_first <= run.last, "the runs cover the window without a gap"
            expected_first = run.last + 1
            for at in range(run.first, run.last + 1):
                owner = run.member if run.state is ACQUIRED else ""
                said[at] = run.state, run.delivery_count, owner, run.changes_to is not None
        assert said == {
            at: (each.state, each.count, each.member if each.state is ACQUIRED else "", each.is_changing)
            for at, each in self.model.items()
        }
        assert window.start_offset >= self.stored.start_offset
        if self.model:
            assert min(self.model) == window.start_offset


@pytest.mark.parametrize("seed", range(40))
def test_runs_say_what_each_offset_says(seed: int) -> None:
    random = Random(seed)
    limits = ShareLimits(random.choice((2, 3, 5)), random.choice((8, 20, 100)))
    world = World(random, limits)
    steps = [
        *[world.append] * 2,
        *[world.fetch] * 4,
        *[world.acknowledge] * 5,
        *[world.settle] * 4,
        world.pass_time,
        world.end_session,
        world.delete_records,
    ]
    for number in range(150):
        (world.change_leader if number % 60 == 59 else random.choice(steps))()
        world.compare()
    assert world.deliveries > 10


@pytest.mark.parametrize("seed", range(10))
def test_every_record_is_finished_in_the_end(seed: int) -> None:
    """Members that accept some records and do nothing with others, while locks end: nothing is delivered for ever."""
    random = Random(seed)
    world = World(random, ShareLimits(random.choice((2, 3, 5)), 20))
    for _ in range(8):
        world.append()
    for _ in range(1500):
        world.fetch()
        world.acknowledge()
        world.settle()
        world.settle()
        if random.random() < 0.3:
            world.pass_time()
        world.compare()
        if world.share.start_offset == world.log_end:
            return
    raise AssertionError(f"still at {world.share.start_offset} of {world.log_end}")
