"""Written by `python -m heirlog.protocol.generator` from specs/records/offset_commit_value.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import ZERO_UUID, Message, Out, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack
_unpack_qB = _Shape(">qB").unpack_from
_unpack_qi = _Shape(">qi").unpack_from
_pack_qi = _Shape(">qi").pack
_unpack_qq = _Shape(">qq").unpack_from
_pack_qq = _Shape(">qq").pack


class OffsetCommitValue(Message):
    __slots__ = (
        "offset",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "topic_id",
    )
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch
        self.metadata: str = metadata
        self.commit_timestamp: int = commit_timestamp
        self.expire_timestamp: int = expire_timestamp
        self.topic_id: bytes = topic_id


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitValue], int]:
    items: list[OffsetCommitValue] = []
    if version >= 4:
        for _ in range(count):
            x = new(OffsetCommitValue)
            x.expire_timestamp = -1
            x.topic_id = ZERO_UUID
            (x.offset, x.leader_epoch) = _unpack_qi(buf, pos)
            pos += 12
            x.metadata, pos = p.read_compact_string(buf, pos)
            (x.commit_timestamp, tags) = _unpack_qB(buf, pos)
            pos += 9
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.topic_id,) = _unpack_u(buf, pos)
                        pos += 16
                        if pos != end:
                            raise p.bad_tag("TopicId")
                    else:
                        pos = end
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(OffsetCommitValue)
            x.expire_timestamp = -1
            x.topic_id = ZERO_UUID
            (x.offset, x.leader_epoch) = _unpack_qi(buf, pos)
            pos += 12
            x.metadata, pos = p.read_string(buf, pos)
            (x.commit_timestamp,) = _unpack_q(buf, pos)
            pos += 8
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(OffsetCommitValue)
            x.leader_epoch = -1
            x.expire_timestamp = -1
            x.topic_id = ZERO_UUID
            (x.offset,) = _unpack_q(buf, pos)
            pos += 8
            x.metadata, pos = p.read_string(buf, pos)
            (x.commit_timestamp,) = _unpack_q(buf, pos)
            pos += 8
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(OffsetCommitValue)
            x.leader_epoch = -1
            x.topic_id = ZERO_UUID
            (x.offset,) = _unpack_q(buf, pos)
            pos += 8
            x.metadata, pos = p.read_string(buf, pos)
            (x.commit_timestamp, x.expire_timestamp) = _unpack_qq(buf, pos)
            pos += 16
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitValue)
            x.leader_epoch = -1
            x.expire_timestamp = -1
            x.topic_id = ZERO_UUID
            (x.offset,) = _unpack_q(buf, pos)
            pos += 8
            x.metadata, pos = p.read_string(buf, pos)
            (x.commit_timestamp,) = _unpack_q(buf, pos)
            pos += 8
            items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[OffsetCommitValue], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 4:
        for x in items:
            w(_pack_qi(x.offset, x.leader_epoch))
            w(p.compact_string(x.metadata))
            w(_pack_q(x.commit_timestamp))
            if x.topic_id != ZERO_UUID:
                tagged = []
                if x.topic_id != ZERO_UUID:
                    inner = Out()
                    inner.small.append(_pack_u(x.topic_id))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 3:
        for x in items:
            w(_pack_qi(x.offset, x.leader_epoch))
            w(p.string(x.metadata))
            w(_pack_q(x.commit_timestamp))
    elif version >= 2:
        for x in items:
            w(_pack_q(x.offset))
            w(p.string(x.metadata))
            w(_pack_q(x.commit_timestamp))
    elif version >= 1:
        for x in items:
            w(_pack_q(x.offset))
            w(p.string(x.metadata))
            w(_pack_qq(x.commit_timestamp, x.expire_timestamp))
    else:
        for x in items:
            w(_pack_q(x.offset))
            w(p.string(x.metadata))
            w(_pack_q(x.commit_timestamp))


OffsetCommitValue.READ = _read
OffsetCommitValue.WRITE = _write
