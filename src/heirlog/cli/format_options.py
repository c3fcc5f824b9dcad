"""What the options of `heirlog storage format` ask for: feature levels and the voters of a new quorum."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from typing import Any

from heirlog.cli.errors import CommandError
from heirlog.local.secure import new_salt
from heirlog.metadata.as_records import scram_record
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import (
    DEFAULT_FEATURES,
    SUPPORTED_FEATURES,
    metadata_version_named,
    recovery_level,
    share_level,
    transaction_level,
)
from heirlog.metadata.image import (
    KRAFT_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    SHARE_VERSION,
    TRANSACTION_VERSION,
)
from heirlog.metadata.state import RESERVED_DIRECTORIES
from heirlog.protocol.types import BrokerId, endpoint_from_text, uuid_from_text, uuid_text
from heirlog.raft.control import Voter
from heirlog.security.scram import (
    BY_MECHANISM,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES_MAX,
    credential_of,
    salted_password,
)


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
    if not any(text.startswith(f"{SHARE_VERSION}=") for text in given):
        features[SHARE_VERSION] = share_level(features[METADATA_VERSION])
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


def scram_wanted(given: Sequence[str]) -> list[Any]:
    """The records of the users in --add-scram. Raises CommandError, without a password in it."""
    records: dict[tuple[str, str], Any] = {}
    for text in given:
        mechanism, _, rest = text.partition("=")
        scram = BY_MECHANISM.get(mechanism)
        if scram is None or not (rest.startswith("[") and rest.endswith("]")):
            raise CommandError(
                "--add-scram is of the form 'SCRAM-SHA-512=[name=alice,password=...]', with the mechanism "
                f"{' or '.join(BY_MECHANISM)}"
            )
        values = _scram_values(rest[1:-1])
        name, iterations = values["name"], int(values.get("iterations", ITERATIONS_MIN))
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise CommandError(f"--add-scram {name}: iterations are {ITERATIONS_MIN} to {ITERATIONS_MAX}")
        if (name, mechanism) in records:
            raise CommandError(f"--add-scram names {name} twice for {mechanism}")
        salt = _bytes_of(values, "salt") if "salt" in values else new_salt()
        if not 0 < len(salt) <= SALT_BYTES_MAX:
            raise CommandError(f"--add-scram {name}: a salt has 1 to {SALT_BYTES_MAX} bytes")
        if "password" in values:
            salted = salted_password(scram, values["password"], salt, iterations)
        else:
            salted = _bytes_of(values, "saltedpassword")
            if len(salted) != scram.key_bytes:
                raise CommandError(f"--add-scram {name}: a saltedpassword of {mechanism} has {scram.key_bytes} bytes")
        credential = credential_of(scram, salted, salt, iterations)
        records[name, mechanism] = scram_record((name, scram.number), credential)
    return list(records.values())


def _bytes_of(values: Mapping[str, str], key: str) -> bytes:
    """Raises CommandError."""
    try:
        return a2b_base64(values[key], strict_mode=True)
    except ValueError as error:  # binascii.Error is one
        raise CommandError(f"--add-scram {values['name']}: its {key} is not base64") from error


def _scram_values(text: str) -> dict[str, str]:
    """Raises CommandError."""
    values = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in ("name", "password", "saltedpassword", "salt", "iterations") or key in values:
            raise CommandError(
                "--add-scram has name, password (or saltedpassword and salt, in base64) and iterations, each once"
            )
        values[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    if not values.get("name") or bool(values.get("password")) == bool(values.get("saltedpassword")):
        raise CommandError("--add-scram needs a name, and either a password or a saltedpassword with its salt")
    if "saltedpassword" in values and "salt" not in values:
        raise CommandError("--add-scram: a saltedpassword needs the salt with which it was made")
    iterations = values.get("iterations", "1")
    if not iterations.isdecimal() or len(iterations) > len(str(ITERATIONS_MAX)):
        raise CommandError("--add-scram: iterations are a whole number")
    return values


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
