"""The aborted transactions of a segment, in memory and in Kafka's `.txnindex` file.

    int16 version = 0 | int64 producer id | int64 first offset | int64 last offset | int64 last stable offset

An entry is in the index of the segment that holds the abort marker, which is its last offset; last offsets rise. The
last stable offset is the one after this abort: below it nothing is undecided. A search may end at an entry where that
offset has reached the end of what a reader gets.

A segment without an aborted transaction has no file. Otherwise the file gets its new entries with each flush of the
log, before the recovery point may move beyond their markers. After an unclean stop the segments from the recovery point
on are scanned, and their entries are rebuilt (`recovery.py`).

Traps.
* A file that is missing, or too short by whole entries, looks like that of a segment with fewer aborted transactions,
  and readers would get aborted records. So unlike the other indexes it is not written only when the segment is closed:
  its records may be flushed by then, and no recovery would read them.
* A file that is rebuilt keeps the entries that it has already: after a power cut an older recovery point may still
  count, and with it the file as it was.
* A power cut may undo the truncation of a log and not that of its index. So entries are removed from the file only
  once the truncated log is durable; until then the recovery point is not above the start of the segment.

Source: Kafka's TransactionIndex and AbortedTxn.
"""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from heirlog.env import File, Files
from heirlog.protocol.batch import InvalidBatch
from heirlog.storage.atomic import read_file

TRANSACTION_INDEX_SUFFIX = ".txnindex"
TRANSACTION_ENTRY = Struct(">hqqqq")
_VERSION = 0
_UNKNOWN = -1


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the abort marker."""
    last_stable_offset: int
    """Where the next ongoing transaction of another producer began; without one, the offset after the marker."""


class TransactionIndex:
    """The index of one segment. Entries of a segment that is not active are read from the file when needed."""

    __slots__ = ("_base_offset", "_entries", "_files", "_path", "_written")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        """path: of the file while the segment has its final name."""
        self._files = files
        self._path = path
        self._base_offset = base_offset
        self._entries: list[AbortedTransaction] | None = []
        self._written = 0
        """How many entries are in the file."""

    @property
    def entries(self) -> list[AbortedTransaction]:
        """Not to be changed by others. Raises InvalidBatch if the file is missing or damaged, and OSError."""
        if self._entries is None:
            data = read_file(self._files, self._path)
            entries = None if data is None else decode(data, self._base_offset)
            if entries is None:
                raise InvalidBatch(f"{self._path} is not an index of aborted transactions; the next start repairs it")
            self._entries = entries
            self._written = len(entries)
        return self._entries

    def read(self) -> None:
        """Take the entries from the file, now. Raises as `entries` does."""
        self._entries = None
        _ = self.entries

    def append(self, entry: AbortedTransaction) -> None:
        self.entries.append(entry)

    def truncate(self, offset: int) -> None:
        """Forget transactions whose marker is at or above `offset`."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if len(kept) < len(self.entries):
            self._entries = kept
            self._written = _UNKNOWN

    def clear(self) -> None:
        """The entries are about to be rebuilt, whatever the file holds."""
        self._entries = []
        self._written = _UNKNOWN

    def retire(self) -> None:
        """The file is written: free the memory."""
        # without entries there may be no file
        if self._entries:
            self._entries = None

    @property
    def is_written(self) -> bool:
        return self._entries is None or self._written == len(self._entries)

    def write(self, name_suffix: str = "", *, may_remove: bool = True) -> File | None:
        """Write the entries that the file lacks; the caller flushes and closes it.

        None: it has them all, or it holds others and these may not be removed now. Raises OSError.
        """
        if self._entries is None or self.is_written:
            return None
        path = self._path + name_suffix
        wanted = b"".join([TRANSACTION_ENTRY.pack(_VERSION, *entry) for entry in self._entries])
        kept_bytes = self._written * TRANSACTION_ENTRY.size
        if self._written == _UNKNOWN:
            found = read_file(self._files, path) or b""
            kept_bytes = _common_bytes(found, wanted)
            if kept_bytes < len(found):
                if not may_remove:
                    return None
            elif kept_bytes == len(wanted):
                self._written = len(self._entries)
                return None
        file = self._files.open(path, create=True)
        if kept_bytes < file.size:
            file.truncate(kept_bytes)
        if kept_bytes < len(wanted):
            file.append(wanted[kept_bytes:])
        self._written = len(self._entries)
        return file


def _common_bytes(found: bytes, wanted: bytes) -> int:
    """Size of the entries at the start that are the same."""
    size = TRANSACTION_ENTRY.size
    at = 0
    while at < min(len(found), len(wanted)) and found[at : at + size] == wanted[at : at + size]:
        at += size
    return at


def decode(data: bytes, base_offset: int) -> list[AbortedTransaction] | None:
    """None if this cannot be the index of the segment that begins at `base_offset`."""
    if len(data) % TRANSACTION_ENTRY.size:
        return None
    entries = []
    for version, *fields in TRANSACTION_ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        if version != _VERSION or not _is_possible(entry, base_offset):
            return None
        entries.append(entry)
    if any(one.last_offset >= following.last_offset for one, following in pairwise(entries)):
        return None
    return entries


def _is_possible(entry: AbortedTransaction, base_offset: int) -> bool:
    """A marker is behind the first record of its transaction: so zeros, as a power cut may leave them, are no entry."""
    return (
        entry.producer_id >= 0
        and 0 <= entry.first_offset < entry.last_offset
        and entry.last_offset >= base_offset
        and 0 <= entry.last_stable_offset <= entry.last_offset + 1
    )
