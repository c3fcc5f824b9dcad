"""The basis on which a leader was elected, and what the record of a lossy election says about it.

    clean    ISR, ELR, PREFERRED                                the winner has every committed record
    lossy    LAST_KNOWN, RECOVERED, UNCLEAN, DESIGNATED         it may lack some; a new lineage begins at its log's end

The record that elects a leader on a lossy basis contains what its controller knew (tagged field 10000, which Apache
Kafka's readers skip): the basis, the new leader epoch, the winner's log end, and each replica's answer. It stays with
the partition, also in snapshots and after a few later such elections. So every broker that reports the loss reports the
same, at any time and after any crash.

Source: KIP-966, "Unclean recovery"; what is recorded of it is heirlog's own.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, LeaderEpoch


class Basis(Enum):
    """The basis on which a leader was elected."""

    ISR = "isr"
    ELR = "elr"
    PREFERRED = "preferred"
    LAST_KNOWN = "last-known"
    RECOVERED = "recovered"
    UNCLEAN = "unclean"
    DESIGNATED = "designated"

    @property
    def is_lossy(self) -> bool:
        """The winner may lack committed records: it starts RECOVERING and a new lineage."""
        return self in _LOSSY

    @property
    def number(self) -> int:
        """The number in a record."""
        return BASES.index(self)


_LOSSY: Final = (Basis.LAST_KNOWN, Basis.RECOVERED, Basis.UNCLEAN, Basis.DESIGNATED)
BASES: Final = tuple(Basis)
"""By their numbers in a record."""

UNKNOWN_OFFSET: Final = -1
EARLIER_MAX: Final = 7
"""Number of elections that a partition keeps besides the newest one: the next may follow before the first is reported.
"""


class ReplicaAnswer(NamedTuple):
    """A replica's answer about its log before the election, or that it gave none."""

    broker: BrokerId
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    """Broker epoch of the incarnation that answered; -1: no answer counted."""
    last_written_epoch: int = -1
    """The leader epoch of the last record in its log; -1 for an empty one."""
    end_offset: int = UNKNOWN_OFFSET
    may_lack_records: bool = False
    """Its machine has stopped: what it had not flushed may be gone from the end of its log."""

    @property
    def answered(self) -> bool:
        return self.broker_epoch != NO_BROKER_EPOCH


class ElectionBasis(NamedTuple):
    """The newest election of a partition that may have lost records."""

    basis: Basis
    leader: BrokerId
    leader_epoch: LeaderEpoch
    """The epoch that the election began."""
    end_offset: int = UNKNOWN_OFFSET
    """End of the winner's log, as far as the controller knew: records that others have from here on are given up."""
    controller_epoch: int = -1
    timestamp_ms: int = -1
    """Wall time of the controller."""
    replicas: tuple[ReplicaAnswer, ...] = ()
    """One per assigned replica, in assignment order."""

    @property
    def all_answered(self) -> bool:
        return all(answer.answered for answer in self.replicas)
