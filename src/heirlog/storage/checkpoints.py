"""Kafka's checkpoint files: a version, a count, one entry per line, fields separated by spaces.

    0
    2
    orders 0 1234
    orders 1 99

Each log directory has `recovery-point-offset-checkpoint` (all records below it are flushed),
`log-start-offset-checkpoint` and `replication-offset-checkpoint` (high watermarks). All three are hints that may be
old. A file that cannot be read counts as empty. That only causes a longer scan (recovery points), brings back records
that retention had deleted (log starts), or makes the broker learn a high watermark again (KIP-101).

A wrong number would be worse: a high watermark that is too high, or a leader epoch that begins elsewhere, can cost
records that were acknowledged. So a CRC-32C of the file follows the last entry, as 32 blanks, a space for 0 and a tab
for 1. Readers that split a line at white space, like Apache Kafka's, do not see it. A file without blanks at its end
was written by Apache Kafka, and is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from heirlog.env import Files
from heirlog.protocol.checksum import crc32c
from heirlog.storage.atomic import read_file

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"

_VERSION = "0"
_BLANKS = " \t"
_AS_BLANKS = str.maketrans("01", _BLANKS)


def render_checkpoint(entries: Sequence[Iterable[object]]) -> bytes:
    lines = [_VERSION, str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]
    text = "\n".join(lines)
    return f"{text}{_blanks(text) if entries else ''}\n".encode()


def parse_checkpoint(content: bytes | None, fields: int) -> list[list[str]] | None:
    """The entries as text; None if it is not a complete checkpoint file.

    fields: fields per entry. The last two are numbers; of three (topic, partition, offset) only the last one is
    checked.
    """
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    entries_only = without_checksum(text)
    if entries_only is None:
        return None
    lines = entries_only.splitlines()
    if len(lines) < 2 or lines[0] != _VERSION or not _is_number(lines[1]) or int(lines[1]) != len(lines) - 2:
        return None
    entries = [line.split(" ") for line in lines[2:]]
    if any(len(entry) != fields or not all(map(_is_number, entry[-2:])) for entry in entries):
        return None
    return entries


def without_checksum(text: str) -> str | None:
    """The lines without the blanks of the checksum, and without the end of the last line; None if it does not match."""
    if not text.endswith("\n"):
        return None
    text = text[:-1].removesuffix("\r")
    shown = text.rstrip(_BLANKS)
    return shown if text in (shown, shown + _blanks(shown)) else None


def _blanks(text: str) -> str:
    return f"{crc32c(text.encode()):032b}".translate(_AS_BLANKS)


def _is_number(text: str) -> bool:
    # an int64 has at most 19 digits: more is damage, and `int` refuses thousands of them with an error of its own
    return len(text) <= 20 and text.removeprefix("-").isdecimal()


def read_offsets(files: Files, path: str) -> dict[tuple[str, int], int]:
    """(topic, partition) → offset; empty if the file is missing or damaged."""
    entries = parse_checkpoint(read_file(files, path), 3) or []
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def render_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return render_checkpoint([(*key, offsets[key]) for key in sorted(offsets)])
