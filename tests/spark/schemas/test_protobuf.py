from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2  # type: ignore[import-untyped]  # it has no types
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F  # type: ignore[import-untyped]

from heirlog.spark.schemas import protobuf
from heirlog.spark.schemas.framing import BadValue


def descriptors(*more: tuple[str, int, int]) -> bytes:
    """shop.Order in two versions: (name, number, type) of fields added later."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other").field.add(name="x", number=1, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    unit = order.enum_type.add(name="Unit")
    unit.value.add(name="PIECE", number=0)
    unit.value.add(name="KG", number=1)
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    fields: list[tuple[str, int, int, int, str]] = [
        ("id", 1, F.TYPE_INT64, F.LABEL_OPTIONAL, ""),
        ("large", 2, F.TYPE_UINT64, F.LABEL_OPTIONAL, ""),
        ("unit", 3, F.TYPE_ENUM, F.LABEL_OPTIONAL, ".shop.Order.Unit"),
        ("names", 4, F.TYPE_STRING, F.LABEL_REPEATED, ""),
        ("tags", 5, F.TYPE_MESSAGE, F.LABEL_REPEATED, ".shop.Order.TagsEntry"),
        ("at", 6, F.TYPE_MESSAGE, F.LABEL_OPTIONAL, ".google.protobuf.Timestamp"),
        ("other", 7, F.TYPE_MESSAGE, F.LABEL_OPTIONAL, ".shop.Other"),
        *((name, number, kind, F.LABEL_OPTIONAL, "") for name, number, kind in more),
    ]
    for name, number, kind, label, type_name in fields:
        order.field.add(name=name, number=number, type=kind, label=label, type_name=type_name or None)
    stamps = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamps)
    content: bytes = descriptor_pb2.FileDescriptorSet(file=[stamps, file]).SerializeToString()
    return content


def message(content: bytes, **values: Any) -> bytes:
    made = protobuf.message_of(content, "shop.Order")._class(**values)
    encoded: bytes = made.SerializeToString()
    return encoded


def test_a_message_becomes_a_row() -> None:
    content = descriptors()
    found = protobuf.message_of(content, "shop.Order")
    value = message(
        content, id=-5, large=2**64 - 1, unit=1, names=["a", "b"], tags={"x": 3}, at={"seconds": 7, "nanos": 5000}
    )
    row = found.read(value)
    assert row == {
        "id": -5,
        "large": Decimal(2**64 - 1),
        "unit": "KG",
        "names": ["a", "b"],
        "tags": [("x", 3)],
        "at": 7_000_005,
        "other": None,
    }
    assert pa.array([row], protobuf.arrow_type(found.descriptor)).to_pylist()[0]["large"] == 2**64 - 1


def test_fields_that_were_added_or_are_not_known_do_no_harm() -> None:
    old, new = descriptors(), descriptors(("added", 9, F.TYPE_STRING))
    assert protobuf.message_of(new, "shop.Order").read(message(old, id=1))["added"] == ""
    assert "added" not in protobuf.message_of(old, "shop.Order").read(message(new, id=1, added="x"))
    assert protobuf.message_of(old, "shop.Order").read(b"\x18\x05")["unit"] == "5"


def test_a_value_of_another_type_or_damaged_is_bad() -> None:
    found = protobuf.message_of(descriptors(), "shop.Order")
    found.check((1,))
    with pytest.raises(BadValue, match=r"of the message type at \[0\].*shop.Order is at \[1\]"):
        found.check((0,))
    with pytest.raises(BadValue, match=r"is not a message shop\.Order"):
        found.read(b"\x08")


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (descriptors(), "shop.None", "have no message shop.None"),
        (b"\xff", "shop.Order", "protoc --descriptor_set_out"),
        (descriptors()[-300:], "shop.Order", "descriptor"),
    ],
)
def test_descriptors_that_lack_the_message_are_refused(content: bytes, name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        protobuf.message_of(content, name)
