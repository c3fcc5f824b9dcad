"""What the tests of the log share: opening one on a memory disk, and making and reading batches."""

from __future__ import annotations

from typing import Any

from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import decode_records, encode_batch, rewrite, walk
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.log_listener import IGNORED, LogListener
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import LastStop, at_once

DIR = "/data/t-0"


def open_log(
    files: MemoryFiles,
    config: LogConfig | None = None,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    wall_ms: int = 0,
    listener: LogListener = IGNORED,
) -> Log:
    files.mkdirs(DIR)
    return at_once(
        load_log(
            files,
            DIR,
            "t",
            0,
            config or LogConfig(),
            LastStop(clean, recovery_point, log_start_offset),
            wall_ms=wall_ms,
            listener=listener,
        )
    )


def batch(*values: str | bytes, timestamp_ms: int = 0, **more: Any) -> bytearray:
    records = [(None, v.encode() if isinstance(v, str) else v, [], timestamp_ms) for v in values]
    return encode_batch(records, **more)


def placed(base_offset: int, epoch: int, *values: str, **more: Any) -> bytearray:
    """A batch as a follower receives it."""
    buf = batch(*values, **more)
    rewrite(buf, 0, base_offset, epoch)
    return buf


def contents(log: Log, offset: int | None = None) -> list[tuple[int, str]]:
    """(offset, value) of every record from the log start to the end."""
    at = log.log_start_offset if offset is None else offset
    found: list[tuple[int, str]] = []
    while at < log.log_end_offset:
        result = log.read(at, 1 << 30, log.log_end_offset)
        assert result.size == sum(region.size for region in result.regions) > 0
        for region in result.regions:
            data = region.read()
            for position, header in walk(data):
                found += [(r.offset, (r.value or b"").decode()) for r in decode_records(data, position)]
                at = header.next_offset
    return [(o, v) for o, v in found if o >= (log.log_start_offset if offset is None else offset)]
