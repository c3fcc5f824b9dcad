"""`heirlog features describe|upgrade|downgrade|disable`: the levels of the cluster's features, as kafka-features.

All changes of one request are made, or none. The losses of a downgrade are shown before it is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.cleared import warn, warn_of_cleared_elr
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.render import Json, show_json, show_rows
from heirlog.metadata.features import metadata_version_name, metadata_version_named, share_level, transaction_level
from heirlog.metadata.state import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    SHARE_VERSION,
    TRANSACTION_VERSION,
)
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

app = typer.Typer(help="Show and change the levels of features.", no_args_is_help=True)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
TIMEOUT_MS = 30_000
ELR_WITH_A_NEW_CLUSTER = 26
"""metadata.version from which on a release has the ELR by default (4.1-IV0)."""

Levels = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=LEVEL", help="Features and their new levels.", show_default=False),
]
Feature = Annotated[
    list[str] | None, typer.Option("--feature", metavar="NAME=LEVEL", help="The same in Kafka's words.")
]
Metadata = Annotated[str | None, typer.Option("--metadata", help="Deprecated: --feature metadata.version=LEVEL.")]
Release = Annotated[str | None, typer.Option("--release-version", help="All levels of a release: 4.1, 4.2-IV1.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the change, and do not make it.")]
Unsafe = Annotated[bool, typer.Option("--unsafe", help="Allow the change even if metadata may be lost.")]


@app.command("describe")
def describe(
    node_id: Annotated[int | None, typer.Option("--node-id", min=0, help="Show what this broker supports.")] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show what the brokers support and what the cluster has finalized."""
    with connected(bootstrap_server) as client:
        rows = described_features(client, node_id)
    columns = {
        "feature": "Feature",
        "min_version": "SupportedMinVersion",
        "max_version": "SupportedMaxVersion",
        "level": "FinalizedVersionLevel",
        "epoch": "Epoch",
    }
    if not as_json:
        for row in rows:
            if row["feature"] == METADATA_VERSION:
                row.update((key, metadata_version_name(row[key])) for key in ("min_version", "max_version", "level"))
    show_rows(columns, rows, as_json)


def described_features(client: Client, node_id: int | None = None) -> list[dict[str, Any]]:
    from heirlog.protocol.messages import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name="heirlog", client_software_version="1")
    answer = client.send_to_any(request) if node_id is None else client.send_to_broker(node_id, request)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return [
        {
            "feature": feature.name,
            "min_version": feature.min_version,
            "max_version": feature.max_version,
            "level": levels.get(feature.name, 0),
            "epoch": answer.finalized_features_epoch,
        }
        for feature in sorted(answer.supported_features, key=lambda feature: feature.name)
    ]


@app.command("upgrade")
def upgrade(
    levels: Levels = None,
    feature: Feature = None,
    release_version: Release = None,
    metadata: Metadata = None,
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Raise levels."""
    with connected(bootstrap_server) as client:
        wanted = _levels(client, [*(levels or ()), *(feature or ())], release_version, metadata)
        _update(client, "upgrade", wanted, UPGRADE, dry_run, as_json)
        off = [row for row in described_features(client) if row["feature"] == RECOVERY_VERSION and not row["level"]]
        if off and RECOVERY_VERSION not in wanted:
            warn(
                f"unclean recovery is off, and no release of Apache Kafka has it: "
                f"heirlog features upgrade {RECOVERY_VERSION}={off[0]['max_version']} turns it on"
            )


@app.command("downgrade")
def downgrade(
    levels: Levels = None,
    feature: Feature = None,
    release_version: Release = None,
    metadata: Metadata = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Lower levels; 0 turns a feature off."""
    with connected(bootstrap_server) as client:
        wanted = _levels(client, [*(levels or ()), *(feature or ())], release_version, metadata)
        _update(client, "downgrade", wanted, UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE, dry_run, as_json)


@app.command("disable")
def disable(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Features.", show_default=False)] = None,
    feature: Annotated[
        list[str] | None, typer.Option("--feature", metavar="NAME", help="The same in Kafka's words.")
    ] = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Turn features off: level 0."""
    named = [*(names or ()), *(feature or ())]
    if not named:
        raise UsageError("name at least one feature; heirlog features describe shows them")
    with connected(bootstrap_server) as client:
        kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
        _update(client, "disable", dict.fromkeys(named, 0), kind, dry_run, as_json)


def _levels(client: Client, features: list[str], release: str | None, metadata: str | None) -> dict[str, int]:
    """The levels wanted. Raises UsageError."""
    if sum(way is not None for way in (features or None, release, metadata)) != 1:
        raise UsageError("give the levels as NAME=LEVEL, or with --release-version")
    if features:
        return dict(map(_pair, features))
    try:
        level = metadata_version_named(str(release or metadata))
    except ValueError as error:
        raise UsageError(str(error)) from error
    if metadata is not None:
        return {METADATA_VERSION: level}
    known = {row["feature"] for row in described_features(client)}
    defaults = {
        METADATA_VERSION: level,
        ELR_VERSION: int(level >= ELR_WITH_A_NEW_CLUSTER),
        TRANSACTION_VERSION: transaction_level(level),
        GROUP_VERSION: 1,
        SHARE_VERSION: share_level(level),
    }
    return {name: wanted for name, wanted in defaults.items() if name in known}


def _pair(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if name.strip() == METADATA_VERSION and equals:
        try:
            return METADATA_VERSION, metadata_version_named(level.strip())
        except ValueError as error:
            raise UsageError(f"{text}: {error}") from error
    if not equals or not name.strip() or not level.strip().isdecimal():
        raise UsageError(f"{text} is not of the form NAME=LEVEL")
    return name.strip(), int(level)


def _update(client: Client, verb: str, levels: dict[str, int], kind: int, dry_run: bool, as_json: bool) -> None:
    """Raises CommandError."""
    if kind != UPGRADE:
        _warn(client, levels, kind)
    before = {row["feature"]: row["level"] for row in described_features(client)}
    answer = _ask(client, levels, kind, dry_run)
    named = ", ".join(f"{feature}={level}" for feature, level in levels.items())
    if answer.error_code:
        reason = answer.error_message or ""
        raise CommandError(
            f"could not {verb} {named}: {error_code(answer.error_code).name}, {reason}".rstrip(" ,.")
            + "; heirlog features describe shows what the cluster has and supports"
        )
    if as_json:
        show_json({"levels": levels, "dry_run": dry_run, "message": answer.error_message})
        return
    for feature, level in levels.items():
        shown = metadata_version_name(level) if feature == METADATA_VERSION else level
        if before.get(feature) == level:
            print(f"{feature} is at {shown} already.")
        else:
            print(f"{feature} {'can be' if dry_run else 'was'} {verb}d to {shown}.")


def _warn(client: Client, levels: dict[str, int], kind: int) -> None:
    """What the downgrade takes away. The controller's own words on partitions come from a dry run."""
    now = {row["feature"]: row["level"] for row in described_features(client)}
    ends = levels.get(ELR_VERSION, 1) < now.get(ELR_VERSION, 0)
    if ends:
        warn_of_cleared_elr(client, f"turning {ELR_VERSION} off")
    preview = _ask(client, levels, kind, dry_run=True)
    if not preview.error_code and preview.error_message:
        warn(preview.error_message)


def _ask(client: Client, levels: dict[str, int], kind: int, dry_run: bool) -> Any:
    from heirlog.client.admin import to_controller
    from heirlog.protocol.messages import UpdateFeaturesRequest

    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        for feature, level in levels.items()
    ]
    request = UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS, feature_updates=updates, validate_only=dry_run)

    def codes(answer: Any) -> Iterable[int]:
        return [answer.error_code, *(result.error_code for result in answer.results)]

    return client.run(to_controller(request, codes))
