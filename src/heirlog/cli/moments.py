"""Moments and durations as options of commands give them."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime

from heirlog.cli.errors import UsageError

SECONDS_MAX = 10_000_000_000
"""In ms the spring of 1970, in seconds the year 2286."""
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


def moment_ms(option: str, text: str) -> int:
    """A time in ms, a date, or a duration before now. Raises UsageError."""
    if text.isdecimal():
        return int(text)
    if text.upper().startswith("P"):
        return time.time_ns() // 1_000_000 - duration_ms(option, text)
    try:
        return datetime_ms(option, text)
    except UsageError as error:
        raise UsageError(f"{error}, PT1H (an hour ago), or a time in ms") from error


def warn_of_seconds(option: str, text: str) -> None:
    """A number of ms that is a time of long ago is more likely one of seconds."""
    if text.isdecimal() and 0 < int(text) < SECONDS_MAX:
        day = datetime.fromtimestamp(int(text) / 1000, UTC).date()
        print(f"{option} {text} is in ms, so in the year {day.year}; {text}000 is that many seconds", file=sys.stderr)


def datetime_ms(option: str, text: str) -> int:
    """`2026-11-21T12:00:00.000`, in UTC if it has no time zone. Raises UsageError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} {text} is not of the form 2026-11-21T12:00:00.000") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(option: str, text: str) -> int:
    """`P1DT2H3M4S`. Raises UsageError."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise UsageError(f"{option} {text} is not of the form PnDTnHnMnS, such as PT1H or P7D")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
