"""Damage for copies of log directories: each function breaks one thing, as a defect or a disk might."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from heirlog.protocol.batch import BatchHeader, encode_batch, walk
from heirlog.protocol.checksum import crc32c
from heirlog.raft.values import encode_value

METADATA = "__cluster_metadata-0"


def segments(log: Path) -> list[Path]:
    return sorted(log.glob("*.log"))


def batches(segment: Path) -> list[tuple[int, BatchHeader]]:
    return list(walk(segment.read_bytes()))


def flip_bit(log: Path) -> int:
    """In the last byte of the second batch; its base offset."""
    segment = segments(log)[0]
    position, header = batches(segment)[1]
    data = bytearray(segment.read_bytes())
    data[position + header.size - 1] ^= 4
    segment.write_bytes(data)
    return header.base_offset


def remove_segment(log: Path) -> tuple[int, int]:
    """One in the middle, with its indexes; the offsets that are gone."""
    first, second = (int(path.stem) for path in segments(log)[1:3])
    for path in log.glob(f"{first:020d}.*"):
        if path.suffix != ".snapshot":
            path.unlink()
    return first, second - 1


def truncate_tail(log: Path) -> int:
    """The last batch; its base offset, which is the new end."""
    segment = segments(log)[-1]
    position, header = batches(segment)[-1]
    with open(segment, "r+b") as file:
        file.truncate(position)
    return header.base_offset


def diverge(log: Path, *, from_the_end: int = 3) -> int:
    """Other records in the last batches of the log; the first offset that differs."""
    segment = segments(log)[-1]
    data = bytearray(segment.read_bytes())
    found = batches(segment)[-from_the_end:]
    for position, header in found:
        data[position + header.size - 2] ^= 0x55
        crc = crc32c(memoryview(data)[position + 21 : position + header.size])
        struct.pack_into(">I", data, position + 17, crc)
    segment.write_bytes(data)
    return found[0][1].base_offset


def double_batch(log: Path) -> int:
    """The last one, once more with the offsets that follow; its base offset."""
    segment = segments(log)[-1]
    position, header = batches(segment)[-1]
    again = bytearray(segment.read_bytes()[position : position + header.size])
    struct.pack_into(">q", again, 0, header.next_offset)
    with open(segment, "ab") as file:
        file.write(again)
    return header.next_offset


def double_batch_in_place(log: Path) -> int:
    """The first one of the last segment, there twice; its base offset."""
    segment = segments(log)[-1]
    _, header = batches(segment)[0]
    data = segment.read_bytes()
    segment.write_bytes(data[: header.size] + data)
    return header.base_offset


def wrong_epoch_entry(log: Path) -> None:
    """The leader epoch of the first records is one higher; what the stop of other brokers began later is gone."""
    path = log / "leader-epoch-checkpoint"
    version, _, first, *_ = path.read_text().splitlines()
    epoch, start = first.split()
    path.write_text(f"{version}\n1\n{int(epoch) + 1} {start}\n")


def append_metadata(directory: Path, *records: Any) -> int:
    """To the copy of the metadata log in a node's log directory; the first record's offset."""
    segment = segments(directory / METADATA)[-1]
    last = batches(segment)[-1][1]
    values = [(None, encode_value(record), (), last.max_timestamp + 1) for record in records]
    with open(segment, "ab") as file:
        file.write(encode_batch(values, last.next_offset, last.leader_epoch))
    return last.next_offset
