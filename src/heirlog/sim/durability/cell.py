"""The cells of a comparison: one combination of replication factor, min ISR, strategy and failure rate each.

A cell is the scenario of its name, for example `durability:rf=3,min-isr=2,strategy=balanced,mtbf=20`. So any run of a
comparison can be repeated with `heirlog sim replay SEED --scenario NAME`. A strategy here is how leaders are elected
and recovered:

    elr-off            Kafka before KIP-966: the last member of an ISR stays in it, whatever has happened to its disk
    last-known-leader  Kafka 4: eligible leader replicas; without any of them, the last leader leads again
    balanced, aggressive, none      KIP-966's unclean recovery with this `unclean.recovery.strategy`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from random import Random

from heirlog.sim.clients.admin import STRATEGY
from heirlog.sim.plan import RunPlan

PREFIX = "durability:"
FORM = f"{PREFIX}rf=R,min-isr=M,strategy=S,mtbf=SECONDS"
REPLICATION_FACTOR_MAX = 5
BROKERS_MIN = 3
MTBF_MIN_S, MTBF_MAX_S = 1, 3600
_NAME = re.compile(rf"{PREFIX}rf=([0-9]),min-isr=([0-9]),strategy=([a-z-]+),mtbf=([0-9]{{1,4}})")


class Policy(Enum):
    """How leaders are elected and recovered."""

    ELR_OFF = "elr-off"
    LAST_KNOWN_LEADER = "last-known-leader"
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"
    NONE = "none"

    @property
    def has_elr(self) -> bool:
        return self is not Policy.ELR_OFF

    @property
    def has_manager(self) -> bool:
        return self not in (Policy.ELR_OFF, Policy.LAST_KNOWN_LEADER)


@dataclass(frozen=True, slots=True)
class Cell:
    """mtbf_s: mean virtual seconds that a broker runs between two failures."""

    replication_factor: int
    min_isr: int
    policy: Policy
    mtbf_s: int

    def __post_init__(self) -> None:
        if not 1 <= self.replication_factor <= REPLICATION_FACTOR_MAX:
            raise ValueError(f"a replication factor is between 1 and {REPLICATION_FACTOR_MAX}")
        if not 1 <= self.min_isr <= self.replication_factor:
            raise ValueError("min ISR is between 1 and the replication factor")
        if not MTBF_MIN_S <= self.mtbf_s <= MTBF_MAX_S:
            raise ValueError(f"the mean time between failures is between {MTBF_MIN_S} and {MTBF_MAX_S} seconds")

    @property
    def scenario(self) -> str:
        return (
            f"{PREFIX}rf={self.replication_factor},min-isr={self.min_isr},strategy={self.policy.value},"
            f"mtbf={self.mtbf_s}"
        )

    def plan(self, random: Random) -> RunPlan:
        """Nothing is drawn: two cells of a seed differ only in what they compare."""
        return RunPlan(
            elr=self.policy.has_elr,
            brokers=max(BROKERS_MIN, self.replication_factor),
            replication_factor=self.replication_factor,
            partitions=2,
            min_isr=self.min_isr,
            manager=self.policy.has_manager,
            topic_config={STRATEGY: self.policy.value.capitalize()} if self.policy.has_manager else {},
            idempotent=False,
            leader_acks=False,
            batch_records=5,
        )


def cell_of(scenario: str) -> Cell:
    """The cell with this name. Raises ValueError with a sentence."""
    found = _NAME.fullmatch(scenario)
    if found is None or found[3] not in {policy.value for policy in Policy}:
        raise ValueError(f"{scenario} is not {FORM} with a strategy of {', '.join(policy.value for policy in Policy)}")
    return Cell(int(found[1]), int(found[2]), Policy(found[3]), int(found[4]))
