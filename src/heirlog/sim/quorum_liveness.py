"""A quorum that can work does work, within bounds of virtual time.

L1    a majority of the voters is connected: one of them is the active controller, and its epoch is committed
L2    a leader that no majority reaches stops leading
L3    voters that return, are removed, or are cut off begin no epoch while a majority follows its leader
L4    the leader stops cleanly: a successor is the active controller without a timeout
L5    each voter, observer and broker receives what is committed; so does a lost disk, once it was added
L6    a change of the voters ends: committed, timed out, or refused because the leadership ended
L7    no broker is fenced by a fail-over that is shorter than its session

The scripts of `heirlog.sim.quorum_elections` wait for them. In every run with several controllers L1, L5 and L6 are
checked once the faults have ended, L3 and L7 from the moment at which the cluster is quiet, and L2 all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.votes import majority

_TIMES = QuorumConfig()
SLACK_MS = 500
"""For what takes no timeout: messages, flushes, clocks that drift."""
ELECTION_LIMIT_MS = _TIMES.fetch_timeout_ms + 3 * 2 * _TIMES.election_timeout_ms
"""Of L1: the lost leader is noticed, and at most three candidacies follow."""
STALLED_MS = _TIMES.request_timeout_ms + SLACK_MS
"""After the faults a request that was lost before may still be waited for."""
CLAIM_LIMIT_MS = _TIMES.election_timeout_ms
"""Of L4."""
ISOLATED_LIMIT_MS = _TIMES.fetch_timeout_ms * 3 // 2 + SLACK_MS
"""Of L2."""
DELIVERY_LIMIT_MS = 10_000
"""Of L5: a fetch that failed is repeated within a second; a snapshot takes some requests."""
CHANGE_LIMIT_MS = _TIMES.request_timeout_ms + SLACK_MS
"""Of L6."""
UNSEEN_MS = 700
"""A leader has an event at least every half second. If it has none for so long, it was paused."""


@dataclass(slots=True)
class _Isolation:
    epoch: int
    missing: Collection[int]
    since_ms: int


class IsolationChecker:
    """L2. broken(rule, sentence): called if the rule is broken."""

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        self._broken = broken
        self._isolated: dict[str, _Isolation] = {}
        self._seen_ms: dict[str, int] = {}

    def answers(self, name: str, voter_id: int, now_ms: int) -> None:
        """It answers a fetch of this voter: if that one cannot reach it now, it could shortly before."""
        isolation = self._isolated.get(name)
        if isolation is not None and voter_id in isolation.missing:
            isolation.since_ms = now_ms

    def observe(self, name: str, epoch: int, now_ms: int, missing: Collection[int], voters: int) -> None:
        """After an event of a leader. missing: the voters that cannot reach it, of so many."""
        seen_ms, self._seen_ms[name] = self._seen_ms.get(name, 0), now_ms
        if voters - len(missing) >= majority(voters):
            self._isolated.pop(name, None)
            return
        known = self._isolated.get(name)
        if known is None or known.epoch != epoch or now_ms - seen_ms > UNSEEN_MS:
            self._isolated[name] = _Isolation(epoch, missing, now_ms)
            return
        if set(known.missing) - set(missing):
            # with the fetch of that voter, those of others before may be a majority of one window
            known.since_ms = now_ms
        known.missing = missing
        isolated_ms = now_ms - known.since_ms
        if isolated_ms > ISOLATED_LIMIT_MS:
            self._broken("L2", f"{name} leads epoch {epoch}, and no majority has reached it for {isolated_ms} ms")


def l3_no_epoch_begins(before: int, after: int) -> str | None:
    """From one moment of a quiet quorum to another one."""
    return None if after == before else f"epoch {after} began while a majority followed the leader of epoch {before}"


def l5_behind(applied: Mapping[str, int], end: int) -> str | None:
    """applied: the offset that each node has applied. Everything below `end` was committed some time ago."""
    behind = {name: offset for name, offset in applied.items() if offset + 1 < end}
    return f"these nodes have not applied everything below {end}: {behind}" if behind else None


def l6_change_has_ended(voters_offset: int, high_watermark: int) -> str | None:
    """Of the leader, after the faults have ended."""
    if voters_offset < high_watermark:
        return None
    return f"the change of the voters at offset {voters_offset} is not committed; {high_watermark} is"


def l7_no_broker_is_fenced(before: int, after: int) -> str | None:
    """How many fencings were committed, before and after a fail-over or a quiet time."""
    return None if after == before else f"{after - before} brokers were fenced while all of them ran and were connected"
