"""`committed-offset`: how far this node knows its metadata log to be committed, so that a restart remembers it.

    {"version":0,"offset":1042}

A follower's log may end in records that were never committed: its leader lost them before its flush. Raft cuts those.
What lies below this offset was committed, and perhaps applied: a leader that does not have it is older than this node,
or of another history, and nothing may be cut on its word. A file that is missing or damaged says nothing (0); the
newest snapshot, which holds committed records only, still does.

Kafka has no such file and ignores it.
"""

from __future__ import annotations

import json

from heirlog.env import Files
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file

NAME = "committed-offset"


def read_committed_offset(files: Files, directory: str) -> int:
    """0 where nothing is known."""
    try:
        members = json.loads(read_file(files, f"{directory}/{NAME}") or b"{}")
        offset = members["offset"] if members["version"] == 0 else 0
    except (ValueError, KeyError, TypeError):
        return 0
    return offset if isinstance(offset, int) and offset > 0 else 0


class CommittedOffsetFile:
    def __init__(self, files: Files, directory: str) -> None:
        self._file = AtomicFile(files, directory, NAME)
        self.offset = read_committed_offset(files, directory)
        """Exclusive. What the file says, or will say once the writes under way are done."""

    def advance(self, offset: int, on_durable: OnDurable) -> None:
        """Nothing happens for one that is not larger. Raises OSError."""
        if offset > self.offset:
            self.offset = offset
            self._file.write_rendered(self._render, on_durable)

    def _render(self) -> bytes:
        return json.dumps({"version": 0, "offset": self.offset}, separators=(",", ":")).encode()

    def close(self) -> None:
        self._file.close()
