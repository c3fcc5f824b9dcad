"""`.heirlog_boot`: in which start of the machine were the logs of a directory written, and may they lack records?

A killed process loses nothing: what it wrote is in the machine's page cache. If the machine itself stops, what was not
flushed may be gone from the end of each log, and nothing in the log tells. So the file names the start of the machine
(`Files.boot_id`), and an unclean stop in another one may have cost records:

    last stop   the file names      records may be missing
    clean       anything            no: everything was flushed
    unclean     this boot           no
    unclean     another, or none    yes

Within one boot there are other ways to lose records:

    a flush fails           the page cache has dropped what it could not write. The file is removed at once, which
                            needs no flush: the next start finds none. In a file system that is read-only by then it
                            stays
    another directory is    a backup was restored, or the volume was detached and attached again. The file also names
    at the path             the directory and its `meta.properties` (`Files.identity`), and others do not count
    an older copy that      another directory, or the metadata, knows a later start of this broker than the one that
    was stopped cleanly     has stopped so

What changes no identity is not seen: a volume that is put back to a snapshot, or a copy onto the files that are there.

Records that recovery cut from a log, because they were damaged, may be missing as well, what a clean stop had flushed
and is not there any more, and all records of a replica whose disk was replaced.

A log that may lack records keeps that state until the replica is in an ISR under another leader, and so has everything
that is committed, or is elected as a leader itself (`broker/doubts.py`). So the file names such logs, too: without it
the next start in the same boot, or after a clean stop, would take them for complete ones. It matters to a coordinator:
`broker/transactions/entry.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from heirlog.env import Files
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file
from heirlog.storage.identity import META_PROPERTIES

BOOT_FILE: Final = ".heirlog_boot"


def kept_page_cache(named: str, boot_id: str) -> bool:
    """Guard 37: after an unclean stop only a log that was written in this start of the machine has all its records.

    Without it a coordinator whose replicas have all lost their newest records gives a producer an epoch that another
    one has, and partitions take its first batches for repetitions: they are acknowledged and not stored.
    """
    return named != "" and named == boot_id


class _Mark(NamedTuple):
    boot_id: str
    directory: str
    """Its identity."""
    may_lack_records: frozenset[str]


_NONE: Final = _Mark("", "", frozenset())


class BootMark:
    """Reads the file. Raises OSError."""

    __slots__ = ("_boot_id", "_directory", "_file", "_files", "_lost_page_cache", "_named", "_path", "_written")

    def __init__(self, files: Files, path: str, *, stopped_cleanly: bool) -> None:
        self._files = files
        self._path = f"{path}/{BOOT_FILE}"
        self._boot_id = files.boot_id
        self._directory = _identity(files, path)
        self._file: AtomicFile | None = AtomicFile(files, path, BOOT_FILE)
        """None: removed, and not written again."""
        self._written = _read(files, self._path)
        self._named = self._written.may_lack_records
        self._lost_page_cache = not stopped_cleanly and not (
            kept_page_cache(self._written.boot_id, self._boot_id) and self._written.directory == self._directory
        )

    def may_lack_records(self, log: str) -> bool:
        """Of a log that is found: `<topic>-<partition>`."""
        return self._lost_page_cache or log in self._named

    def write(self, may_lack_records: Iterable[str], on_durable: OnDurable) -> None:
        """Raises OSError. What is there already is not written again."""
        content = _Mark(self._boot_id, self._directory, frozenset(may_lack_records))
        if content == self._written or self._file is None:
            return
        fields = {
            "version": 0,
            "bootId": content.boot_id,
            "directory": content.directory,
            "mayLackRecords": sorted(content.may_lack_records),
        }
        self._file.write(json.dumps(fields, separators=(",", ":")).encode(), on_durable)
        self._written = content

    def remove(self) -> None:
        """A flush has failed: the next start has to doubt all logs."""
        self.close()
        self._file = None
        with suppress(OSError):
            self._files.unlink(self._path)

    def when_durable(self, on_durable: OnDurable) -> None:
        """Call back, at once or later, when what was written is durable."""
        if self._file is None or self._file.durable:
            on_durable(None)
        else:
            self._file.when_durable(on_durable)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _identity(files: Files, path: str) -> str:
    """Of the directory, and of a file that is as old and never written again."""
    own = f"{path}/{META_PROPERTIES}"
    # `heirlog doctor` examines also directories that lack it
    return f"{files.identity(path)} {files.identity(own) if files.exists(own) else ''}"


def _read(files: Files, path: str) -> _Mark:
    """Empty if the file cannot be read. Earlier versions named no directory."""
    content = read_file(files, path)
    try:
        fields = json.loads(content or b"")
        return _Mark(
            str(fields["bootId"]), str(fields.get("directory", "")), frozenset(map(str, fields["mayLackRecords"]))
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return _NONE
