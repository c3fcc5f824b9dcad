"""Written by `python -m heirlog.protocol.generator` from specs/messages/broker_heartbeat.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, new

_unpack_ihoooB = _Shape(">ih???B").unpack_from
_pack_ihooox = _Shape(">ih???x").pack
_pack_iqqoo = _Shape(">iqq??").pack
_unpack_iqqooB = _Shape(">iqq??B").unpack_from
_pack_iqqoox = _Shape(">iqq??x").pack


class BrokerHeartbeatRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
    )
    API_KEY = 63
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.current_metadata_offset: int = current_metadata_offset
        self.want_fence: bool = want_fence
        self.want_shut_down: bool = want_shut_down
        self.offline_log_dirs: list[bytes] = [] if offline_log_dirs is EMPTY else offline_log_dirs


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerHeartbeatRequest], int]:
    items: list[BrokerHeartbeatRequest] = []
    if version >= 1:
        for _ in range(count):
            x = new(BrokerHeartbeatRequest)
            x.offline_log_dirs = []
            (x.broker_id, x.broker_epoch, x.current_metadata_offset, x.want_fence, x.want_shut_down, tags) = _unpack_iqqooB(buf, pos)
            pos += 23
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            raise p.null("OfflineLogDirs")
                        x.offline_log_dirs, pos = p.read_uuids(buf, pos, n)
                        if pos != end:
                            raise p.bad_tag("OfflineLogDirs")
                    else:
                        pos = end
            items.append(x)
    else:
        for _ in range(count):
            x = new(BrokerHeartbeatRequest)
            x.offline_log_dirs = []
            (x.broker_id, x.broker_epoch, x.current_metadata_offset, x.want_fence, x.want_shut_down, tags) = _unpack_iqqooB(buf, pos)
            pos += 23
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[BrokerHeartbeatRequest], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 1:
        for x in items:
            w(_pack_iqqoo(x.broker_id, x.broker_epoch, x.current_metadata_offset, x.want_fence, x.want_shut_down))
            if x.offline_log_dirs:
                tagged = []
                if x.offline_log_dirs:
                    inner = Out()
                    offline_log_dirs = x.offline_log_dirs
                    n = len(offline_log_dirs) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if offline_log_dirs:
                        inner.small.append(p.uuids(offline_log_dirs))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    else:
        for x in items:
            w(_pack_iqqoox(x.broker_id, x.broker_epoch, x.current_metadata_offset, x.want_fence, x.want_shut_down))


BrokerHeartbeatRequest.READ = _read_request
BrokerHeartbeatRequest.WRITE = _write_request


class BrokerHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "is_caught_up",
        "is_fenced",
        "should_shut_down",
    )
    API_KEY = 63
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.is_caught_up: bool = is_caught_up
        self.is_fenced: bool = is_fenced
        self.should_shut_down: bool = should_shut_down


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerHeartbeatResponse], int]:
    items: list[BrokerHeartbeatResponse] = []
    for _ in range(count):
        x = new(BrokerHeartbeatResponse)
        (x.throttle_time_ms, x.error_code, x.is_caught_up, x.is_fenced, x.should_shut_down, tags) = _unpack_ihoooB(buf, pos)
        pos += 10
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[BrokerHeartbeatResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ihooox(x.throttle_time_ms, x.error_code, x.is_caught_up, x.is_fenced, x.should_shut_down))


BrokerHeartbeatResponse.READ = _read_response
BrokerHeartbeatResponse.WRITE = _write_response
