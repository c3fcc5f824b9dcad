"""The warning for a user who sets a configuration that another one replaces (`metadata.deprecated_configs`)."""

from __future__ import annotations

from collections.abc import Iterable

from heirlog.cli.cleared import warn
from heirlog.metadata.deprecated_configs import DEPRECATED


def warn_of_deprecated(names: Iterable[str]) -> None:
    """Tell on stderr what to set instead."""
    for name in names:
        found = DEPRECATED.get(name)
        if found is not None:
            warn(f"{name} is deprecated, set {found.instead} instead: {found.meaning}")
