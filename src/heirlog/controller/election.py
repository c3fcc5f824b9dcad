"""Which replica may lead a partition, and on what basis.

A candidate is *valid* if it is acceptable (its broker is active and its log directory is online), and it is in the new
ISR, or the new ISR is empty and it is in the new ELR. *New* means: as the lists are once the change is applied. The
election then takes the first candidate of its row that exists:

    ONLINE      the current leader | the first valid replica in assignment order | the last known leader | no leader
    PREFERRED   the first replica | the current leader | the other valid replicas | the last known leader | no leader
    UNCLEAN     as ONLINE, then the first acceptable replica in assignment order

Recovery manager on (the default): the last known leader is never elected here. The builder passes an empty
LastKnownELR, and the manager asks the replicas for their logs (recovery/decision.py).
Recovery manager off: the last known leader is elected only if there is no clean candidate to wait for: ISR and ELR are
empty, LastKnownELR names exactly one broker, and that broker is acceptable. This is allowed even where unclean
elections are forbidden. That replica was the last leader, so it has every record if its log survived. Nothing checks
whether the log did survive; hence this basis is *lossy*.

What the builder does to the partition on each basis:

    from the ISR (ISR, PREFERRED)   ISR and recovery state stay
    ELR                             ISR = [leader], it leaves the ELR; clean: recovery state stays
    LAST_KNOWN, UNCLEAN             ISR = [leader], ELR and LastKnownELR emptied, RECOVERING

Source: KIP-966, "Leader election"; KIP-460.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from heirlog.metadata.basis import Basis
from heirlog.metadata.state import Ids
from heirlog.protocol.types import NO_LEADER, BrokerId

Acceptable = Callable[[BrokerId], bool]


class Election(Enum):
    """The kinds of election."""

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


class ElectionResult(NamedTuple):
    leader: BrokerId
    basis: Basis | None
    """None if no leader was elected, or the current leader stays."""


NO_LEADER_ELECTED = ElectionResult(NO_LEADER, None)


@dataclass(slots=True)
class Candidates:
    """Input of an election: the assignment, and the lists as they are once the change is applied."""

    replicas: Sequence[BrokerId]
    leader: BrokerId
    """The current leader."""
    isr: Ids
    elr: Ids
    last_known: Ids
    """Empty where the recovery manager is on: no leader is elected from it."""
    acceptable: Acceptable

    def basis(self, replica: BrokerId) -> Basis | None:
        """The clean basis on which the replica may lead, or None."""
        if self.isr:
            basis = Basis.ISR if replica in self.isr else None
        else:
            basis = Basis.ELR if replica in self.elr else None
        return basis if basis is not None and self.acceptable(replica) else None


def elect(kind: Election, candidates: Candidates) -> ElectionResult:
    """Hold one election."""
    clean = _preferred(candidates) if kind is Election.PREFERRED else _online(candidates)
    if clean is not None:
        return clean
    last_known = last_known_leader(candidates)
    if last_known is not None:
        return ElectionResult(last_known, Basis.LAST_KNOWN)
    if kind is Election.UNCLEAN:
        for replica in candidates.replicas:
            if candidates.acceptable(replica):
                return ElectionResult(replica, Basis.UNCLEAN)
    return NO_LEADER_ELECTED


def last_known_leader(candidates: Candidates) -> BrokerId | None:
    """The last known leader, if no clean candidate can come back and it is acceptable."""
    if candidates.isr or candidates.elr or len(candidates.last_known) != 1:
        return None
    (leader,) = candidates.last_known
    return leader if candidates.acceptable(leader) else None


def _preferred(candidates: Candidates) -> ElectionResult | None:
    first = candidates.replicas[0]
    basis = candidates.basis(first)
    if basis is None:
        return _online(candidates)
    if first == candidates.leader and basis is Basis.ISR:
        return ElectionResult(first, None)
    return ElectionResult(first, Basis.PREFERRED if basis is Basis.ISR else basis)


def _online(candidates: Candidates) -> ElectionResult | None:
    basis = candidates.basis(candidates.leader)
    if basis is Basis.ISR:
        return ElectionResult(candidates.leader, None)
    if basis is not None:
        return ElectionResult(candidates.leader, basis)
    for replica in candidates.replicas:
        basis = candidates.basis(replica)
        if basis is not None:
            return ElectionResult(replica, basis)
    return None
