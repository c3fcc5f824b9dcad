"""The leader lacks metadata that this node knows to be committed: what happens then, and what the operator reads.

`observer.py` finds it out, and `quorum.py` stops the node, or sets its copy of the log aside.

    accepted -> clean stops no longer count -> copy renamed (NAME.<hex>-stray)
             -> registered with the newest leader epoch -> file `registered` written into the copy

A broker that ends between the rename and its registration starts with an empty log, and would not notice that the
metadata is older. A copy without `registered` says so: the broker registers as one that accepts older metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heirlog.env import Files
from heirlog.protocol.types import METADATA_TOPIC
from heirlog.storage.atomic import OnDurable, replace_file
from heirlog.storage.directory_names import STRAY_SUFFIX

ACCEPT_ADVICE = (
    "To accept the older metadata anyway, for one start: `heirlog node --config <server.properties> "
    "--accept-older-metadata` or `heirlog up --accept-older-metadata`; logs of partitions that they do not name are "
    "set aside, and this broker leaves every ISR and ELR."
)


@dataclass(frozen=True, slots=True)
class OlderMetadata:
    """What happens if the leader lacks records that this node knows to be committed.

    on_refused: stops the node with this message; nothing more is delivered.
    accept: None if the operator did not accept older metadata, or this node has acted on its copy. Else called once, to
    durably invalidate clean stops; then the copy is moved aside.
    """

    on_refused: Callable[[str], None]
    accept: Callable[[], Callable[[OnDurable], None] | None] = lambda: None


def refusal_of_older(seen: str, *, is_controller: bool) -> str:
    """The last words of a node that does not follow; seen: what shows that the leader's metadata are older."""
    node = "controller" if is_controller else "broker"
    lost = (
        f"the controller's metadata are older than this {node}'s own copy, or of another history: {seen}. "
        "Following them would lose topics, ACLs and configurations that were changed since, and replicas could "
        "be elected that lack records. Nothing was changed. "
    )
    if is_controller:
        return (
            f"{lost}The log of another controller was replaced by an older one. Stop all controllers, and keep their "
            "folders. Then seed this one: `heirlog recover controller --config <server.properties> --majority-lost "
            "--from <broker-log-dir>`."
        )
    return (
        f"{lost}Start the right controller, or seed a new one from "
        "the brokers' copies with `heirlog recover controller --config <server.properties> "
        f"--from <broker-log-dir>`. {ACCEPT_ADVICE}"
    )


REGISTERED = "registered"


def unregistered_copies(files: Files, metadata_log_dir: str) -> list[str]:
    """Paths of the copies that were set aside and after which this node has not registered. Raises OSError."""
    if not files.is_dir(metadata_log_dir):
        return []
    names = [name for name in files.list(metadata_log_dir) if name.startswith(f"{METADATA_TOPIC}-0.")]
    paths = [f"{metadata_log_dir}/{name}" for name in names if name.endswith(STRAY_SUFFIX)]
    return [path for path in paths if not files.exists(f"{path}/{REGISTERED}")]


def mark_registered(files: Files, path: str, on_durable: OnDurable) -> None:
    """The controllers know that this node accepted older metadata. Raises OSError."""
    replace_file(files, path, REGISTERED, [b""], on_durable)
