"""The rules of the controllers' metadata logs, each seen to find what it is for."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from heirlog.protocol.batch import encode_batch
from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.snapshot import SnapshotId
from heirlog.sim.metadata_log_checker import MetadataLogChecker

A, B, C = (Voter(BrokerId(n), Uuid(bytes([n]) * 16), Endpoint(f"controller-{n}", 9093)) for n in (1, 2, 3))
FOLLOWER = EpochState(QuorumRole.FOLLOWER, 2)
LEADER = EpochState(QuorumRole.LEADER, 2)


@dataclass
class Log:
    """One record per batch, each written as an epoch and a value."""

    records: list[tuple[int, bytes]]
    start_offset: int = 0
    flushed: int | None = None
    voters: tuple[Voter, ...] = (A, B, C)
    snapshots: list[SnapshotId] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return len(self.records)

    @property
    def flushed_offset(self) -> int:
        return self.end_offset if self.flushed is None else self.flushed

    def epoch_below(self, offset: int) -> int:
        return self.records[min(offset, self.end_offset) - 1][0] if offset > 0 and self.records else 0

    def read_bytes(self, offset: int, max_bytes: int, upto_offset: int) -> bytes:
        wanted = list(enumerate(self.records))[offset:upto_offset]
        return b"".join(bytes(encode_batch([(None, value, (), 0)], at, epoch)) for at, (epoch, value) in wanted)


@dataclass
class Controller:
    is_active: bool = True
    epoch: int = 2


@pytest.fixture
def found() -> list[str]:
    return []


@pytest.fixture
def checker(found: list[str]) -> MetadataLogChecker:
    return MetadataLogChecker(lambda rule, sentence: found.append(rule))


def one() -> Log:
    return Log([(1, b"a"), (1, b"b"), (2, b"c")])


def observe(
    checker: MetadataLogChecker, log: Log, voter: Voter = A, at: int = -1, state: EpochState = FOLLOWER
) -> None:
    checker.observe(f"controller-{voter.id}", voter.key, log, at, state)


# Q4


def test_equal_logs_and_shorter_ones_match(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one())
    observe(checker, one(), B)
    observe(checker, Log(one().records[:2]), C)
    assert found == []


def test_two_batches_of_one_epoch_at_one_offset_are_found(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one())
    observe(checker, Log([(1, b"a"), (1, b"x")]), B)
    assert found == ["Q4"]


def test_one_batch_above_two_different_ones_is_found(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, Log([(1, b"a"), (1, b"b"), (3, b"d")]))
    observe(checker, Log([(1, b"a"), (2, b"x"), (3, b"d")]), B)
    assert found == ["Q4"]


def test_what_replaces_a_truncated_record_is_compared_again(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one())
    log = Log([(1, b"a"), (1, b"b"), (1, b"x")])
    observe(checker, log, B)
    del log.records[2]
    observe(checker, log, B)
    log.records.append((2, b"y"))
    observe(checker, log, B)
    assert found == ["Q4"]


def test_a_log_without_its_first_records_is_compared(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one())
    observe(checker, Log(one().records, start_offset=2), B)
    assert found == []
    observe(checker, Log([(1, b"a"), (1, b"b"), (2, b"x")], start_offset=2), C)
    assert found == ["Q4"]


def test_what_follows_a_snapshot_at_once_is_known(checker: MetadataLogChecker, found: list[str]) -> None:
    log = one()
    observe(checker, log)
    log.start_offset, log.snapshots = 3, [SnapshotId(3, 2)]
    log.records.append((2, b"d"))
    observe(checker, log, A, 4)
    log.snapshots = [SnapshotId(3, 2), SnapshotId(4, 2)]
    observe(checker, log, A, 4)
    assert found == []


# Q6, Q7


def test_a_leader_commits_what_a_majority_has_flushed(checker: MetadataLogChecker, found: list[str]) -> None:
    leader = one()
    observe(checker, leader, A, state=LEADER)
    observe(checker, one(), B)
    observe(checker, leader, A, 3, LEADER)
    assert found == []


@pytest.mark.parametrize(
    "other",
    [
        Log(one().records, flushed=2),
        Log([(1, b"a"), (1, b"b")]),
        Log([(1, b"a"), (1, b"b"), (1, b"x")]),
    ],
    ids=["not flushed", "shorter", "of another epoch"],
)
def test_without_a_majority_nothing_is_committed(checker: MetadataLogChecker, found: list[str], other: Log) -> None:
    leader = one()
    observe(checker, other, B)
    observe(checker, leader, A, 3, LEADER)
    assert found == ["Q6"]


def test_the_copy_of_one_that_does_not_vote_is_none(checker: MetadataLogChecker, found: list[str]) -> None:
    replaced = Voter(B.id, Uuid(bytes([9]) * 16), B.endpoint)
    observe(checker, one(), replaced)
    observe(checker, one(), A, 3, LEADER)
    assert found == ["Q6"]


def test_what_a_disk_acknowledged_before_it_was_replaced_counts(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one(), B)
    checker.disk_changed("controller-2")
    observe(checker, one(), A, 3, LEADER)
    assert found == []


@pytest.mark.parametrize(("reopened", "breaks"), [(3, []), (2, ["Q6"])], ids=["whole", "shorter"])
def test_what_an_earlier_process_flushed_counts_if_it_is_still_there(
    checker: MetadataLogChecker, found: list[str], reopened: int, breaks: list[str]
) -> None:
    observe(checker, one(), B)
    observe(checker, Log(one().records[:reopened], flushed=0), B)
    observe(checker, one(), A, 3, LEADER)
    assert found == breaks


def test_records_of_earlier_epochs_are_not_committed_alone(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one(), B)
    observe(checker, one(), A, 2, LEADER)
    assert found == ["Q7"]


def test_what_is_committed_never_shrinks(checker: MetadataLogChecker, found: list[str]) -> None:
    log = one()
    for high_watermark in (1, 2, 2, 1):
        observe(checker, log, A, high_watermark)
    assert found == ["Q7"]
    observe(checker, one(), A, 0)
    assert found == ["Q7"], "a restarted controller does not know"


def test_what_is_committed_is_in_the_log(checker: MetadataLogChecker, found: list[str]) -> None:
    observe(checker, one(), A, 4)
    assert found == ["Q7"]


# Q9


@pytest.mark.parametrize(
    ("controller", "state", "applied_epoch", "rules"),
    [
        (Controller(), LEADER, 2, []),
        (Controller(is_active=False), FOLLOWER, 1, []),
        (Controller(), FOLLOWER, 2, ["Q9"]),
        (Controller(epoch=1), LEADER, 2, ["Q9"]),
        (Controller(), LEADER, 1, ["Q9"]),
    ],
    ids=["active", "not active", "deposed", "of an older epoch", "too early"],
)
def test_the_active_controller_leads_and_has_everything(
    checker: MetadataLogChecker,
    found: list[str],
    controller: Controller,
    state: EpochState,
    applied_epoch: int,
    rules: list[str],
) -> None:
    checker.check_active("a", controller, state, applied_epoch)
    assert found == rules


# Q14


@pytest.mark.parametrize(
    ("snapshot", "high_watermark", "rules"),
    [
        (SnapshotId(2, 1), 2, []),
        (SnapshotId(0, 0), -1, []),
        (SnapshotId(3, 2), 2, ["Q14"]),
        (SnapshotId(2, 2), 3, ["Q14"]),
    ],
    ids=["committed", "of the format", "not committed", "of another epoch"],
)
def test_a_snapshot_ends_with_a_committed_batch(
    checker: MetadataLogChecker, found: list[str], snapshot: SnapshotId, high_watermark: int, rules: list[str]
) -> None:
    log = one()
    log.snapshots.append(snapshot)
    observe(checker, log, A, high_watermark)
    assert found == rules


def test_a_snapshot_has_what_is_missing_in_the_log(checker: MetadataLogChecker, found: list[str]) -> None:
    log = one()
    observe(checker, log)
    log.start_offset, log.snapshots = 2, [SnapshotId(2, 1)]
    observe(checker, log, A, 3)
    assert found == []
    log.start_offset, log.snapshots = 3, [SnapshotId(0, 0), SnapshotId(2, 1)]
    observe(checker, log, A, 3)
    assert found == ["Q14"]
