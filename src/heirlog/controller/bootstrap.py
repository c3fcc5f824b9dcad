"""The first records of a new cluster.

    storage format     feature levels, written next to the log (`format_records`)
    first leader       one transaction: those levels, and what they need (`bootstrap_records`)

The level of heirlog.recovery.version says whether the recovery manager starts switched on, and is always written,
whatever it is. It comes from the configuration of the process that formats the storage, or else of the first active
controller. A quorum of several voters writes it later, if it is 1 (`first_recovery_level.py`).

With ELR on, the cluster-wide `min.insync.replicas` is written too, so that no node uses the value of its own file.
kraft.version is not written here: it is in the quorum's control records.

Source: KIP-778, KIP-1022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heirlog.controller.first_recovery_level import is_recovery_level, wanted_level
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import DEFAULT_FEATURES, ELR_NEEDS_METADATA_VERSION, SUPPORTED_FEATURES
from heirlog.metadata.image import BROKER_RESOURCE, ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, RECOVERY_VERSION
from heirlog.metadata.min_isr import MIN_ISR
from heirlog.protocol.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)

_NAME = "Bootstrap records"


def format_records(features: Mapping[str, int]) -> list[Any]:
    """FeatureLevel records for `bootstrap.checkpoint`. Raises ValueError for a level out of range."""
    for name, level in sorted(features.items()):
        supported = SUPPORTED_FEATURES.get(name)
        if supported is None:
            raise ValueError(f"{name} is not a feature that heirlog knows")
        if level not in supported:
            raise ValueError(f"{name} can be {supported.min_version} to {supported.max_version}, not {level}")
    if features.get(ELR_VERSION, 0) and features.get(METADATA_VERSION, 0) < ELR_NEEDS_METADATA_VERSION:
        raise ValueError(f"{ELR_VERSION} needs {METADATA_VERSION} {ELR_NEEDS_METADATA_VERSION} or later")
    written = {
        name: level for name, level in features.items() if name != KRAFT_VERSION and (level or name == RECOVERY_VERSION)
    }
    return [
        FeatureLevelRecord(name=name, feature_level=written[name])
        for name in sorted(written, key=lambda name: (name != METADATA_VERSION, name))
    ]


def bootstrap_records(
    static: StaticConfig, formatted: Sequence[Any] | None = None, *, is_only_voter: bool = True
) -> list[Any]:
    """The batch that the first active controller appends; `formatted` is what `storage format` wrote, if anything."""
    # a bootstrap file of Kafka's format may hold NoOp records
    records = [r for r in formatted or () if not isinstance(r, NoOpRecord) and not is_recovery_level(r)]
    if not records:
        records = format_records(DEFAULT_FEATURES)
    level = wanted_level(static, formatted or ())
    if is_only_voter or not level:
        records.append(FeatureLevelRecord(name=RECOVERY_VERSION, feature_level=level))
    if any(isinstance(r, FeatureLevelRecord) and r.name == ELR_VERSION and r.feature_level for r in records):
        value = str(static.int(MIN_ISR))
        records.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_ISR, value=value))
    return [BeginTransactionRecord(name=_NAME), *records, EndTransactionRecord()]
