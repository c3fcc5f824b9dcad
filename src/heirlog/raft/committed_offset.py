"""`committed-offset`: the offset up to which this node knows its metadata log to be committed, kept for a restart.

    {"version":0,"offset":1042,"flushed":1040}
    crc32c: 5f3a09be

A follower's log may end in records that were never committed, because its leader lost them before its flush. Raft
truncates those. Records below this offset were committed, and perhaps applied. A leader that lacks them is older than
this node, or has another history, and this node must not truncate its log to follow it. A missing or damaged file
counts as 0; the end of the newest snapshot, which has only committed records, is still known.

A leader keeps it too: killed, it is a follower at its next start, and a voter.

It is written for records that change something, at most once a second, and before a stop. So an idle cluster, whose
controller appends a NoOp twice a second, writes nothing, and many changes in a row cause few writes.

    changed --> written at once, or a second after the previous write --> durable
                a clean stop, and a refusal of older metadata, write the current value

After a crash the number may be up to a second old, and the comparison with the leader is weaker, for this node only. It
follows a leader that lacks only those last changes. They are truncated from this node's copy like records that were
never committed, and logs of topics that they created are moved aside. That can only happen with a controller whose
metadata was copied within that second, and if every other broker had crashed too.

`flushed` is what of this was flushed here at that time. A log that ends below it was damaged: a power cut takes back
only what was not flushed. A voter may have acknowledged these records, so that they were committed because of it. It
does not start then, nor if this file is damaged, without which nothing would show it.

Kafka has no such file and ignores it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from heirlog.env import Cancel, Env, Files
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file
from heirlog.storage.check_line import checked, with_check_line

NAME = "committed-offset"
WRITE_INTERVAL_MS = 1_000


def read_committed_offset(files: Files, directory: str) -> int:
    """The stored offset; 0 if it is unknown."""
    return _read(files, directory, "offset") or 0


def read_flushed_offset(files: Files, directory: str) -> int | None:
    """Up to this offset, at least, the log's records were committed and flushed; 0 without a file, None if the file is
    damaged.
    """
    return _read(files, directory, "flushed")


def _read(files: Files, directory: str, name: str) -> int | None:
    """None: the file is there, and damaged."""
    content = read_file(files, f"{directory}/{NAME}")
    if content is None:
        return 0
    try:
        members = json.loads(checked(content))
        offset = members.get(name, 0) if members["version"] == 0 else 0
        return max(int(offset), 0)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class CommittedOffsetFile:
    def __init__(self, env: Env, directory: str, flushed_offset: Callable[[], int]) -> None:
        """flushed_offset: of the log."""
        self._env = env
        self._flushed_offset = flushed_offset
        self._file = AtomicFile(env.files, directory, NAME)
        self._cancel_write: Cancel | None = None
        self._next_write_ms = 0
        self.offset = self._written = read_committed_offset(env.files, directory)
        """Exclusive offset that this node knows; the file has it only after `remember` or `finish`."""

    def advance(self, offset: int) -> None:
        """Raise the offset; does nothing if it is not larger."""
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
        """Write the current value now: the node is about to stop."""
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
        flushed = min(self.offset, self._flushed_offset())
        members = {"version": 0, "offset": self.offset, "flushed": flushed}
        return with_check_line(json.dumps(members, separators=(",", ":")) + "\n")

    def _cancel(self) -> None:
        if self._cancel_write is not None:
            self._cancel_write()
            self._cancel_write = None
