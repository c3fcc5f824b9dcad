"""Written by `python -m heirlog.protocol.generator` from specs/messages/delete_topics.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_uB = _Shape(">16sB").unpack_from
_unpack_uh = _Shape(">16sh").unpack_from
_pack_uh = _Shape(">16sh").pack
_pack_ux = _Shape(">16sx").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hB = _Shape(">hB").unpack_from
_pack_hx = _Shape(">hx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_pack_ix = _Shape(">ix").pack


class DeleteTopicsRequest(Message):
    __slots__ = (
        "topics",
        "topic_names",
        "timeout_ms",
    )
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_VERSION = 4

    class DeleteTopicState(Struct):
        __slots__ = (
            "name",
            "topic_id",
        )

        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: bytes = ZERO_UUID,
        ) -> None:
            self.name: str | None = name
            self.topic_id: bytes = topic_id

    def __init__(
        self,
        *,
        topics: list[DeleteTopicsRequest.DeleteTopicState] = EMPTY,
        topic_names: list[str] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteTopicsRequest.DeleteTopicState] = [] if topics is EMPTY else topics
        self.topic_names: list[str] = [] if topic_names is EMPTY else topic_names
        self.timeout_ms: int = timeout_ms


def _read_request_delete_topic_state(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteTopicsRequest.DeleteTopicState], int]:
    items: list[DeleteTopicsRequest.DeleteTopicState] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DeleteTopicsRequest.DeleteTopicState)
        x.name, pos = p.read_compact_nullable_string(buf, pos)
        (x.topic_id, tags) = _unpack_uB(buf, pos)
        pos += 17
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_delete_topic_state(out: Out, items: Sequence[DeleteTopicsRequest.DeleteTopicState], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_nullable_string(x.name))
        w(_pack_ux(x.topic_id))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteTopicsRequest], int]:
    items: list[DeleteTopicsRequest] = []
    if version >= 6:
        for _ in range(count):
            x = new(DeleteTopicsRequest)
            x.topic_names = []
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_delete_topic_state(buf, pos, n, version)
            (x.timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(DeleteTopicsRequest)
            x.topics = []
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("TopicNames")
            x.topic_names, pos = p.read_compact_strings(buf, pos, n)
            (x.timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteTopicsRequest)
            x.topics = []
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("TopicNames")
            x.topic_names, pos = p.read_strings(buf, pos, n)
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DeleteTopicsRequest], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_delete_topic_state(out, topics, version)
            w(_pack_ix(x.timeout_ms))
    elif version >= 4:
        for x in items:
            topic_names = x.topic_names
            n = len(topic_names) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topic_names:
                w(p.compact_strings(topic_names))
            w(_pack_ix(x.timeout_ms))
    else:
        for x in items:
            topic_names = x.topic_names
            w(_pack_i(len(topic_names)))
            if topic_names:
                w(p.strings(topic_names))
            w(_pack_i(x.timeout_ms))


DeleteTopicsRequest.READ = _read_request
DeleteTopicsRequest.WRITE = _write_request


class DeleteTopicsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_VERSION = 4

    class DeletableTopicResult(Struct):
        __slots__ = (
            "name",
            "topic_id",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: bytes = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.name: str | None = name
            self.topic_id: bytes = topic_id
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeleteTopicsResponse.DeletableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeleteTopicsResponse.DeletableTopicResult] = [] if responses is EMPTY else responses


def _read_response_deletable_topic_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteTopicsResponse.DeletableTopicResult], int]:
    items: list[DeleteTopicsResponse.DeletableTopicResult] = []
    if version >= 6:
        for _ in range(count):
            x = new(DeleteTopicsResponse.DeletableTopicResult)
            x.name, pos = p.read_compact_nullable_string(buf, pos)
            (x.topic_id, x.error_code) = _unpack_uh(buf, pos)
            pos += 18
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(DeleteTopicsResponse.DeletableTopicResult)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(DeleteTopicsResponse.DeletableTopicResult)
            x.topic_id = ZERO_UUID
            x.error_message = None
            x.name, pos = p.read_compact_string(buf, pos)
            (x.error_code, tags) = _unpack_hB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteTopicsResponse.DeletableTopicResult)
            x.topic_id = ZERO_UUID
            x.error_message = None
            x.name, pos = p.read_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response_deletable_topic_result(out: Out, items: Sequence[DeleteTopicsResponse.DeletableTopicResult], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_nullable_string(x.name))
            w(_pack_uh(x.topic_id, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    elif version >= 5:
        for x in items:
            name_ = p.require(x.name, "Name")
            w(p.compact_string(name_))
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    elif version >= 4:
        for x in items:
            name_ = p.require(x.name, "Name")
            w(p.compact_string(name_))
            w(_pack_hx(x.error_code))
    else:
        for x in items:
            name_ = p.require(x.name, "Name")
            w(p.string(name_))
            w(_pack_h(x.error_code))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteTopicsResponse], int]:
    items: list[DeleteTopicsResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(DeleteTopicsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_deletable_topic_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteTopicsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_deletable_topic_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DeleteTopicsResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_deletable_topic_result(out, responses, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            responses = x.responses
            w(_pack_i(len(responses)))
            if responses:
                _write_response_deletable_topic_result(out, responses, version)


DeleteTopicsResponse.READ = _read_response
DeleteTopicsResponse.WRITE = _write_response
