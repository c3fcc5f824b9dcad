"""UpdateFeatures: sets the levels of the cluster's features, all of one request or none.

    upgrade type    1 upgrade | 2 safe downgrade | 3 unsafe downgrade; a downgrade needs 2 or 3, a raise needs 1
    a level         must be one that this version and every registered broker and controller supports
    the ELR         needs metadata.version 23 (4.0-IV1), which the same request may set
    validate only   the same answer, and no records

A request that breaks a rule gets INVALID_UPDATE_VERSION. A level that is set already is written again, as on Apache
Kafka, together with the records that belong to an upgrade. For metadata.version and kraft.version nothing is written.
There is no downgrade below metadata.version 23, neither safe nor unsafe: an older version could not read the records
that this version writes.

The ELR changes more than its level, in one batch:

    up      a cluster-wide min.insync.replicas if there is none, and the values of single brokers are deleted: from now
            on controller and brokers must resolve the same number. Then the level; then, with the manager on,
            LastKnownELR where a replica that is being added may have been lost (recovery/switch.py)
    down    partitions without ISR get their ELR as ISR: its members hold every committed record, and afterwards no
            election reads the ELR. Then the level; then ClearElr for all topics, so that no list outlives the feature:
            a member that stops uncleanly while it is off would be eligible again after the next upgrade

kraft.version is the quorum's, not the image's. The quorum's leader, which is this controller, raises it from 0 to 1 by
control records (raft/voter_changes.py). It can never be lowered.

heirlog.recovery.version switches the recovery manager. One batch has its level, followed by every LastKnownELR in its
new meaning (recovery/switch.py). A broker need not support the level: a broker that does not counts as one that has not
answered. Every controller must support it: one that does not know it would end at its record.

If a downgrade leaves a partition without a replica known to be complete, the answer names the partition, also for
validate only. It also says who decides there: the recovery manager, by the strategy of the topic, or an operator.

Source: KIP-584, KIP-778, KIP-1022; KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from heirlog.controller.controller_result import ControllerResult, all_or_none
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.partition_change import TargetState
from heirlog.controller.recovery.strategy import Strategy
from heirlog.controller.recovery.switch import begun, switched, without_candidates
from heirlog.metadata.basis import Basis
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import ELR_NEEDS_METADATA_VERSION, SUPPORTED_FEATURES, supported_levels
from heirlog.metadata.image import (
    BROKER_RESOURCE,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    Image,
)
from heirlog.metadata.min_isr import MIN_ISR
from heirlog.metadata.state import SupportedFeature
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from heirlog.protocol.records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, PartitionChangeRecord
from heirlog.protocol.types import PartitionKey, Uuid

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3

_NAME: Final = "Feature levels"
_NAMED_AT_MOST: Final = 20
"""Partitions that one message names."""


class KRaftVersionPort(Protocol):
    """What this needs of `raft.Quorum`."""

    @property
    def kraft_version(self) -> int: ...

    def raise_kraft_version(self, *, validate_only: bool) -> int: ...


def update_features(
    image: Image, static: StaticConfig, quorum: KRaftVersionPort, request: UpdateFeaturesRequest, version: int
) -> ControllerResult[UpdateFeaturesResponse]:
    """Returns the records and the answer of one request."""
    names = [update.feature for update in request.feature_updates]
    control_offset = -1
    try:
        levels = _checked(image, quorum.kraft_version, request, version)
        change = _Change(image, static, levels)
        records = all_or_none(_NAME, list(change.records()))
        if levels.get(KRAFT_VERSION, 0) > quorum.kraft_version:
            control_offset = quorum.raise_kraft_version(validate_only=request.validate_only)
    except KafkaError as error:
        refusal = update_features_answer(names, error.code, error.message)
        return ControllerResult(lambda base_offset: refusal)
    response = update_features_answer(names, ErrorCode.NONE, change.warning())
    if request.validate_only:
        return ControllerResult(lambda base_offset: response)
    return ControllerResult(lambda base_offset: response, records, change.elections, control_offset=control_offset)


def update_features_answer(names: list[str], code: ErrorCode, message: str | None) -> UpdateFeaturesResponse:
    """Versions 0 and 1 name the features if all of them were changed; an error is always the whole request's."""
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=message,
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=name, error_message=ErrorCode.NONE.name)
            for name in names
            if code is ErrorCode.NONE
        ],
    )


def _checked(image: Image, kraft_version: int, request: UpdateFeaturesRequest, version: int) -> dict[str, int]:
    """The requested levels. Raises KafkaError with the first reason to refuse."""
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    if len(levels) < len(request.feature_updates):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A feature was named twice; name each feature once.")
    for update in request.feature_updates:
        if version == 0:
            kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
        else:
            kind = update.upgrade_type
        current = kraft_version if update.feature == KRAFT_VERSION else finalized_level(image, update.feature)
        reason = _reason_against(image, update.feature, current, update.max_version_level, kind)
        if reason is not None:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}",
            )
    metadata_version = levels.get(METADATA_VERSION, image.metadata_version)
    if levels.get(ELR_VERSION, 0) and metadata_version < ELR_NEEDS_METADATA_VERSION:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{ELR_VERSION} needs {METADATA_VERSION} {ELR_NEEDS_METADATA_VERSION} (4.0-IV1) or later; the cluster has "
            f"{metadata_version}. Raise {METADATA_VERSION} first.",
        )
    return levels


def finalized_level(image: Image, feature: str) -> int:
    """The finalized level; 0 if the feature is off or unknown."""
    return image.features.get(feature, 0)


def _reason_against(image: Image, feature: str, current: int, level: int, kind: int) -> str | None:
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    supported = SUPPORTED_FEATURES.get(feature)
    if supported is None:
        return f"The controller does not support the feature {feature}."
    if level not in supported:
        return f"The controller supports versions {supported.min_version}-{supported.max_version} of it only."
    for node, features, remedy in _nodes(image, feature):
        levels = supported_levels(features, feature)
        if level not in levels:
            return f"{node} supports versions {levels.min_version}-{levels.max_version} of it only. {remedy}"
    if level < current and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    if feature == KRAFT_VERSION and level < current:
        return "It cannot be lowered."
    return None


def _nodes(image: Image, feature: str) -> Iterator[tuple[str, tuple[SupportedFeature, ...], str]]:
    """The nodes that have to support a level of the feature, and what to do if one does not."""
    for broker_id in sorted(image.brokers) if feature != RECOVERY_VERSION else ():
        yield f"Broker {broker_id}", image.brokers[broker_id].features, "Upgrade or unregister it first."
    remedy = "Upgrade it first."
    if feature == RECOVERY_VERSION:
        remedy = (
            "A controller of Apache Kafka, which does not know it, would end. Start a controller of heirlog with this "
            "node id in its place first: a controller that has left the quorum stays registered until then."
        )
    for controller_id in sorted(image.controllers):
        yield f"Controller {controller_id}", image.controllers[controller_id].features, remedy


class _Change:
    """The records of an accepted request, and the warning for its answer."""

    def __init__(self, image: Image, static: StaticConfig, levels: Mapping[str, int]) -> None:
        self._image = image
        self._static = static
        self._levels = levels
        self.elections: list[Basis] = []
        self._manager_after = bool(levels.get(RECOVERY_VERSION, image.recovery_manager_enabled))
        self._elr_after = bool(levels.get(ELR_VERSION, image.elr_enabled))
        self._switch = Changes()
        if self._manager_after != image.recovery_manager_enabled and self._elr_after:
            self._switch = switched(image, static, self._manager_after)

    def records(self) -> Iterator[Any]:
        image = self._image
        for feature in sorted(self._levels.keys() - {KRAFT_VERSION}, key=lambda name: (name != METADATA_VERSION, name)):
            level, current = self._levels[feature], finalized_level(image, feature)
            if level == current and feature == METADATA_VERSION:
                continue
            record = FeatureLevelRecord(name=feature, feature_level=level)
            if feature == RECOVERY_VERSION:
                yield record
                yield from self._partition_changes(self._switch)
            elif feature != ELR_VERSION:
                yield record
            elif level:
                yield from _one_min_isr_for_all(image, self._static)
                yield record
                if self._manager_after and not current:
                    yield from self._partition_changes(begun(image, self._static))
            elif not current:
                yield record
            else:
                yield from self._partition_changes(_eligible_as_isr(image, self._static))
                yield record
                yield ClearElrRecord(topic_name="")

    def _partition_changes(self, changes: Changes) -> list[PartitionChangeRecord]:
        self.elections += changes.elections
        return changes.records

    def warning(self) -> str | None:
        """The partitions left without a replica known to be complete, and who decides there."""
        image = self._image
        if image.elr_enabled and not self._elr_after:
            why, stuck = f"Without {ELR_VERSION}", _without_members(image)
        elif image.recovery_manager_enabled and not self._manager_after:
            why, stuck = "With the recovery manager off", without_candidates(image, self._switch)
        else:
            return None
        leadership = Leadership(image, self._static, manager_enabled=self._manager_after)
        names: dict[str, list[str]] = {}
        for topic_id, partition in stuck:
            name = f"{image.topics[topic_id].name}-{partition}"
            names.setdefault(_what_decides(leadership, topic_id), []).append(name)
        if not names:
            return None
        return f"{why} these partitions have no replica known to be complete. " + " ".join(
            f"{what}: {_some_of(found)}." for what, found in sorted(names.items())
        )


def _one_min_isr_for_all(image: Image, static: StaticConfig) -> Iterator[ConfigRecord]:
    if image.config(BROKER_RESOURCE, "", MIN_ISR) is None:
        yield ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name="", name=MIN_ISR, value=str(static.int(MIN_ISR))
        )
    for kind, name in sorted(image.configs):
        if kind == BROKER_RESOURCE and name and image.config(kind, name, MIN_ISR) is not None:
            yield ConfigRecord(resource_type=kind, resource_name=name, name=MIN_ISR, value=None)


def _eligible_as_isr(image: Image, static: StaticConfig) -> Changes:
    leadership, changes = Leadership(image, static), Changes()
    for topic_id, partition in image.leaderless():
        state = image.partitions[topic_id][partition]
        if state.elr and not state.isr:
            changes.add(leadership.change(topic_id, partition, TargetState(isr=state.elr)))
    return changes


def _without_members(image: Image) -> Iterator[PartitionKey]:
    for topic_id, partition in image.leaderless():
        state = image.partitions[topic_id][partition]
        if not state.isr and not state.elr:
            yield topic_id, partition


def _what_decides(leadership: Leadership, topic_id: Uuid) -> str:
    if not leadership.manager_enabled:
        if leadership.allows_unclean(topic_id):
            return "The first replica that returns leads, whatever its log holds"
        return "An operator has to decide (an unclean election)"
    return {
        Strategy.AGGRESSIVE: "The replica with the best log among those that answer within seconds leads",
        Strategy.BALANCED: "The replica with the best log leads once every replica has answered",
        Strategy.NONE: "An operator has to decide (heirlog recover plan)",
    }[leadership.strategy(topic_id)]


def _some_of(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return ", ".join(names[:_NAMED_AT_MOST]) + more
