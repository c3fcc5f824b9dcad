"""May a leader lack committed records that another replica has, or had?

    an election on a lossy basis       another replica may hold more, or one has answered that its log may lack records:
                                       the record of the election says so, to every later leader (`metadata/basis.py`)
    the log of this replica itself     its machine has stopped, or its disk has lost records (`storage/boot_mark.py`),
                                       and it was elected without being asked: only this process knows
    the log of a leader before         this replica followed it, and had to cut off committed records: that leader may
                                       have failed before its coordinator could record what it knew. Or both may lack
                                       the same records: no replica was asked when that leader was elected

The second and third kind are recorded by the coordinator of transactions, which needs it (`transactions/entry.py`), in
its own log. That may take as long as the ISR is too small. Until then the log of a leader keeps the mark: without it a
start in between would forget the doubts. Other partitions have no coordinator: what their new leader has is what is
committed.
"""

from __future__ import annotations

from heirlog.metadata.basis import Basis, ElectionBasis
from heirlog.metadata.loss_report import Certainty, loss_of
from heirlog.metadata.state import RECOVERED, PartitionRegistration
from heirlog.protocol.types import NO_LEADER, BrokerId
from heirlog.storage.log import Log


def _lossy_elections(state: PartitionRegistration) -> tuple[ElectionBasis, ...]:
    """Newest first."""
    return () if state.basis is None else (state.basis, *state.earlier)


def _is_doubtful(election: ElectionBasis) -> bool:
    """Whether the winner may lack committed records: another replica may hold more, or a machine has lost some.

    Where all have answered and the winner has the most, or the last leader leads again, nothing is known to be gone.
    """
    if any(answer.may_lack_records for answer in election.replicas):
        return True
    certainty = loss_of(election.leader, election.replicas).certainty
    return certainty is Certainty.CERTAIN or (
        election.basis is not Basis.LAST_KNOWN and (certainty is Certainty.POSSIBLE or not election.replicas)
    )


class Doubts:
    __slots__ = ("_elections", "_log", "_was_left_out", "led_without_them")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._elections: tuple[ElectionBasis, ...] = ()
        self._was_left_out = False
        """By the last image it follows, and is neither in the ISR nor in the ELR."""
        self.led_without_them = -1
        """The newest leader epoch that this replica began with a log that may lack records, or in which it followed a
        leader with such a log; -1: there was none.
        """

    @property
    def lossy_epoch(self) -> int:
        """The leader epoch of the newest election on a lossy basis; -1: there was none."""
        return self._elections[0].leader_epoch if self._elections else -1

    @property
    def epoch(self) -> int:
        """Leader epoch of the newest leader that may lack records of others; -1: there was none."""
        return max(self._recorded_epoch, self.led_without_them)

    @property
    def is_recorded(self) -> bool:
        """Whether the records of elections say it, too: the next leader then knows it."""
        return self._recorded_epoch >= self.led_without_them

    @property
    def _recorded_epoch(self) -> int:
        return next((each.leader_epoch for each in self._elections if _is_doubtful(each)), -1)

    def lead(self, state: PartitionRegistration, *, has_transactions: bool) -> None:
        """A leader epoch of this replica begins. has_transactions: a coordinator will record its doubts."""
        has_joined = self._has_joined_unseen(state)
        self._was_left_out = False
        self._elections = _lossy_elections(state)
        if has_joined:
            self._log.may_lack_records = False
        elif self._log.may_lack_records:
            self.led_without_them = state.leader_epoch
            self._log.may_lack_records = has_transactions and not self.is_recorded

    def _has_joined_unseen(self, state: PartitionRegistration) -> bool:
        """Whether changes that came as one image took it into the ISR and then elected it: a leader has admitted it to
        the ISR, because it has everything that is committed. An election on a lossy basis would need no admission.
        """
        return (
            self._was_left_out
            and state.leader_recovery_state == RECOVERED
            and _lossy_elections(state) == self._elections
        )

    def follow(self, state: PartitionRegistration, me: BrokerId) -> None:
        """Another replica leads, or none."""
        self._was_left_out = me not in state.isr and me not in state.elr
        self._elections = _lossy_elections(state)
        if self._log.may_lack_records and self._is_before_unasked_election():
            # the leader may lack the same records, and fail before it has recorded that
            self.give_up_committed(self._elections[0].leader_epoch)
        if state.leader != NO_LEADER and me in state.isr:
            # it has everything that is committed
            self._log.may_lack_records = False

    def _is_before_unasked_election(self) -> bool:
        """Whether all records of this log are older than the newest election, of the last known leader."""
        newest = self._elections[0] if self._elections else None
        return (
            newest is not None
            and newest.basis is Basis.LAST_KNOWN
            and not newest.replicas
            and self._log.epochs.latest < newest.leader_epoch
        )

    def give_up_committed(self, leader_epoch: int) -> None:
        """This replica follows a leader without committed records that it has, or had, itself."""
        self.led_without_them = max(self.led_without_them, leader_epoch)

    def are_recorded(self) -> None:
        """The coordinator's log says it now."""
        self._log.may_lack_records = False
