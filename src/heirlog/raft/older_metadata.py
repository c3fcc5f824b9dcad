"""The leader lacks metadata that this node knows to be committed: what happens then, and what the operator reads.

`observer.py` finds it out, and `quorum.py` stops the node, or sets its copy of the log aside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heirlog.storage.atomic import OnDurable

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


def refusal_of_older(seen: str) -> str:
    """The last words of a node that does not follow; seen: what shows that the leader's metadata are older."""
    return (
        f"the controller's metadata are older than this broker's own copy, or of another history: {seen}. "
        "Following them would lose topics, ACLs and configurations that were changed since, and replicas could "
        "be elected that lack records. Nothing was changed. Start the right controller, or seed a new one from "
        "the brokers' copies with `heirlog recover controller --config <server.properties> "
        f"--from <broker-log-dir>`. {ACCEPT_ADVICE}"
    )
