"""What this machine cannot do for a cluster, as one sentence that a person can act on."""

from __future__ import annotations


class LocalError(Exception):
    """What was refused, why, and what to do next, in one sentence."""
