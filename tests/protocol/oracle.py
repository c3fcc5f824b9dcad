"""Random messages made of kio's classes, and the comparison of one of them with ours.

kio decodes with code of its own, generated from Kafka's JSON schemas; so equal bytes in both directions mean that our
specs say what Kafka's schemas say.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import random
import typing
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field, get_field_tag, get_schema_field_type, is_optional

from heirlog.protocol.api import APIS, ApiSchema
from heirlog.protocol.primitives import Message

ERROR_CODES = list(KioErrorCode)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint16": 16}


NOT_IN_KIO: Mapping[tuple[str, int], str] = {}
"""(API, version) of Kafka that the locked kio does not have -> the test that compares its bytes with bytes of Kafka.

With the next release of kio the row goes: `test_messages.py` compares this list with kio.
"""


def versions_of_kafka() -> list[tuple[ApiSchema, int]]:
    """Every API with every version that Kafka has too."""
    return [(api, version) for api in APIS.values() for version in range(api.min_version, api.kafka_max_version + 1)]


def kio_has(api: ApiSchema, version: int) -> bool:
    return find_spec(f"kio.schema.{api.module}") is not None and (
        find_spec(f"kio.schema.{api.module}.v{version}") is not None
    )


def cases() -> list[tuple[ApiSchema, str, int]]:
    """Every API, both directions, every version that Kafka has too and kio knows."""
    return [
        (api, kind, version)
        for api, version in versions_of_kafka()
        if (api.name, version) not in NOT_IN_KIO
        for kind in ("request", "response")
    ]


def kio_class(api: ApiSchema, kind: str, version: int) -> Any:
    module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{kind}")
    return getattr(module, api.name + kind.capitalize())


def kio_bytes(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def kio_parse(cls: Any, data: bytes) -> Any:
    entity, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return entity


def random_entity(rng: random.Random, cls: Any) -> Any:
    return cls(**{field.name: _random_value(rng, field) for field in dataclasses.fields(cls)})


def _random_value(rng: random.Random, field: Any) -> Any:
    shape = classify_field(field)
    kafka_type = None if dataclasses.is_dataclass(shape.type_) else get_schema_field_type(field)
    args = typing.get_args(field.type)
    nullable = type(None) in args if shape.is_array else is_optional(field)
    if get_field_tag(field) is not None and rng.random() < 0.4 and field.default is not dataclasses.MISSING:
        return field.default
    if nullable and kafka_type not in ("uuid", "datetime_i64") and rng.random() < 0.25:
        return None
    if kafka_type == "datetime_i64" and not nullable:
        return _random_time(rng)
    if not shape.is_array:
        return _random_item(rng, shape.type_, kafka_type)
    size = rng.choice([0, 1, 2, 3, 3, 20 if rng.random() < 0.1 else 1, 140 if rng.random() < 0.02 else 0])
    return tuple(_random_item(rng, shape.type_, kafka_type) for _ in range(size))


def _random_item(rng: random.Random, cls: Any, kafka_type: str | None) -> Any:
    if kafka_type is None:
        return random_entity(rng, cls)
    if kafka_type in INTEGERS:
        bits = rng.choice([2, INTEGERS[kafka_type]])
        return rng.randrange(0 if kafka_type == "uint16" else -(2**bits), 2**bits)
    if kafka_type == "bool":
        return rng.random() < 0.5
    if kafka_type == "float64":
        return rng.choice([0.0, rng.uniform(-1e9, 1e9), float(rng.randrange(2**40))])
    if kafka_type == "uuid":
        return uuid.UUID(bytes=rng.randbytes(16)) if rng.random() < 0.8 else None
    if kafka_type == "error_code":
        return rng.choice(ERROR_CODES)
    if kafka_type == "timedelta_i32":
        return datetime.timedelta(milliseconds=rng.randrange(-(2**31), 2**31))
    if kafka_type == "timedelta_i64":
        return datetime.timedelta(milliseconds=rng.randrange(-(2**42), 2**42))
    if kafka_type == "datetime_i64":
        return _random_time(rng) if rng.random() < 0.7 else None
    size = rng.choice([0, 1, 5, 12, 200 if rng.random() < 0.1 else 3])
    if kafka_type == "string":
        return "".join(rng.choice("abcdefgh-._Zß漢😀") for _ in range(size))
    assert kafka_type in ("bytes", "records")
    return rng.randbytes(size if rng.random() < 0.95 else 5000)


def _random_time(rng: random.Random) -> datetime.datetime:
    return EPOCH + datetime.timedelta(milliseconds=rng.randrange(2**42))


def plain(value: Any) -> Any:
    """A value of kio's or ours as something comparable."""
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, KioErrorCode):
        return value.value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: _plain_field(field, getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(type(value))


def _plain_field(field: Any, value: Any) -> Any:
    kafka_type = field.metadata.get("kafka_type")
    if kafka_type == "uuid":
        return [plain(v) or bytes(16) for v in value] if isinstance(value, tuple) else plain(value) or bytes(16)
    if kafka_type == "datetime_i64" and value is None:
        return -1
    return plain(value)


def same(ours: Any, theirs: Any) -> bool:
    """Whether every field of a plain kio entity has the same value in our struct."""
    if isinstance(theirs, dict):
        return all(same(_attribute(ours, name), value) for name, value in theirs.items())
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(plain(ours) == theirs)


def _attribute(ours: Any, name: str) -> Any:
    """kio makes times into datetime objects and leaves the unit out of their names, and writes `id_` for `id`."""
    name = name.rstrip("_")
    return getattr(ours, name if hasattr(ours, name) else f"{name}_ms")


def ours_bytes(parts: list[Any]) -> bytes:
    return b"".join(parts)


def random_message_bytes(rng: random.Random, api: ApiSchema, kind: str, version: int) -> bytes:
    return kio_bytes(random_entity(rng, kio_class(api, kind, version)))


def our_class(api: ApiSchema, kind: str) -> type[Message]:
    from heirlog.protocol.api import request_class, response_class

    return request_class(api.key) if kind == "request" else response_class(api.key)
