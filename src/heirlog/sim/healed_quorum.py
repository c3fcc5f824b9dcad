"""Checks a quorum of several controllers when the faults have ended: L1 and L3 to L7 of `heirlog.sim.quorum_liveness`.

all run and are connected --`wait_until_it_works`--> ... --`is_quiet`--> clients finish --`check_quiet`-->
                            L1, L6, L5                                   L3, L7
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.raft.quorum import Quorum
from heirlog.sim.checker import Checker
from heirlog.sim.quorum_liveness import (
    CHANGE_LIMIT_MS,
    DELIVERY_LIMIT_MS,
    ELECTION_LIMIT_MS,
    STALLED_MS,
    l3_no_epoch_begins,
    l5_behind,
    l6_change_has_ended,
    l7_no_broker_is_fenced,
)
from heirlog.sim.record_checker import FENCED


class HealedQuorum:
    """Of a run; does nothing if the run has one controller."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._cluster = checker.cluster
        self._quiet = -1, 0
        """The epoch, and how many fencings were committed, when the cluster became quiet."""

    def wait_until_it_works(self, supervised: Callable[[Callable[[], bool]], Callable[[], bool]]) -> None:
        """All controllers run and are connected; so do the brokers.

        supervised: also starts again what has ended by itself.
        """
        if len(self._cluster.controller_names) == 1:
            return
        limit_ms = ELECTION_LIMIT_MS + STALLED_MS
        if not self._cluster.run_until(supervised(lambda: self._leading() is not None), limit_ms):
            self._checker.oracle.broken("L1", f"after {limit_ms} ms without faults no controller is active")
        self._must_end("L6", self._pending_change, CHANGE_LIMIT_MS, supervised)
        end = self._checker.committed.end
        self._must_end("L5", lambda: self._behind(end), DELIVERY_LIMIT_MS, supervised)

    def is_quiet(self) -> None:
        """Every node has been connected for some time, and nothing is changed any more."""
        self._quiet = self._state()

    def check_quiet(self) -> None:
        """Some time later."""
        if len(self._cluster.controller_names) > 1:
            (epoch, fenced), (epoch_now, fenced_now) = self._quiet, self._state()
            self._checker.oracle.must_not("L3", l3_no_epoch_begins(epoch, epoch_now))
            self._checker.oracle.must_not("L7", l7_no_broker_is_fenced(fenced, fenced_now))

    def _must_end(
        self,
        rule: str,
        broken: Callable[[], str | None],
        limit_ms: int,
        supervised: Callable[[Callable[[], bool]], Callable[[], bool]],
    ) -> None:
        if not self._cluster.run_until(supervised(lambda: broken() is None), limit_ms):
            self._checker.oracle.must_not(rule, broken())

    def _state(self) -> tuple[int, int]:
        nodes = (self._cluster.machine(name).running for name in self._cluster.controller_names)
        newest = max((node.quorum.epoch for node in nodes if node is not None), default=-1)
        return newest, self._checker.world.counters[FENCED]

    def _leading(self) -> Quorum | None:
        node = self._cluster.controller.running
        return node.quorum if node is not None and node.quorum.is_leader else None

    def _pending_change(self) -> str | None:
        quorum = self._leading()
        if quorum is None or quorum.log is None:
            return "no controller is active any more"
        return l6_change_has_ended(quorum.log.voters_offset, quorum.high_watermark)

    def _behind(self, end: int) -> str | None:
        machines = self._cluster.all_machines
        return l5_behind(
            {one.name: -1 if one.running is None else one.running.quorum.applied_offset for one in machines}, end
        )
