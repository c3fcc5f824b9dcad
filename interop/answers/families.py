"""Which requests are played together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from answers import (
    admin_requests,
    consumer_group_requests,
    data_requests,
    group_requests,
    share_group_requests,
    transaction_requests,
    two_phase_commit,
)
from answers.scene import Scene
from answers.shape import Plan

Builder = Callable[[Scene], dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """Requests that are played together."""

    builders: dict[int, Builder]
    often: tuple[int, ...] = ()
    """Chosen as often again: without them nothing happens."""
    mixes: bool = False
    """With requests of every family that mixes."""
    preamble: Callable[[Scene], list[Plan]] = lambda _: []
    """What comes first, of each scene."""


ADMIN = Family(admin_requests.BUILDERS, mixes=True)
DATA = Family(data_requests.BUILDERS, mixes=True)
GROUPS = Family(group_requests.BUILDERS, mixes=True)
TRANSACTIONS = Family(transaction_requests.BUILDERS, transaction_requests.OFTEN)
TWO_PHASE_COMMIT = Family(
    transaction_requests.BUILDERS | {22: two_phase_commit.init_producer_id}, transaction_requests.OFTEN
)
"""The same, of producers whose transactions have no time limit. Played by ANSWERS_OF only; each run has examples."""
CONSUMER_GROUPS = Family(consumer_group_requests.BUILDERS, consumer_group_requests.OFTEN)
SHARE_GROUPS = Family(share_group_requests.BUILDERS, share_group_requests.OFTEN, preamble=share_group_requests.preamble)
ALL = Family(ADMIN.builders | DATA.builders | GROUPS.builders, mixes=True)
ONLY = {
    "transactions": TRANSACTIONS,
    "two-phase commit": TWO_PHASE_COMMIT,
    "consumer groups": CONSUMER_GROUPS,
    "share groups": SHARE_GROUPS,
}
"""By ANSWERS_OF: the family that all sequences are of."""
FAMILIES = (*2 * (ADMIN, DATA, GROUPS, TRANSACTIONS, CONSUMER_GROUPS, SHARE_GROUPS), ALL)
