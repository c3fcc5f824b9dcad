"""Releases of heirlog: what a node says that it supports, and so which levels of features a cluster may have.

All nodes run the code of this release. What an older one supports is a value of the simulated machine: the ranges in
the registrations that leave its process are cut to it, and features that it does not know are left out. So the other
nodes see an older node, and the product needs no switch. What an older release does differently is not played.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heirlog.metadata.features import SUPPORTED_FEATURES, VersionRange
from heirlog.metadata.state import GROUP_VERSION, METADATA_VERSION, RECOVERY_VERSION, SHARE_VERSION, TRANSACTION_VERSION
from heirlog.protocol.messages import BrokerRegistrationRequest, ControllerRegistrationRequest


@dataclass(frozen=True, slots=True)
class Release:
    """supports: the levels of each feature that it knows; None: those of this code."""

    name: str
    supports: Mapping[str, VersionRange] | None = None

    def as_seen(self, request: Any) -> Any:
        """The request as it leaves a node of this release: a registration is changed in place."""
        if self.supports is None or not isinstance(request, (BrokerRegistrationRequest, ControllerRegistrationRequest)):
            return request
        features: list[Any] = request.features
        features[:] = [feature for feature in features if feature.name in self.supports]
        for feature in features:
            levels = self.supports[feature.name]
            feature.min_supported_version, feature.max_supported_version = levels.min_version, levels.max_version
        return request

    def formatted(self, levels: Mapping[str, int]) -> dict[str, int]:
        """The levels of a new cluster of this release, if `levels` are those of this code."""
        if self.supports is None:
            return dict(levels)
        return {
            name: min(level, self.supports[name].max_version) for name, level in levels.items() if name in self.supports
        }


NEWEST = Release("the newest release")


def older(metadata_version: int, *, recovers: bool) -> Release:
    """A release whose newest metadata.version is this one, from before the features of transactions and of groups.

    recovers: it knows heirlog.recovery.version.
    """
    supports = {
        **SUPPORTED_FEATURES,
        METADATA_VERSION: VersionRange(SUPPORTED_FEATURES[METADATA_VERSION].min_version, metadata_version),
    }
    del supports[TRANSACTION_VERSION], supports[GROUP_VERSION], supports[SHARE_VERSION]
    if not recovers:
        del supports[RECOVERY_VERSION]
    without = "" if recovers else ", without recovery"
    return Release(f"a release up to metadata.version {metadata_version}{without}", supports)
