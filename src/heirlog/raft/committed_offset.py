"""`committed-offset`: how far this node knows its metadata log to be committed, so that a restart remembers it.

    {"version":0,"offset":1042}

A follower's log may end in records that were never committed: its leader lost them before its flush. Raft cuts those.
What lies below this offset was committed, and perhaps applied: a leader that does not have it is older than this node,
or of another history, and nothing may be cut on its word. A file that is missing or damaged says nothing (0); the
newest snapshot, which holds committed records only, still does.

It is written for records that change something, at most once a second and before a stop. So an idle cluster, whose
controller appends a NoOp twice a second, writes nothing, and a burst of changes writes seldom.

    changed --> written at once, or a second after the write before --> durable
                a clean stop, and a refusal of older metadata, write what is not written yet

A crash leaves an older number where the last write was less than a second ago. The comparison with the leader is then
that much weaker, and only for this node: a leader that lacks nothing but those last changes is followed, they are cut
from this node's copy like records that were never committed, and logs of topics that they created are set aside. That
takes a controller whose metadata were copied within that second, and no broker that is still up or was stopped cleanly.

Kafka has no such file and ignores it.
"""

from __future__ import annotations

import json

from heirlog.env import Cancel, Env, Files
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file

NAME = "committed-offset"
WRITE_INTERVAL_MS = 1_000


def read_committed_offset(files: Files, directory: str) -> int:
    """0 where nothing is known."""
    try:
        members = json.loads(read_file(files, f"{directory}/{NAME}") or b"{}")
        offset = members["offset"] if members["version"] == 0 else 0
    except (ValueError, KeyError, TypeError):
        return 0
    return offset if isinstance(offset, int) and offset > 0 else 0


class CommittedOffsetFile:
    def __init__(self, env: Env, directory: str) -> None:
        self._env = env
        self._file = AtomicFile(env.files, directory, NAME)
        self._cancel_write: Cancel | None = None
        self._next_write_ms = 0
        self.offset = self._written = read_committed_offset(env.files, directory)
        """Exclusive. What this node knows; the file says it only after `remember` or `finish`."""

    def advance(self, offset: int) -> None:
        """Nothing happens for one that is not larger."""
        self.offset = max(self.offset, offset)

    def remember(self, changed_offset: int, on_durable: OnDurable) -> None:
        """Write `offset` soon, unless the file reaches `changed_offset`, the end of the last records that matter."""
        if changed_offset <= self._written or self._cancel_write is not None:
            return
        wait_ms = self._next_write_ms - self._env.now_ms()
        if wait_ms > 0:
            self._cancel_write = self._env.call_later(wait_ms, lambda: self._write(on_durable))
        else:
            self._write(on_durable)

    def finish(self, on_durable: OnDurable) -> None:
        """Write what is not written yet, now: the node is about to stop."""
        if self.offset > self._written:
            self._write(on_durable)
        elif self._file.durable:
            on_durable(None)
        else:
            self._file.when_durable(on_durable)

    def close(self) -> None:
        self._cancel()
        self._file.close()

    def _write(self, on_durable: OnDurable) -> None:
        self._cancel()
        self._next_write_ms = self._env.now_ms() + WRITE_INTERVAL_MS
        try:
            self._file.write_rendered(self._render, on_durable)
        except OSError as error:
            on_durable(error)

    def _render(self) -> bytes:
        self._written = self.offset
        return json.dumps({"version": 0, "offset": self.offset}, separators=(",", ":")).encode()

    def _cancel(self) -> None:
        if self._cancel_write is not None:
            self._cancel_write()
            self._cancel_write = None
