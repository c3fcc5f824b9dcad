"""Written by `python -m heirlog.protocol.generator` from specs/messages/list_transactions.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack
_unpack_qB = _Shape(">qB").unpack_from
_pack_qx = _Shape(">qx").pack


class ListTransactionsRequest(Message):
    __slots__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )
    API_KEY = 66
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListTransactionsRequest], int]:
    items: list[ListTransactionsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(ListTransactionsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("StateFilters")
            x.state_filters, pos = p.read_compact_strings(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ProducerIdFilters")
            x.producer_id_filters, pos = p.read_int64s(buf, pos, n)
            (x.duration_filter,) = _unpack_q(buf, pos)
            pos += 8
            x.transactional_id_pattern, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(ListTransactionsRequest)
            x.transactional_id_pattern = None
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("StateFilters")
            x.state_filters, pos = p.read_compact_strings(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ProducerIdFilters")
            x.producer_id_filters, pos = p.read_int64s(buf, pos, n)
            (x.duration_filter, tags) = _unpack_qB(buf, pos)
            pos += 9
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListTransactionsRequest)
            x.duration_filter = -1
            x.transactional_id_pattern = None
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("StateFilters")
            x.state_filters, pos = p.read_compact_strings(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ProducerIdFilters")
            x.producer_id_filters, pos = p.read_int64s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ListTransactionsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            state_filters = x.state_filters
            n = len(state_filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if state_filters:
                w(p.compact_strings(state_filters))
            producer_id_filters = x.producer_id_filters
            n = len(producer_id_filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if producer_id_filters:
                w(p.int64s(producer_id_filters))
            w(_pack_q(x.duration_filter))
            w(p.compact_nullable_string(x.transactional_id_pattern))
            w(b"\0")
    elif version >= 1:
        for x in items:
            state_filters = x.state_filters
            n = len(state_filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if state_filters:
                w(p.compact_strings(state_filters))
            producer_id_filters = x.producer_id_filters
            n = len(producer_id_filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if producer_id_filters:
                w(p.int64s(producer_id_filters))
            w(_pack_qx(x.duration_filter))
    else:
        for x in items:
            state_filters = x.state_filters
            n = len(state_filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if state_filters:
                w(p.compact_strings(state_filters))
            producer_id_filters = x.producer_id_filters
            n = len(producer_id_filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if producer_id_filters:
                w(p.int64s(producer_id_filters))
            w(b"\0")


ListTransactionsRequest.READ = _read_request
ListTransactionsRequest.WRITE = _write_request


class ListTransactionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )
    API_KEY = 66
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class TransactionState(Struct):
        __slots__ = (
            "transactional_id",
            "producer_id",
            "transaction_state",
        )

        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            transaction_state: str = "",
        ) -> None:
            self.transactional_id: str = transactional_id
            self.producer_id: int = producer_id
            self.transaction_state: str = transaction_state

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[ListTransactionsResponse.TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states: list[ListTransactionsResponse.TransactionState] = [] if transaction_states is EMPTY else transaction_states


def _read_response_transaction_state(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListTransactionsResponse.TransactionState], int]:
    items: list[ListTransactionsResponse.TransactionState] = []
    for _ in range(count):
        x = new(ListTransactionsResponse.TransactionState)
        x.transactional_id, pos = p.read_compact_string(buf, pos)
        (x.producer_id,) = _unpack_q(buf, pos)
        pos += 8
        x.transaction_state, pos = p.read_compact_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_transaction_state(out: Out, items: Sequence[ListTransactionsResponse.TransactionState], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.transactional_id))
        w(_pack_q(x.producer_id))
        w(p.compact_string(x.transaction_state))
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListTransactionsResponse], int]:
    items: list[ListTransactionsResponse] = []
    for _ in range(count):
        x = new(ListTransactionsResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("UnknownStateFilters")
        x.unknown_state_filters, pos = p.read_compact_strings(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("TransactionStates")
        x.transaction_states, pos = _read_response_transaction_state(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ListTransactionsResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        unknown_state_filters = x.unknown_state_filters
        n = len(unknown_state_filters) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if unknown_state_filters:
            w(p.compact_strings(unknown_state_filters))
        transaction_states = x.transaction_states
        n = len(transaction_states) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if transaction_states:
            _write_response_transaction_state(out, transaction_states, version)
        w(b"\0")


ListTransactionsResponse.READ = _read_response
ListTransactionsResponse.WRITE = _write_response
