"""Protobuf: the type of a message in Arrow, and messages as rows.

Types are those of Spark's own `from_protobuf`: an enum is its value's name (its number where the descriptor does not
know it), unsigned numbers are the next larger signed ones (`uint64` a decimal of 20 digits), a message is a struct. A
field with presence that is not set is null; one without has its default. `google.protobuf.Timestamp` is a timestamp.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf import (  # type: ignore[import-untyped]  # it has no types
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from heirlog.spark.schemas.framing import BadValue

_TIMESTAMP = "google.protobuf.Timestamp"
_UINT64 = pa.decimal128(20, 0)


def _types() -> dict[int, pa.DataType]:
    from google.protobuf.descriptor import FieldDescriptor as F  # type: ignore[import-untyped]

    return {
        F.TYPE_BOOL: pa.bool_(),
        F.TYPE_STRING: pa.string(),
        F.TYPE_BYTES: pa.binary(),
        F.TYPE_FLOAT: pa.float32(),
        F.TYPE_DOUBLE: pa.float64(),
        F.TYPE_ENUM: pa.string(),
        **dict.fromkeys((F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32), pa.int32()),
        **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32), pa.int64()),
        **dict.fromkeys((F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64), pa.int64()),
        **dict.fromkeys((F.TYPE_UINT64, F.TYPE_FIXED64), _UINT64),
    }


_SCALARS = _types()


class MessageType:
    """A message type of a set of descriptors."""

    def __init__(self, descriptor: Any) -> None:
        self.descriptor = descriptor
        self._class = message_factory.GetMessageClass(descriptor)
        self._path = _path_of(descriptor)

    def check(self, path: tuple[int, ...]) -> None:
        """Raises BadValue for a value of another message type of the file."""
        if path != self._path:
            raise BadValue(
                f"it is of the message type at {list(path)} in its schema, and {self.descriptor.full_name} is at "
                f"{list(self._path)}"
            )

    def read(self, payload: bytes) -> dict[str, Any]:
        """Raises BadValue."""
        try:
            message = self._class.FromString(payload)
        except DecodeError as error:
            raise BadValue(f"it is not a message {self.descriptor.full_name}: {error}") from error
        row: dict[str, Any] = _row(message)
        return row


def message_of(content: bytes, name: str) -> MessageType:
    """Raises ValueError."""
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(content)
        for file in files.file:
            pool.Add(file)
        return MessageType(pool.FindMessageTypeByName(name))
    except DecodeError as error:
        raise ValueError("descriptors are not what `protoc --descriptor_set_out` writes") from error
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"the descriptors have no message {name}, or not all that it needs (protoc --include_imports): {error}"
        ) from error


def _path_of(descriptor: Any) -> tuple[int, ...]:
    above = descriptor.containing_type
    if above is None:
        return (list(descriptor.file.message_types_by_name).index(descriptor.name),)
    return (*_path_of(above), list(above.nested_types_by_name).index(descriptor.name))


def arrow_type(descriptor: Any, within: tuple[str, ...] = ()) -> pa.DataType:
    """Raises ValueError."""
    if descriptor.full_name == _TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    if descriptor.full_name in within:
        raise ValueError(f"{descriptor.full_name} contains itself, which Spark's types cannot")
    inside = (*within, descriptor.full_name)
    return pa.struct([(field.name, _field_type(field, inside)) for field in descriptor.fields])


def _field_type(field: Any, within: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_field_type(key, within), _field_type(value, within))
    of_message = field.message_type is not None
    kind = arrow_type(field.message_type, within) if of_message else _SCALARS[field.type]
    return pa.list_(kind) if field.is_repeated else kind


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _row(message: Any) -> Any:
    if message.DESCRIPTOR.full_name == _TIMESTAMP:
        return message.seconds * 1_000_000 + message.nanos // 1000
    return {field.name: _of_field(message, field) for field in message.DESCRIPTOR.fields}


def _of_field(message: Any, field: Any) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if _is_map(field):
        of_value = field.message_type.fields_by_name["value"]
        return [(key, _one(value[key], of_value)) for key in value]
    if field.is_repeated:
        return [_one(one, field) for one in value]
    return _one(value, field)


def _one(value: Any, field: Any) -> Any:
    if field.message_type is not None:
        return _row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return Decimal(value) if _SCALARS[field.type] == _UINT64 else value
