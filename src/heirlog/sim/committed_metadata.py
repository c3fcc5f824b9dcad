"""What the controllers committed, recorded by the simulator.

After each event of a controller the newly committed batches are read from its metadata log, and applied to an image of
our own. This image never loses what was committed:

    the only controller opens its log  it has every batch that was committed (R1)
    a voter becomes the leader         its log has what was committed in earlier epochs, and its epoch had no other
                                       leader (Q5, Q1)
    a voter's high watermark moves     what is below it in its log is what was committed (Q6)
    at each event                      the epoch of a voter's disk never falls (Q3); the voters change as they may (Q11
                                       to Q13, `heirlog.sim.voter_checker`); the logs of the voters match (Q4, Q6, Q7,
                                       Q14, `heirlog.sim.metadata_log_checker`)

Each record is handed to the checker with the state before it, so that a rule can be judged at exactly the record that
touches a partition.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from heirlog.controller.seeding import image_of
from heirlog.metadata.apply import apply
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.metadata_record import decode_record
from heirlog.protocol.records import VotersRecord
from heirlog.raft.control import decode_controls, read_voters
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.quorum_state import QuorumState
from heirlog.raft.replica_key import ReplicaKey
from heirlog.sim.invariants import r1_committed_metadata_stays
from heirlog.sim.metadata_log_checker import MetadataLogChecker
from heirlog.sim.voter_checker import VoterChecker

READ_BYTES = 1 << 20


class QuorumView(Protocol):
    """What is read of `heirlog.raft.quorum.Quorum`."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def log(self) -> MetadataLog | None: ...

    @property
    def state(self) -> EpochState | None: ...

    @property
    def durable_state(self) -> QuorumState | None: ...

    @property
    def key(self) -> ReplicaKey: ...

    @property
    def is_voter(self) -> bool: ...


class CommittedMetadata:
    """Fills `image`. on_record(record, offset, journal): after each committed record was applied to it."""

    def __init__(
        self,
        image: Image,
        on_record: Callable[[Any, int, ImageJournal], None],
        on_batch_end: Callable[[], None],
        broken: Callable[[str, str], None],
        *,
        is_quorum: bool,
    ) -> None:
        """is_quorum: there are several controllers, of which one may be the only voter for some time."""
        self.image = image
        self.end = 0
        """Everything below this offset was committed once."""
        self._on_record = on_record
        self._on_batch_end = on_batch_end
        self._broken = broken
        self._is_quorum = is_quorum
        self._batches: list[tuple[int, int]] = []
        """Base offset and CRC of each."""
        self._batch_epochs: list[int] = []
        """The epoch of each of them."""
        self._voters = VoterChecker(broken)
        self.logs = MetadataLogChecker(broken)
        self._known_logs: dict[str, MetadataLog] = {}
        """The log that each controller has opened."""
        self._checked: dict[str, int] = {}
        """Up to here each controller's log was compared with what was committed."""
        self._epochs: dict[str, int] = {}
        self._leaders: dict[int, str] = {}
        """The controller that leads, or led, each epoch."""

    def observe(self, name: str, quorum: QuorumView) -> None:
        """After an event of the controller on this machine."""
        log, state = quorum.log, quorum.state
        if log is None:
            return
        if log is not self._known_logs.get(name):
            self._known_logs[name] = log
            self._checked[name] = max(log.start_offset, 0)
            if not self._is_quorum:
                self._compare(log)
        if state is not None and self._is_quorum:
            self._voters.observe(name, quorum, log, state)
            self._check_epoch(name, state, quorum.durable_state, log)
        high_watermark = quorum.high_watermark
        if high_watermark > self.end:
            self._follow(log, high_watermark)
        if high_watermark > self._checked[name]:
            self._check_commits(name, log, high_watermark)
        if state is not None and self._is_quorum:
            self.logs.observe(name, quorum.key, log, high_watermark, state)

    def _check_epoch(self, name: str, state: EpochState, durable: QuorumState | None, log: MetadataLog) -> None:
        # an epoch that is not flushed yet has left no trace: no answer, no request and no record
        if durable is not None:
            before = self._epochs.get(name, -1)
            if durable.leader_epoch < before:
                self._broken("Q3", f"the epoch of {name} went from {before} back to {durable.leader_epoch}")
            self._epochs[name] = durable.leader_epoch
        if state.role is not QuorumRole.LEADER:
            return
        if state.epoch not in self._leaders:
            self._leaders[state.epoch] = name
            # a vote may arrive when a later epoch has begun: that node leads an epoch that is over
            self._compare(log, "Q5", bisect_left(self._batch_epochs, state.epoch))
        elif self._leaders[state.epoch] != name:
            self._broken("Q1", f"{self._leaders[state.epoch]} and {name} both lead epoch {state.epoch}")

    def _check_commits(self, name: str, log: MetadataLog, high_watermark: int) -> None:
        first = max(self._checked[name], log.start_offset)
        if first >= high_watermark or not self._is_quorum:
            self._checked[name] = high_watermark
            return
        known = dict(self._batches[bisect_left(self._batches, (first, 0)) :])
        offset = first
        while offset < high_watermark:
            for _, header in walk(log.read_bytes(offset, READ_BYTES, high_watermark)):
                if header.base_offset >= first and known.get(header.base_offset) != header.crc:
                    self._broken("Q6", f"{name} takes another batch at offset {header.base_offset} as committed")
                offset = header.next_offset
        self._checked[name] = high_watermark

    def disk_changed(self, name: str) -> None:
        """This controller has another disk now, on which its epoch may be an older one."""
        self._epochs.pop(name, None)
        self.logs.disk_changed(name)

    def adopt(self, log: MetadataLog) -> None:
        """An operator has seeded a lost controller with this log. Records that no copy held count as never committed.
        The records that the seeding appended count as committed, and are not checked.
        """
        self.image = image_of(log)
        found = list(_batches_of(log))
        self._batches = [(base_offset, crc) for base_offset, crc, _ in found]
        self._batch_epochs = [epoch for _, _, epoch in found]
        self.end = log.end_offset

    def _compare(self, log: MetadataLog, rule: str = "R1", count: int | None = None) -> None:
        """Check that a log that a controller has opened, or leads with, has everything that was committed.

        count: the first so many batches; None: all of them.
        """
        now = {base_offset: crc for base_offset, crc, _ in _batches_of(log)}
        sentence = r1_committed_metadata_stays(self._batches[:count], now, log.start_offset, log.end_offset)
        if sentence is not None:
            self._broken(rule, sentence)

    def _follow(self, log: MetadataLog, high_watermark: int) -> None:
        while self.end < high_watermark:
            content = log.read_bytes(self.end, READ_BYTES, high_watermark)
            for position, header in walk(content):
                if header.base_offset < self.end:
                    continue
                self._batches.append((header.base_offset, header.crc))
                self._batch_epochs.append(header.leader_epoch)
                if header.is_control:
                    for control in decode_controls(content, position):
                        if isinstance(control, VotersRecord):
                            self._voters.committed(header.base_offset, read_voters(control))
                else:
                    for record in decode_records(content, position, header=header):
                        assert record.value is not None
                        self._apply(decode_record(record.value), record.offset, header.leader_epoch)
                self.image.offset, self.image.epoch = header.last_offset, header.leader_epoch
                self.end = header.next_offset
                # one by one: the next batch may change values that are used to check this one, such as min ISR
                self._on_batch_end()

    def _apply(self, record: Any, offset: int, epoch: int) -> None:
        journal = self.image.journal()
        apply(self.image, record, offset, epoch, journal)
        self._on_record(record, offset, journal)


def _batches_of(log: MetadataLog) -> Iterator[tuple[int, int, int]]:
    """Base offset, CRC and epoch of each."""
    offset = log.start_offset
    while offset < log.end_offset:
        for _, header in walk(log.read_bytes(offset, READ_BYTES, log.end_offset)):
            yield header.base_offset, header.crc, header.leader_epoch
            offset = header.next_offset
