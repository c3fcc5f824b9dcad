"""A client whose codec is not ours: kio's classes over a plain socket.

    with WireClient("127.0.0.1", 9092) as wire_client:
        answer = wire_client.ask("metadata", 12, topics=[{"name": "t"}])
        answer.topics[0].error_code       # kio's enum; kio decodes strictly, and nothing may be left over

A request is given as nested dicts in kio's field names (Kafka's in snake case, times in ms without their unit). Names
that a version does not have are left out, so that one dict serves all versions; what is not given is kio's default, or
empty. Imports nothing of heirlog.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import socket
import struct
import uuid
from types import TracebackType
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field, get_schema_field_type, is_optional

API_KEYS = {name: key for key, name in api_key_map.items()}
TIMEOUT_S = 60.0
EMPTY = {"string": "", "bytes": b"", "records": None, "bool": False, "uuid": None}
"""Of the types that are not numbers or times."""
REFUSED_WITHOUT_A_TIME = ("create_delegation_token", "renew_delegation_token", "expire_delegation_token")
NO_TIME = b"\xff" * 8
"""-1, which Apache Kafka's refusals of these have as well. kio cannot read a time before 1970."""


class WireClient:
    """One connection. A server that closes it shows as ConnectionError."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), TIMEOUT_S)
        self._next_correlation_id = 1000

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, api: str, version: int, **values: Any) -> Any:
        return self.answer(self.send(api, version, **values))

    def send(self, api: str, version: int, **values: Any) -> tuple[int, int, int]:
        """Without waiting; the answer is fetched with what this returns. Answers come in the order of requests."""
        self._next_correlation_id += 1
        self.send_raw(framed(request_bytes(api, version, self._next_correlation_id, **values)))
        return API_KEYS[api], version, self._next_correlation_id

    def answer(self, asked: tuple[int, int, int]) -> Any:
        api_key, version, correlation_id = asked
        frame = self.receive()
        message = load_response_schema(api_key, version)
        if api_key_map[api_key] in REFUSED_WITHOUT_A_TIME:
            frame = frame.replace(NO_TIME, bytes(len(NO_TIME)))
        header, header_size = entity_reader(message.__header_schema__)(frame, 0)
        assert header.correlation_id == correlation_id
        answer, size = entity_reader(message)(frame, header_size)
        assert header_size + size == len(frame), "bytes are left over behind the answer"
        return answer

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def finish_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        """One frame without its length. Raises ConnectionError when the server has closed the connection."""
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def _receive_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionResetError("closed by the server")
            data += piece
        return data


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def request_bytes(api: str, version: int, correlation_id: int, **values: Any) -> bytes:
    """Header and request, without the length."""
    message = load_request_schema(API_KEYS[api], version)
    return header_bytes(api, version, correlation_id) + _written(_entity(message, values))


def header_bytes(api: str, version: int, correlation_id: int) -> bytes:
    header = load_request_schema(API_KEYS[api], version).__header_schema__(
        request_api_key=API_KEYS[api],  # type: ignore[arg-type]  # kio's ints are checked at run time only
        request_api_version=version,  # type: ignore[arg-type]
        correlation_id=correlation_id,  # type: ignore[arg-type]
        client_id="a stranger",
    )
    return _written(header)


def _written(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def _entity(cls: Any, values: dict[str, Any]) -> Any:
    fields = {}
    for field in dataclasses.fields(cls):
        if field.name in values:
            fields[field.name] = _shaped(field, values[field.name])
        elif field.default is dataclasses.MISSING:
            fields[field.name] = _empty(field)
    return cls(**fields)


def _shaped(field: Any, value: Any) -> Any:
    if value is None:
        return None
    shape = classify_field(field)
    if dataclasses.is_dataclass(shape.type_):
        return tuple(_entity(shape.type_, one) for one in value) if shape.is_array else _entity(shape.type_, value)
    kafka_type = get_schema_field_type(field)
    return tuple(_scalar(kafka_type, one) for one in value) if shape.is_array else _scalar(kafka_type, value)


def _scalar(kafka_type: str, value: Any) -> Any:
    if kafka_type.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type == "uuid" and isinstance(value, bytes):
        return uuid.UUID(bytes=value)
    return value


def _empty(field: Any) -> Any:
    shape = classify_field(field)
    if shape.is_array:
        return ()
    if dataclasses.is_dataclass(shape.type_):
        return None if is_optional(field) else _entity(shape.type_, {})
    kafka_type = get_schema_field_type(field)
    return EMPTY[kafka_type] if kafka_type in EMPTY else _scalar(kafka_type, 0)
