"""The features that a heirlog cluster can finalize, and the levels that this version supports.

Only what heirlog implements is listed: a finalized feature is a promise to every broker that registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.state import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    SHARE_VERSION,
    TRANSACTION_VERSION,
    SupportedFeature,
)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Supported levels, both ends included."""

    min_version: int
    max_version: int

    def __contains__(self, level: int) -> bool:
        return self.min_version <= level <= self.max_version


SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(23, 29),
    KRAFT_VERSION: VersionRange(0, 1),
    ELR_VERSION: VersionRange(0, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
    GROUP_VERSION: VersionRange(0, 1),
    SHARE_VERSION: VersionRange(0, 1),
    RECOVERY_VERSION: VersionRange(0, 1),
}
"""What a node registers and ApiVersions shows. metadata.version 23 (4.0-IV1) is the first that can write an ELR down,
29 (4.2-IV1) the newest read here. A node that supports heirlog.recovery.version answers GetReplicaLogInfo (10093),
DescribeRecovery (10094) and ElectLeaders 3, which no ApiVersions advertises; its level switches the recovery manager.
"""

DEFAULT_METADATA_VERSION: Final = 29
"""4.2-IV1: the production level of Kafka 4.2."""

DEFAULT_FEATURES: Final[Mapping[str, int]] = {
    METADATA_VERSION: DEFAULT_METADATA_VERSION,
    ELR_VERSION: 1,
    KRAFT_VERSION: 1,
    TRANSACTION_VERSION: 2,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
}
"""What a new cluster is formatted with. kraft.version is in the quorum's control records, not in FeatureLevel. The
level of heirlog.recovery.version follows from the configuration of who formats (`recovery_level`)."""

TRANSACTIONS_WITH_EPOCHS: Final = 24
"""4.0-IV2: the metadata.version from which a new cluster has transaction.version 2. No level needs it."""


def transaction_level(metadata_version: int) -> int:
    """Level of transaction.version in a new cluster of this metadata.version, as on Apache Kafka."""
    return DEFAULT_FEATURES[TRANSACTION_VERSION] if metadata_version >= TRANSACTIONS_WITH_EPOCHS else 0


SHARE_GROUPS: Final = 28
"""4.2-IV0: the metadata.version from which a new cluster has share.version 1. No level needs it."""


def share_level(metadata_version: int) -> int:
    """Level of share.version in a new cluster of this metadata.version, as on Apache Kafka."""
    return DEFAULT_FEATURES[SHARE_VERSION] if metadata_version >= SHARE_GROUPS else 0


MANAGER_ENABLED: Final = "unclean.recovery.manager.enabled"


def recovery_level(static: StaticConfig) -> int:
    """The first level of heirlog.recovery.version; afterwards the configuration has no effect."""
    return int(bool(static[MANAGER_ENABLED]))


def supported_levels(features: Iterable[SupportedFeature], name: str) -> VersionRange:
    """What a node has registered for a feature; one that it does not name is supported at level 0 (off)."""
    for feature in features:
        if feature.name == name:
            return VersionRange(feature.min_version, feature.max_version)
    return VersionRange(0, 0)


NO_BUMP_ON_SHRINK: Final = 12
"""3.6-IV0: from this level on a member that leaves the ISR does not bump the leader epoch (KAFKA-15021)."""
ELR_NEEDS_METADATA_VERSION: Final = 23

_NAMES: Final[Mapping[str, int]] = {
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.0": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.2": 29,
}


def metadata_version_named(name: str) -> int:
    """`--release-version` as Kafka spells it ("4.1-IV1", "4.1"), or the bare level. ValueError with a sentence."""
    level = int(name) if name.isdigit() else _NAMES.get(name, -1)
    if level not in SUPPORTED_FEATURES[METADATA_VERSION]:
        known = ", ".join(_NAMES)
        raise ValueError(f"metadata version {name} is not one heirlog can run with; use one of {known}")
    return level


def metadata_version_name(level: int) -> str:
    """The name of a level ("4.1-IV1" for 27); the bare number where heirlog has no name for it."""
    return next((name for name, known in _NAMES.items() if known == level and "-IV" in name), str(level))
