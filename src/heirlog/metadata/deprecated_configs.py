"""Configurations that count still, and that another one replaces. Who sets one is told: by the active controller in its
log, and by the command that sets it.

Source: KIP-966, "Unclean recovery", compatibility.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Deprecated:
    instead: str
    meaning: str
    """What its values are in terms of the new one, and which of the two wins."""


DEPRECATED: Final[Mapping[str, Deprecated]] = {
    "unclean.leader.election.enable": Deprecated(
        instead="unclean.recovery.strategy",
        meaning="true is Aggressive, false is Balanced; a strategy that is set wins",
    ),
}
