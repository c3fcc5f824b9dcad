"""Written by `python -m heirlog.protocol.generator` from specs/records/group_metadata_key.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new


class GroupMetadataKey(Message):
    __slots__ = (
        "group",
    )
    API_KEY = 2
    MIN_VERSION = 2
    MAX_VERSION = 2
    FLEXIBLE_VERSION = p.NEVER_FLEXIBLE

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group: str = group


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GroupMetadataKey], int]:
    items: list[GroupMetadataKey] = []
    for _ in range(count):
        x = new(GroupMetadataKey)
        x.group, pos = p.read_string(buf, pos)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[GroupMetadataKey], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.string(x.group))


GroupMetadataKey.READ = _read
GroupMetadataKey.WRITE = _write
