"""What the options of `heirlog storage format` ask for: feature levels and the voters of a new quorum."""

from __future__ import annotations

from collections.abc import Sequence

from heirlog.cli.errors import CommandError
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import (
    DEFAULT_FEATURES,
    SUPPORTED_FEATURES,
    metadata_version_named,
    recovery_level,
    transaction_level,
)
from heirlog.metadata.image import KRAFT_VERSION, METADATA_VERSION, RECOVERY_VERSION, TRANSACTION_VERSION
from heirlog.metadata.state import RESERVED_DIRECTORIES
from heirlog.protocol.types import BrokerId, endpoint_from_text, uuid_from_text, uuid_text
from heirlog.raft.control import Voter


def features_wanted(
    config: StaticConfig, release_version: str | None, given: Sequence[str], founds_quorum: bool
) -> dict[str, int]:
    """The defaults, changed by --release-version and --feature. Raises CommandError.

    founds_quorum: this node is formatted with the voters of a new quorum.
    """
    features = {**DEFAULT_FEATURES, RECOVERY_VERSION: recovery_level(config)}
    if release_version is not None:
        try:
            features[METADATA_VERSION] = metadata_version_named(release_version)
        except ValueError as error:
            raise CommandError(str(error)) from error
    for text in given:
        name, _, level = text.partition("=")
        supported = SUPPORTED_FEATURES.get(name)
        if supported is None:
            raise CommandError(f"--feature {name} is not a feature of heirlog; it has {', '.join(SUPPORTED_FEATURES)}")
        if not level.isdigit() or int(level) not in supported:
            raise CommandError(
                f"--feature {text}: {name} has levels {supported.min_version} to {supported.max_version}"
            )
        if name == KRAFT_VERSION and (int(level) == 0) != bool(config.voters):
            raise CommandError(
                f"--feature {text}: the level is 0 if controller.quorum.voters says who votes, else 1; "
                + ("remove controller.quorum.voters for level 1" if config.voters else "set it for level 0")
            )
        if name == KRAFT_VERSION and level != "0" and not founds_quorum:
            raise CommandError(
                f"--feature {text} is for a controller that is formatted with --standalone or --initial-controllers; "
                "remove it: other nodes take kraft.version from the quorum"
            )
        if name == METADATA_VERSION and release_version is not None:
            raise CommandError(f"--release-version and --feature {text} both set metadata.version; remove one of them")
        features[name] = int(level)
    if not any(text.startswith(f"{TRANSACTION_VERSION}=") for text in given):
        features[TRANSACTION_VERSION] = transaction_level(features[METADATA_VERSION])
    return features


def voters_wanted(
    config: StaticConfig, standalone: bool, initial_controllers: str | None, no_initial_controllers: bool
) -> list[Voter] | None:
    """Voters of a new quorum; None: standalone (the voter's directory id is not known yet). Raises CommandError.

    []: this node writes none. It is no controller, or joins a quorum, or controller.quorum.voters names the voters.
    """
    ways = standalone + (initial_controllers is not None) + no_initial_controllers
    if ways > 1:
        raise CommandError("only one of --standalone, --initial-controllers and --no-initial-controllers can be given")
    if config.voters and (standalone or initial_controllers is not None):
        raise CommandError(
            "controller.quorum.voters says who votes (kraft.version 0): remove --standalone and --initial-controllers, "
            "or replace it by controller.quorum.bootstrap.servers"
        )
    if not config.is_controller:
        if standalone or initial_controllers is not None:
            raise CommandError("this node is not a controller: remove --standalone and --initial-controllers")
        return []
    if config.voters:
        return []
    if ways == 0:
        raise CommandError(
            "this node is a controller: give --standalone (it is the only voter of a new quorum), "
            "--initial-controllers (the voters of a new quorum) or --no-initial-controllers (it joins one)"
        )
    if initial_controllers is not None:
        return _voters(config, initial_controllers)
    return None if standalone else []


def _voters(config: StaticConfig, text: str) -> list[Voter]:
    """The voters of --initial-controllers, which must be the same text on all of them. Raises CommandError."""
    listener = config.controller_listener_names[0]
    voters = [_voter(part.strip(), listener) for part in text.split(",") if part.strip()]
    if not voters:
        raise CommandError("--initial-controllers names no controller: give id@host:port:directory-id,...")
    for kind, keys in (
        ("node id", [str(voter.id) for voter in voters]),
        ("directory id", [uuid_text(voter.directory_id) for voter in voters]),
        ("address", [str(voter.endpoint) for voter in voters]),
    ):
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise CommandError(f"--initial-controllers names the {kind} {twice} more than once; each voter has its own")
    if all(voter.id != config.node_id for voter in voters):
        raise CommandError(
            f"--initial-controllers does not name this node, {config.node_id}: add it, or give "
            "--no-initial-controllers to let it join the quorum later"
        )
    return voters


def _voter(text: str, listener: str) -> Voter:
    """`id@host:port:directory-id`, as Kafka writes it."""
    node_id, _, rest = text.partition("@")
    address, _, directory_id = rest.rpartition(":")
    try:
        if not node_id.isdecimal():
            raise ValueError(f"{node_id!r} is not a node id")
        voter = Voter(BrokerId(int(node_id)), uuid_from_text(directory_id), endpoint_from_text(address), listener)
        if voter.directory_id in RESERVED_DIRECTORIES:
            raise ValueError(f"{directory_id} is reserved; heirlog storage random-uuid prints a new one")
    except ValueError as error:
        raise CommandError(
            f"--initial-controllers: {text!r} is not of the form id@host:port:directory-id ({error})"
        ) from error
    return voter
