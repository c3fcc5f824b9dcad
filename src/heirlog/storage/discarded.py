"""Records that truncations removed from logs and that may exist nowhere else. They are kept while there is room.

    <partition directory>/discarded/<base offset, 20 digits>.<leader epoch>.log      whole batches, as in the log

The leader epoch is that in which the follower removed them: that of the election whose winner did not have the
records, or a later one, if the follower was away. A file is written under `.tmp` and
renamed when its bytes are durable, so a file without `.tmp` has whole batches whatever crashed. Kafka looks only at the
files in a partition's directory and ignores this folder; when a topic is deleted its folder is deleted with it.

The limits per log directory:

    max_bytes         total size; the oldest files are deleted first
    min_free_bytes    free space on the volume: nothing is copied into it, and the oldest files are deleted to keep it
    retention_ms      maximum age of a file

A range that does not fit is kept from its start as far as it fits. After a crash a range may be copied again, from a
log that has lost its tail since: the longer file stays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from heirlog.env import File, Files
from heirlog.protocol.batch import walk
from heirlog.storage.atomic import TMP_SUFFIX
from heirlog.storage.log import Log

DIRECTORY = "discarded"
SUFFIX = ".log"
SLICE_BYTES = 1024 * 1024
"""Bytes copied in one turn of the event loop."""
NO_AGE_LIMIT = -1

OnKept = Callable[[OSError | None], None]


class DiscardedLimits(NamedTuple):
    max_bytes: int
    min_free_bytes: int
    retention_ms: int
    """NO_AGE_LIMIT: only the other two limits count."""


class DiscardedFile(NamedTuple):
    """One file. The oldest sorts first."""

    modified_ms: int
    path: str
    size: int


def file_name(base_offset: int, leader_epoch: int) -> str:
    return f"{base_offset:020d}.{leader_epoch}{SUFFIX}"


def parse_file_name(name: str) -> tuple[int, int] | None:
    """(base offset, leader epoch); None for any other file."""
    base, _, rest = name.partition(".")
    epoch = rest.removesuffix(SUFFIX)
    if not rest.endswith(SUFFIX) or not base.isdecimal() or not epoch.isdecimal():
        return None
    return int(base), int(epoch)


class DiscardedStore:
    """The kept files of one log directory. The first call reads the directory; later calls use memory."""

    def __init__(
        self, files: Files, path: str, partition_dirs: Callable[[], Iterable[str]], limits: DiscardedLimits
    ) -> None:
        self._files = files
        self._path = path
        self._partition_dirs = partition_dirs
        self._limits = limits
        self._kept: dict[str, DiscardedFile] | None = None
        self._kept_bytes = 0
        self._reserved_bytes = 0

    @property
    def kept(self) -> list[DiscardedFile]:
        """The files, oldest first. Raises OSError."""
        return sorted(self._known().values())

    @property
    def size_bytes(self) -> int:
        """Total size, including copies in progress. Raises OSError."""
        self._known()
        return self._kept_bytes + self._reserved_bytes

    def _known(self) -> dict[str, DiscardedFile]:
        if self._kept is None:
            self._kept = {kept.path: kept for directory in self._partition_dirs() for kept in self._read(directory)}
            self._kept_bytes = sum(kept.size for kept in self._kept.values())
        return self._kept

    def _read(self, partition_dir: str) -> Iterable[DiscardedFile]:
        directory = f"{partition_dir}/{DIRECTORY}"
        if not self._files.is_dir(directory):
            return
        for name in self._files.list(directory):
            path = f"{directory}/{name}"
            if name.endswith(TMP_SUFFIX):
                # a copy that a stop interrupted: the log still has its range, or the copy was given up
                self._files.unlink(path)
            elif parse_file_name(name) is not None:
                yield self._stat(path)

    def _stat(self, path: str) -> DiscardedFile:
        file = self._files.open(path)
        try:
            return DiscardedFile(self._files.modified_ms(path), path, file.size)
        finally:
            file.close()

    def size_of(self, path: str) -> int:
        """Size of a kept file; 0 if there is no such file. Raises OSError."""
        kept = self._known().get(path)
        return 0 if kept is None else kept.size

    def add(self, path: str) -> None:
        """A copy got its final name. Raises OSError."""
        before = self.size_of(path)
        self._known()[path] = kept = self._stat(path)
        self._kept_bytes += kept.size - before

    # room

    def reserve(self, wanted_bytes: int) -> int:
        """Reserve up to `wanted_bytes`, and return how many; `release` gives them back. Raises OSError."""
        limits = self._limits
        self._drop_until(lambda: self.size_bytes + wanted_bytes <= limits.max_bytes and self._free() >= wanted_bytes)
        granted = max(0, min(wanted_bytes, limits.max_bytes - self.size_bytes, self._free()))
        self._reserved_bytes += granted
        return granted

    def release(self, granted_bytes: int) -> None:
        self._reserved_bytes -= granted_bytes

    def has_room(self, more_bytes: int) -> bool:
        """Whether reserved bytes still fit now: other files grow on the same volume. Raises OSError."""
        return self._usable() - more_bytes >= self._limits.min_free_bytes

    def _free(self) -> int:
        """Bytes that are neither reserved nor part of the space that must stay free."""
        return self._usable() - self._limits.min_free_bytes - self._reserved_bytes

    def _usable(self) -> int:
        return self._files.space(self._path)[1]

    # deleting

    def trim(self, wall_ms: int) -> None:
        """Delete files that are too old or exceed the limits. Raises OSError."""
        limits = self._limits
        if limits.retention_ms != NO_AGE_LIMIT:
            for kept in self.kept:
                if wall_ms - kept.modified_ms > limits.retention_ms:
                    self._drop(kept)
        self._drop_until(lambda: self.size_bytes <= limits.max_bytes and self._usable() >= limits.min_free_bytes)

    def _drop_until(self, enough: Callable[[], bool]) -> None:
        known = self._known()
        while known and not enough():
            self._drop(min(known.values()))

    def _drop(self, kept: DiscardedFile) -> None:
        del self._known()[kept.path]
        self._kept_bytes -= kept.size
        # it may have been deleted with its topic
        if self._files.exists(kept.path):
            self._files.unlink(kept.path)


class DiscardedCopy:
    """Copies one range of a log into a file.

        begin --step--> ... --step--> complete (or as much as fits) --finish--> durable under its name
             \\________________ drop: nothing of it stays (also after an OSError) ________________/

    The log must not be truncated or closed before `finish`; afterwards it may.
    """

    def __init__(self, files: Files, log: Log, start_offset: int, leader_epoch: int, store: DiscardedStore) -> None:
        self._files = files
        self._log = log
        self._store = store
        self._leader_epoch = leader_epoch
        self.next_offset = start_offset
        """Everything from the start of the range up to here is copied."""
        self.end_offset = log.log_end_offset
        self.path = ""
        self._partition_dir = log.dir_path
        self._file: File | None = None
        self._granted_bytes = self._left_bytes = 0

    def begin(self) -> bool:
        """False if there is nothing to copy: an empty range, no room, or a range that is kept. Raises OSError."""
        log = self._log
        self.next_offset = max(self.next_offset, log.log_start_offset)
        if self.next_offset >= self.end_offset:
            return False
        base_offset, wanted_bytes = _extent(log, self.next_offset)
        directory = f"{self._partition_dir}/{DIRECTORY}"
        self.path = f"{directory}/{file_name(base_offset, self._leader_epoch)}"
        if self._store.size_of(self.path) >= wanted_bytes:
            self.next_offset = self.end_offset
            return False
        self._granted_bytes = self._left_bytes = self._store.reserve(wanted_bytes)
        if not self._granted_bytes:
            return False
        self._files.mkdirs(directory)
        self._file = self._files.open(self.path + TMP_SUFFIX, create=True)
        self._file.truncate(0)
        return True

    def step(self) -> bool:
        """Copy one slice; returns whether there is more to copy. Raises OSError."""
        assert self._file is not None
        self.next_offset = max(self.next_offset, self._log.log_start_offset)
        found = self._log.read(self.next_offset, min(SLICE_BYTES, self._left_bytes), self.end_offset)
        if not found.size or found.size > self._left_bytes or not self._store.has_room(found.size):
            return False
        data = b"".join(region.read() for region in found.regions)
        self._file.append(data)
        self._left_bytes -= found.size
        for _, header in walk(data):
            self.next_offset = header.next_offset
        return self._left_bytes > 0 and self.next_offset < self.end_offset

    def finish(self, on_kept: OnKept) -> None:
        """Make the file durable; `on_kept` gets the result (after an error nothing of it stays)."""
        file = self._file
        if file is None or not file.size:
            self.drop()
            on_kept(None)
            return
        self._files.flush(file, lambda error: self._flushed(error, on_kept))

    def _flushed(self, error: OSError | None, on_kept: OnKept) -> None:
        if error is None:
            try:
                self._take_name(on_kept)
                return
            except OSError as failure:
                error = failure
        self.drop()
        on_kept(error)

    def _take_name(self, on_kept: OnKept) -> None:
        self._files.rename(self.path + TMP_SUFFIX, self.path)
        self._close()
        self._store.add(self.path)
        self._files.sync_dir(f"{self._partition_dir}/{DIRECTORY}", lambda error: self._synced(error, on_kept))

    def _synced(self, error: OSError | None, on_kept: OnKept) -> None:
        """The folder may be new in the partition's directory."""
        if error is not None:
            on_kept(error)
            return
        try:
            self._files.sync_dir(self._partition_dir, on_kept)
        except OSError as failure:
            on_kept(failure)

    def drop(self) -> None:
        """Delete the copied bytes; does nothing once the file has its final name."""
        if self._file is None:
            return
        self._close()
        try:
            self._files.unlink(self.path + TMP_SUFFIX)
        except OSError:
            pass  # the next start removes the file; a broken disk is found by other writes

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._store.release(self._granted_bytes)


def _extent(log: Log, offset: int) -> tuple[int, int]:
    """Start offset of the batch that holds `offset`, and the number of bytes from there to the log end."""
    segments = log.segments
    place = bisect_right([segment.base_offset for segment in segments], offset)
    first = segments[place - 1]
    position = first.position_of(offset)
    size = first.size - position + sum(segment.size for segment in segments[place:])
    return first.header_at(position).base_offset, size
