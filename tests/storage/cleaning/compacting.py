"""What the tests of the cleaner share: keyed batches, a whole pass at once, and what a log should hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import BatchHeader, Record, crc_matches, decode_records, encode_batch, walk
from heirlog.protocol.errors import KafkaError
from heirlog.storage.cleaning.compaction import Compaction
from heirlog.storage.cleaning.plan import plan_of
from heirlog.storage.log import Log

Pair = tuple[str | None, str | None]


def keyed(*pairs: Pair, timestamp_ms: int = 1000, **more: Any) -> bytearray:
    """A batch of (key, value) records; a value of None is a tombstone."""
    return encode_batch(
        [
            (None if key is None else key.encode(), None if value is None else value.encode(), (), timestamp_ms + n)
            for n, (key, value) in enumerate(pairs)
        ],
        **more,
    )


def compact(files: MemoryFiles, log: Log, wall_ms: int = 10_000, capacity: int = 1000) -> Compaction | None:
    """One whole pass below the log's end; None if there is nothing to do."""
    plan = plan_of(log, log.log_end_offset, wall_ms)
    if plan is None:
        return None
    removals: list[Callable[[], None]] = []
    compaction = Compaction(files, log, plan, capacity, wall_ms, removals.append)
    try:
        for wait in compaction.steps():
            if wait is not None:
                answers: list[OSError | None] = []
                wait(answers.append)
                files.run()
                assert answers == [None]
    except KafkaError:
        compaction.give_up()
        raise
    for remove in removals:
        remove()
    return compaction


def batches(log: Log) -> list[tuple[BatchHeader, list[Record]]]:
    """Everything in the log, each batch with its CRC checked and continuing the one before."""
    found = []
    at = log.log_start_offset
    expected = log.segments[0].base_offset if at < log.log_end_offset else None
    while at < log.log_end_offset:
        for region in log.read(at, 1 << 30, log.log_end_offset).regions:
            data = region.read()
            for position, header in walk(data):
                assert crc_matches(data, position, header)
                assert expected is None or at > log.log_start_offset or header.base_offset <= at
                assert at == log.log_start_offset or header.base_offset == at
                found.append((header, decode_records(data, position)))
                at = header.next_offset
    return found


def records_of(data: bytes) -> list[Record]:
    return [record for position, _ in walk(data) for record in decode_records(data, position)]


def records(log: Log) -> list[Record]:
    return [record for _, decoded in batches(log) for record in decoded]


def plain(found: Sequence[Record]) -> list[tuple[int, str | None, str | None]]:
    return [
        (r.offset, None if r.key is None else r.key.decode(), None if r.value is None else r.value.decode())
        for r in found
    ]
