"""The first level of heirlog.recovery.version in a log that has none: whether the recovery manager begins switched on.

    wanted is 0                                         0, at once
    a registered controller lacks the feature           0, at once: an operator raises it once none does
    this node is the only voter                         1, at once
    every voter has registered                          1
    a voter has not registered for VOTERS_WAIT_MS       1
    otherwise                                           not known yet; the manager is off meanwhile

A controller of Apache Kafka ends when it reads level 1 of a feature that it does not know. A new quorum cannot know
before its controllers have registered whether one of them is Apache Kafka's. A voter that does not register for a
minute is taken for one that will not come: the cluster should not stay without its recovery manager because of it.

"Wanted" is the level that `storage format` has written, else `unclean.recovery.manager.enabled` of this node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import recovery_level, supported_levels
from heirlog.metadata.image import RECOVERY_VERSION, Image
from heirlog.protocol.records import FeatureLevelRecord
from heirlog.protocol.types import BrokerId

VOTERS_WAIT_MS: Final = 60_000


def is_recovery_level(record: Any) -> bool:
    return isinstance(record, FeatureLevelRecord) and record.name == RECOVERY_VERSION


def wanted_level(static: StaticConfig, formatted: Iterable[Any]) -> int:
    """formatted: the records that `storage format` wrote for this node."""
    levels: list[int] = [record.feature_level for record in formatted if is_recovery_level(record)]
    return levels[-1] if levels else recovery_level(static)


def first_recovery_level(
    image: Image, wanted: int, voters: Collection[BrokerId], *, has_waited: bool = False
) -> int | None:
    """The table above; None: not known yet. has_waited: for VOTERS_WAIT_MS."""
    if not wanted or controllers_without_recovery(image):
        return 0
    if len(voters) == 1 or has_waited or all(voter in image.controllers for voter in voters):
        return wanted
    return None


def controllers_without_recovery(image: Image) -> list[BrokerId]:
    """Registered controllers that would end at a record of level 1."""
    return sorted(
        registered.id
        for registered in image.controllers.values()
        if 1 not in supported_levels(registered.features, RECOVERY_VERSION)
    )
