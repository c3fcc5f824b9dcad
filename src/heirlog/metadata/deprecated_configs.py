"""Configurations that still work, and that another one replaces.

If one is set, the active controller logs it, and the command that sets it prints a warning.

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
