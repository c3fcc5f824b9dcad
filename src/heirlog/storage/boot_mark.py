"""`.heirlog_boot`: in which start of the machine were the logs of a directory written, and may they lack records?

A killed process loses nothing: what it wrote is in the machine's page cache. If the machine itself stops, what was not
flushed may be gone from the end of each log, and nothing in the log tells. So the file names the start of the machine
(`Files.boot_id`), and an unclean stop in another one may have cost records:

    last stop   the file names      records may be missing
    clean       anything            no: everything was flushed
    unclean     this boot           no
    unclean     another, or none    yes

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
from typing import Final

from heirlog.env import Files
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file

BOOT_FILE: Final = ".heirlog_boot"


def kept_page_cache(named: str, boot_id: str) -> bool:
    """Guard 37: after an unclean stop only a log that was written in this start of the machine has all its records.

    Without it a coordinator whose replicas have all lost their newest records gives a producer an epoch that another
    one has, and partitions take its first batches for repetitions: they are acknowledged and not stored.
    """
    return named != "" and named == boot_id


class BootMark:
    """Reads the file. Raises OSError."""

    __slots__ = ("_boot_id", "_file", "_lost_page_cache", "_named", "_written")

    def __init__(self, files: Files, path: str, *, stopped_cleanly: bool) -> None:
        self._boot_id = files.boot_id
        self._file = AtomicFile(files, path, BOOT_FILE)
        boot_id, self._named = _read(files, path)
        self._written = (boot_id, self._named)
        self._lost_page_cache = not (stopped_cleanly or kept_page_cache(boot_id, self._boot_id))

    def may_lack_records(self, log: str) -> bool:
        """Of a log that is found: `<topic>-<partition>`."""
        return self._lost_page_cache or log in self._named

    def write(self, may_lack_records: Iterable[str], on_durable: OnDurable) -> None:
        """Raises OSError. What is there already is not written again."""
        content = (self._boot_id, frozenset(may_lack_records))
        if content == self._written:
            return
        fields = {"version": 0, "bootId": self._boot_id, "mayLackRecords": sorted(content[1])}
        self._file.write(json.dumps(fields, separators=(",", ":")).encode(), on_durable)
        self._written = content

    def when_durable(self, on_durable: OnDurable) -> None:
        """Call back, at once or later, when what was written is durable."""
        if self._file.durable:
            on_durable(None)
        else:
            self._file.when_durable(on_durable)

    def close(self) -> None:
        self._file.close()


def _read(files: Files, path: str) -> tuple[str, frozenset[str]]:
    """The boot that the file names, empty if it cannot be read; the logs that may lack records."""
    content = read_file(files, f"{path}/{BOOT_FILE}")
    try:
        fields = json.loads(content or b"")
        return str(fields["bootId"]), frozenset(map(str, fields["mayLackRecords"]))
    except (ValueError, KeyError, TypeError):
        return "", frozenset()
