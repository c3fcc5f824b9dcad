"""The port between what decides and what touches the world.

Every floor below 7 sees time, chance, peers and disks only through an `Env`. Two bodies implement it: the asyncio
server and the seeded simulator. What holds in both:

* One thread. A callback never runs inside the call that registered it, and never while another one runs.
* `send` calls `on_result` exactly once, with a response or a `SendFailure`, also for a send to oneself.
* A callback dies with the incarnation of its node: after a kill nothing that the old process registered runs.
* Reads and appends are synchronous (page cache); a flush never is. What was not flushed may be gone after a crash,
  in whole or in part, and so may a create, rename or unlink whose directory was not synced.
* A message is never changed after it was sent: the simulator passes the object itself.

Raises of the file calls are `OSError` in both bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from heirlog.protocol.types import Endpoint

Buffer: TypeAlias = bytes | bytearray | memoryview


class File(Protocol):
    """An open file. Its written length is `size`; how much of it is flushed only the body knows."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int:
        """Bytes written so far, also those not yet flushed."""

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        """Write at the end; the position of the first byte. A failed append leaves the length unchanged."""

    def pread(self, size: int, position: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""

    def pwrite(self, data: Buffer, position: int) -> None:
        """Overwrite bytes that exist already (never extends)."""

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Region:
    """A run of bytes of a file, named instead of read: the server sends it with sendfile, the simulator reads it.

    A region is never changed. It is not frozen because one is made per read and freezing costs a microsecond.

    Valid until the file is closed or truncated below its end; a body takes what it needs (a duplicate of the
    descriptor, or the bytes) when the message that holds it is handed over.
    """

    file: File
    position: int
    size: int

    def read(self) -> bytes:
        return self.file.pread(self.size, self.position)


class Files(Protocol):
    """A node's disks. Paths are absolute, with `/`."""

    @property
    def boot_id(self) -> str:
        """Names the current start of the machine: with another one the page cache is another one. Empty: unknown."""

    def identity(self, path: str) -> str:
        """Names a file or directory and its volume, as far as the system tells: another one that takes its place has
        another identity, and so has this one once its volume was attached again.
        """

    def open(self, path: str, create: bool = False) -> File:
        """Raises FileNotFoundError if it is not there and `create` is false."""

    def flush(self, file: File, on_flushed: Callable[[OSError | None], None]) -> None:
        """Make everything appended to `file` before this call durable. Calls made meanwhile share the next flush.

        A failed flush is never retried: what the kernel dropped it will not write again.
        """

    def sync_dir(self, path: str, on_synced: Callable[[OSError | None], None]) -> None:
        """Make creates, renames and unlinks in this directory durable."""

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces the target. Files stay usable through handles opened before. Also renames directories."""

    def unlink(self, path: str) -> None: ...

    def mkdirs(self, path: str) -> None: ...

    def rmdir(self, path: str) -> None:
        """Remove a directory and everything in it."""

    def list(self, path: str) -> list[str]:
        """Sorted names; raises FileNotFoundError."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int:
        """Wall time of the last write (retention of segments without timestamps)."""

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume that holds this path."""


class Random(Protocol):
    """The part of `random.Random` that decisions may use."""

    def random(self) -> float: ...

    def randrange(self, start: int, stop: int, /) -> int: ...

    def getrandbits(self, k: int, /) -> int: ...

    def randbytes(self, n: int, /) -> bytes: ...

    def shuffle(self, x: list[Any], /) -> None: ...


@dataclass(frozen=True, slots=True)
class SendFailure:
    """Why a request has no response.

    kind: "disconnected" (refused, closed, reset: the peer may still have handled it), "timed-out", or
    "unsupported" (the peer does not know the API or a version of it that we can speak).
    """

    kind: str
    detail: str = ""
    refused_by: str = ""
    """Disconnected because this host, the peer's, says that nothing listens there; empty where none said anything."""


OnResult: TypeAlias = Callable[[Any], None]
"""Called with a response message of the request's API, or a `SendFailure`."""

Cancel: TypeAlias = Callable[[], None]


class EventLog(Protocol):
    """Where a brain says what a person may want to read: an event name and plain values. Bodies print them."""

    def __call__(self, level: str, event: str, /, **values: object) -> None: ...


class Env(Protocol):
    @property
    def random(self) -> Random: ...

    @property
    def files(self) -> Files: ...

    @property
    def log(self) -> EventLog:
        """`env.log("warning", "isr-shrunk", topic=..., partition=...)`; levels debug, info, warning, error."""

    def now_ms(self) -> int:
        """Monotonic: sessions, timeouts, lag."""

    def wall_ms(self) -> int:
        """Unix time: record timestamps, retention. May jump."""

    def send(self, to: Endpoint, channel: str, request: Any, on_result: OnResult, timeout_ms: int) -> None:
        """Send a request message on the one ordered connection per (endpoint, channel), opening it if needed.

        Channels: raft, vote, controller-registration, heartbeat, alter-partition, replica-fetch-N, recovery, forward,
        so that a heartbeat never waits behind a long poll. Requests on one channel are answered in order.
        """

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel: ...

    def stop(self, exit_code: int, reason: str) -> None:
        """The node is done (clean stop finished, or it cannot continue): end this incarnation after the current
        callback.

        exit_code 0: as asked. 1: the reason is one sentence for the operator.
        """


class NodeEnv(Env, Protocol):
    """What a whole node needs besides: it knows which peer is the active controller."""

    def disconnect(self, to: Endpoint) -> None:
        """Close the connections that this node opened to an endpoint; requests on them fail as disconnected, later.

        For a peer that is no longer the right one: its answers are not worth waiting for.
        """
