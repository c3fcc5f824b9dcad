"""The batches of a small log, one after the other, as they are on disk: for the metadata log and for loss reports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import IO

from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, crc_matches, decode_records, read_header
from heirlog.protocol.errors import KafkaError

_SEGMENT = re.compile(r"\d{20}\.log")


def segment_names(path: str) -> list[str]:
    """The segment files of a log, oldest first. Raises OSError."""
    return sorted(name for name in os.listdir(path) if _SEGMENT.fullmatch(name))


class LogReader:
    """Reading ends at the first batch that is damaged or does not follow; `stopped_at` then says why."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.stopped_at: str | None = None

    def batches(self) -> Iterator[tuple[BatchHeader, bytes]]:
        """Raises OSError."""
        expected = -1
        for name in segment_names(self._path):
            with open(f"{self._path}/{name}", "rb") as file:
                for header, data in self._of_segment(file):
                    if 0 <= expected != header.base_offset:
                        self.stopped_at = f"offset {header.base_offset} follows where {expected} was expected"
                    elif not crc_matches(data, 0, header):
                        self.stopped_at = f"the batch at offset {header.base_offset} fails its CRC"
                    if self.stopped_at is not None:
                        return
                    expected = header.next_offset
                    yield header, data
            if self.stopped_at is not None:
                return

    def _of_segment(self, file: IO[bytes]) -> Iterator[tuple[BatchHeader, bytes]]:
        while head := file.read(HEADER_SIZE):
            try:
                header = read_header(head)
            except InvalidBatch as error:
                self.stopped_at = error.message
                return
            data = head + file.read(header.size - HEADER_SIZE)
            if len(data) < header.size:
                self.stopped_at = "the log ends inside a batch"
                return
            yield header, data


def keys_of(path: str) -> Iterator[bytes]:
    """The keys of all records that can be read. Raises OSError."""
    for header, data in LogReader(path).batches():
        if header.is_control or not header.record_count:
            continue
        try:
            yield from (record.key for record in decode_records(data) if record.key is not None)
        except (KafkaError, ValueError):
            return
