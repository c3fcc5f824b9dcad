"""`share.auto.offset.reset`: where a share group begins in a partition that it has not read.

`earliest`, `latest`, or `by_duration:` and a duration in the form of ISO 8601, such as `P1DT2H30M`: the first record
that is not older than that, or the latest offset if there is none.
"""

from __future__ import annotations

import re
from typing import Final

from heirlog.broker.list_offsets import EARLIEST, LATEST

_DURATION: Final = re.compile(r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


def starting_timestamp(reset: str, wall_ms: int) -> int:
    """The timestamp for ListOffsets. The value was checked when it was configured."""
    if reset == "earliest":
        return EARLIEST
    found = _DURATION.fullmatch(reset)
    if found is None:
        return LATEST
    duration_ms = sum(int(float(part) * unit) for part, unit in zip(found.groups(), _MS, strict=True) if part)
    return max(0, wall_ms - duration_ms)
