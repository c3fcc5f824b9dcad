"""Which names a topic may have: 1 to 249 of letters, digits, `.`, `_` and `-`, but not `.` or `..`.

Names become directories and metric names. In metrics `.` and `_` look the same, so two topics that differ only there
collide; CreateTopics refuses the second one.
"""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 249
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
RECOVERIES_TOPIC: Final = "__heirlog_recoveries"
INTERNAL_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC, RECOVERIES_TOPIC))
"""Written by the brokers that lead them only."""
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_error(name: str | None) -> str | None:
    """A sentence on what is wrong with the name; None if nothing is."""
    if not name:
        return "the topic name is empty"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > MAX_LENGTH:
        return f"the topic name is {len(name)} characters long; {MAX_LENGTH} are allowed"
    if _LEGAL.fullmatch(name) is None:
        return f"the topic name {name!r} holds something other than letters, digits, '.', '_' and '-'"
    return None


def collision_key(name: str) -> str:
    """Equal for names that would look the same in metrics."""
    return name.replace(".", "_")
