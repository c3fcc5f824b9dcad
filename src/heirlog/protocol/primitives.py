"""What generated message code is made of: the base classes and the encodings that are more than a fixed width.

Reading is optimistic. A read function takes (buf, pos) and returns the value and the position behind it; most do
not ask whether the bytes are there. Three facts make that safe:

* `Struct.unpack_from` and an index raise behind the end; `decode` turns that into `Malformed`;
* a slice behind the end comes out short, never wrong, and `pos` only grows, so one look at the end finds it;
* a loop over a claimed count reads at least one byte per turn, so it ends with the bytes: what is allocated is
  bounded by the frame and not by a number in it.

Only what could allocate by its claimed size alone (an array of numbers) compares first.

What is really there may be too much, too: an item of two bytes becomes an object of a hundred, and a frame of
`socket.request.max.bytes` full of them would hold up a node for a minute. So the items of a request are counted
(`allow`, `spend`); more than `ITEMS_MAX` are refused.

Writing makes many small `bytes` and joins them once. Record sets are not copied: they become parts of their own
between the joined ones, either buffers or a `Region` of a file that the body sends without reading it.

Unknown tagged fields are skipped. Unknown error codes are plain ints and are passed on.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482 (flexible versions), KIP-893 (nullable structs).
"""

from __future__ import annotations

import struct
import types
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from heirlog.env import Buffer, Region

T = TypeVar("T")
M = TypeVar("M", bound="Message")
Part: TypeAlias = Buffer | Region
Records: TypeAlias = Buffer | list[Part]
"""A record set. Decoded: a `memoryview` of the frame. To encode: a buffer, or parts in their order."""

EMPTY: Final[list[Any]] = []
"""Default of array parameters: stands for a fresh empty list. Never stored, never changed."""
ZERO_UUID: Final = bytes(16)
NEVER_FLEXIBLE: Final = 32767
"""`FLEXIBLE_VERSION` of an API without flexible versions: above every version."""
SMALL_RECORDS_BYTES: Final = 2048
"""A record set up to this size is copied between its neighbours: cheaper than a part of its own."""
SMALL_REGIONS_BYTES: Final = 20 * 1024
"""So much of a message's regions is read at once and copied between its neighbours. The bytes wait in memory until the
peer takes them, so this is a limit for the whole message."""

BYTE: Final = tuple(bytes([n]) for n in range(256))
_pack_h = struct.Struct(">h").pack
_pack_i = struct.Struct(">i").pack
_unpack_h = struct.Struct(">h").unpack_from
_unpack_i = struct.Struct(">i").unpack_from


class Malformed(ValueError):
    """Bytes that are no message: cut short, an impossible length, null where a value must be. Says which."""


class UnsupportedVersion(Malformed):
    """A version that this code does not speak."""


class _New(Protocol):
    def __call__(self, cls: type[T], /) -> T: ...


new: Final[_New] = object.__new__
"""An instance without `__init__`: reading sets every field itself."""


SECRETS: Final = frozenset(
    ("auth_bytes", "hmac", "request_data", "response_data", "salt", "salted_password", "server_key", "stored_key")
)
"""Fields that no log and no error message may show. What an Envelope carries may be any of them."""


class Struct:
    """A group of fields. Equal to another of its kind with equal fields; mutable, hence not hashable."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()
    KIND: ClassVar[type[Struct]]

    def __init_subclass__(cls, frozen: bool = False) -> None:
        if not frozen:
            cls.FIELDS = tuple(cls.__slots__)
            cls.KIND = cls

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.KIND is not other.KIND:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]  # the documented way to make a class unhashable

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={'[hidden]' if name in SECRETS else repr(getattr(self, name))}" for name in self.FIELDS
        )
        return f"{self.KIND.__qualname__}({fields})"


def frozen_default(cls: type[T]) -> T:
    """The shared default of a tagged struct, which refuses to be changed.

    Shared because most messages carry only defaults there: making three of them for each partition of a Fetch
    response would cost more than the partition itself. Replace the struct, do not set its fields.
    """

    def refuse(self: object, name: str, value: object) -> None:
        raise AttributeError(f"{cls.__qualname__} here is the shared default: assign a new one to change {name}")

    instance = cls()
    namespace = {"__slots__": (), "__setattr__": refuse, "__module__": cls.__module__}
    instance.__class__ = types.new_class(cls.__name__, (cls,), {"frozen": True}, lambda body: body.update(namespace))
    return instance


class Message(Struct):
    """A request, a response or a record: a struct that can stand alone."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    """API key; of metadata records the record key; of control records the record type."""
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_VERSION: ClassVar[int]
    """First flexible version, or `NEVER_FLEXIBLE`."""
    READ: ClassVar[Callable[[memoryview, int, int, int], tuple[list[Any], int]]]
    WRITE: ClassVar[Callable[[Out, Sequence[Any], int], None]]


class Out:
    """Collects what is written: `small` is joined, `parts` are the finished ones."""

    __slots__ = ("parts", "read_bytes", "small")

    def __init__(self) -> None:
        self.small: list[bytes | bytearray | memoryview] = []
        self.parts: list[Part] = []
        self.read_bytes = 0
        """Of regions."""

    def finish(self) -> list[Part]:
        if self.small:
            self.parts.append(b"".join(self.small))
            self.small.clear()
        return self.parts

    def body(self, records: Records, size: int) -> None:
        """Append a record set behind its length."""
        if isinstance(records, list):
            if self.read_bytes + size <= SMALL_REGIONS_BYTES and (data := _read(records, size)) is not None:
                self.read_bytes += size
                self.small.append(data)
                return
            self.parts.append(b"".join(self.small))
            self.small.clear()
            self.parts.extend(records)
        elif size <= SMALL_RECORDS_BYTES:
            self.small.append(records)
        else:
            self.parts.append(b"".join(self.small))
            self.small.clear()
            self.parts.append(records)


def _read(records: list[Part], size: int) -> Buffer | None:
    """None where a region cannot be read: the one who sends it finds out why, and what to do."""
    try:
        only = records[0] if len(records) == 1 else None
        if isinstance(only, Region):
            data = only.read()
        else:
            data = b"".join([part.read() if isinstance(part, Region) else part for part in records])
    except OSError:
        return None
    return data if len(data) == size else None


def part_size(part: Part) -> int:
    """In bytes, also of a memoryview whose items are wider than one."""
    if isinstance(part, Region):
        return part.size
    return part.nbytes if isinstance(part, memoryview) else len(part)


def records_size(records: Records | None) -> int:
    """Bytes of a record set; null has none."""
    if records is None:
        return 0
    if isinstance(records, list):
        return sum(map(part_size, records))
    return part_size(records)


def records_view(records: Records | None) -> memoryview:
    """A decoded record set as one view (null: empty). Parts are joined, which copies and reads regions."""
    if isinstance(records, memoryview):
        return records
    if records is None:
        return memoryview(b"")
    if isinstance(records, list) and len(records) == 1:
        records = records[0].read() if isinstance(records[0], Region) else records[0]
    if isinstance(records, list):
        return memoryview(b"".join(part.read() if isinstance(part, Region) else part for part in records))
    return records if isinstance(records, memoryview) else memoryview(records)


# ---------------------------------------------------------------------------------------------------------- messages


def encode(message: Message, version: int) -> list[Part]:
    """The body of a message, without header and length. Fields that the version lacks are left out.

    Raises UnsupportedVersion; ValueError for null in a version that has no null there, and for a number that its field
    cannot hold.
    """
    return written(message, version).finish()


def encode_bytes(message: Message, version: int) -> bytes:
    """Like `encode`, for a message without record sets (all records and most requests)."""
    out = written(message, version)
    assert not out.parts, "a message with record sets has parts"
    return b"".join(out.small)


def written(message: Message, version: int) -> Out:
    """As `encode`, before it is joined."""
    cls = type(message)
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise _unsupported(cls, version)
    out = Out()
    try:
        cls.WRITE(out, (message,), version)
    except struct.error as error:
        raise ValueError(f"{cls.__name__} v{version} has a value that its field cannot hold: {error}") from error
    return out


def decode(cls: type[M], buffer: Buffer, version: int, position: int = 0) -> M:
    """Read a message that begins at `position`; bytes behind it are ignored, as Kafka does.

    Record sets of the result are views of `buffer`. Raises Malformed.
    """
    return decode_with_end(cls, buffer, version, position)[0]


def decode_with_end(cls: type[M], buffer: Buffer, version: int, position: int = 0) -> tuple[M, int]:
    """Like `decode`, with the position behind the message."""
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise _unsupported(cls, version)
    buf = buffer if isinstance(buffer, memoryview) else memoryview(buffer)
    try:
        (message,), end = cls.READ(buf, position, 1, version)
    except (IndexError, struct.error) as error:
        raise Malformed(f"{cls.__name__} v{version} ends in the middle of a field ({len(buf)} bytes)") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"{cls.__name__} v{version} has a string that is not UTF-8: {error.reason}") from error
    if end > len(buf):
        raise Malformed(f"{cls.__name__} v{version} needs {end} bytes and has {len(buf)}")
    return message, end


def _unsupported(cls: type[Message], version: int) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not version {version}"
    )


# ----------------------------------------------------------------------------------------------------------- reading

ITEMS_MAX: Final = 500_000
"""Array elements of one request: a request about each of a hundred thousand partitions has fewer."""
_UNLIMITED: Final = 2**62
_items_left = _UNLIMITED


def allow(items: int | None) -> None:
    """How many items the next message may have; None: any number, as of answers that were asked for."""
    global _items_left
    _items_left = _UNLIMITED if items is None else items


def spend(count: int) -> None:
    """`count` items come now."""
    global _items_left
    _items_left -= count
    if _items_left < 0:
        raise Malformed(f"a request of more than {ITEMS_MAX} items")


def read_uvarint(buf: memoryview, pos: int) -> tuple[int, int]:
    first = buf[pos]
    if first < 128:
        return first, pos + 1
    return more_uvarint(buf, pos + 1, first)


def more_uvarint(buf: memoryview, pos: int, first: int) -> tuple[int, int]:
    """The rest of a number whose `first` byte is already read (at most five bytes, 32 bits)."""
    value = first & 127
    byte = buf[pos]
    if byte < 128:
        return value | byte << 7, pos + 1
    shift = 7
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            raise Malformed("a variable-length number is longer than five bytes")
    if value > 0xFFFFFFFF:
        raise Malformed("a variable-length number does not fit into 32 bits")
    return value, pos


def null(field: str) -> Malformed:
    return Malformed(f"{field} is null, which it must not be in this version")


def require(value: T | None, field: str) -> T:
    """For writing: the value of a field that has no null in the version being written."""
    if value is None:
        raise ValueError(f"{field} is None, which it must not be in this version")
    return value


def read_length(buf: memoryview, pos: int) -> tuple[int, int]:
    """Of an array before flexible versions; -1 is null."""
    (count,) = _unpack_i(buf, pos)
    if count < -1:
        raise Malformed(f"an array has the length {count}")
    return count, pos + 4


def read_compact_length(buf: memoryview, pos: int) -> tuple[int, int]:
    """-1 is null."""
    first = buf[pos]
    if first < 128:
        return first - 1, pos + 1
    value, pos = more_uvarint(buf, pos + 1, first)
    return value - 1, pos


def read_string(buf: memoryview, pos: int) -> tuple[str, int]:
    (size,) = _unpack_h(buf, pos)
    if size < 0:
        raise Malformed(f"a string has the length {size}")
    pos += 2
    end = pos + size
    return str(buf[pos:end], "utf-8"), end


def read_nullable_string(buf: memoryview, pos: int) -> tuple[str | None, int]:
    (size,) = _unpack_h(buf, pos)
    pos += 2
    if size < 0:
        if size != -1:
            raise Malformed(f"a string has the length {size}")
        return None, pos
    end = pos + size
    return str(buf[pos:end], "utf-8"), end


def read_compact_string(buf: memoryview, pos: int) -> tuple[str, int]:
    size = buf[pos]
    pos += 1
    if size >= 128:
        size, pos = more_uvarint(buf, pos, size)
    elif size == 0:
        raise Malformed("a string is null, which it must not be in this version")
    end = pos + size - 1
    return str(buf[pos:end], "utf-8"), end


def read_compact_nullable_string(buf: memoryview, pos: int) -> tuple[str | None, int]:
    if buf[pos] == 0:
        return None, pos + 1
    return read_compact_string(buf, pos)


def read_nullable_records(buf: memoryview, pos: int) -> tuple[memoryview | None, int]:
    """Bytes before flexible versions, as a view."""
    (size,) = _unpack_i(buf, pos)
    pos += 4
    if size < 0:
        if size != -1:
            raise Malformed(f"a byte field has the length {size}")
        return None, pos
    end = pos + size
    if end > len(buf):
        raise Malformed(f"a byte field of {size} bytes has only {len(buf) - pos}")
    return buf[pos:end], end


def read_compact_nullable_records(buf: memoryview, pos: int) -> tuple[memoryview | None, int]:
    size = buf[pos]
    pos += 1
    if size >= 128:
        size, pos = more_uvarint(buf, pos, size)
    if size == 0:
        return None, pos
    end = pos + size - 1
    if end > len(buf):
        raise Malformed(f"a byte field of {size - 1} bytes has only {len(buf) - pos}")
    return buf[pos:end], end


def read_nullable_bytes(buf: memoryview, pos: int) -> tuple[bytes | None, int]:
    view, pos = read_nullable_records(buf, pos)
    return (None if view is None else bytes(view)), pos


def read_compact_nullable_bytes(buf: memoryview, pos: int) -> tuple[bytes | None, int]:
    view, pos = read_compact_nullable_records(buf, pos)
    return (None if view is None else bytes(view)), pos


def read_bytes(buf: memoryview, pos: int) -> tuple[bytes, int]:
    value, pos = read_nullable_bytes(buf, pos)
    if value is None:
        raise Malformed("a byte field is null, which it must not be in this version")
    return value, pos


def read_compact_bytes(buf: memoryview, pos: int) -> tuple[bytes, int]:
    value, pos = read_compact_nullable_bytes(buf, pos)
    if value is None:
        raise Malformed("a byte field is null, which it must not be in this version")
    return value, pos


_INT32S: Final = tuple(struct.Struct(f">{n}i") for n in range(16))
_UUIDS: Final = tuple(struct.Struct(">" + "16s" * n) for n in range(16))


def read_int32s(buf: memoryview, pos: int, count: int) -> tuple[list[int], int]:
    """The items of an array; its length is read already."""
    if count < 16:
        shape = _INT32S[count]
        return list(shape.unpack_from(buf, pos)), pos + shape.size
    spend(count)
    end = pos + 4 * count
    if end > len(buf):
        raise Malformed(f"an array of {count} numbers has only {len(buf) - pos} bytes")
    return list(struct.unpack_from(f">{count}i", buf, pos)), end


def read_int8s(buf: memoryview, pos: int, count: int) -> tuple[list[int], int]:
    end = pos + count
    if end > len(buf):
        raise Malformed(f"an array of {count} numbers has only {len(buf) - pos} bytes")
    return list(struct.unpack_from(f">{count}b", buf, pos)), end


def read_int64s(buf: memoryview, pos: int, count: int) -> tuple[list[int], int]:
    spend(count)
    end = pos + 8 * count
    if end > len(buf):
        raise Malformed(f"an array of {count} numbers has only {len(buf) - pos} bytes")
    return list(struct.unpack_from(f">{count}q", buf, pos)), end


def read_uuids(buf: memoryview, pos: int, count: int) -> tuple[list[bytes], int]:
    if count < 16:
        shape = _UUIDS[count]
        return list(shape.unpack_from(buf, pos)), pos + shape.size
    spend(count)
    end = pos + 16 * count
    if end > len(buf):
        raise Malformed(f"an array of {count} UUIDs has only {len(buf) - pos} bytes")
    return [bytes(buf[at : at + 16]) for at in range(pos, end, 16)], end


def read_strings(buf: memoryview, pos: int, count: int) -> tuple[list[str], int]:
    spend(count)
    values = []
    for _ in range(count):
        value, pos = read_string(buf, pos)
        values.append(value)
    return values, pos


def read_compact_strings(buf: memoryview, pos: int, count: int) -> tuple[list[str], int]:
    spend(count)
    values = []
    for _ in range(count):
        value, pos = read_compact_string(buf, pos)
        values.append(value)
    return values, pos


def skip_tags(buf: memoryview, pos: int, first: int) -> int:
    """Step over tagged fields; `first` is the already read first byte of their count."""
    count = first
    if first >= 128:
        count, pos = more_uvarint(buf, pos, first)
    spend(count)
    for _ in range(count):
        pos = read_tag(buf, pos)[2]
    return pos


def read_tag(buf: memoryview, pos: int) -> tuple[int, int, int]:
    """The number of a tagged field, where its value begins and where it ends."""
    tag = buf[pos]
    pos += 1
    if tag >= 128:
        tag, pos = more_uvarint(buf, pos, tag)
    size = buf[pos]
    pos += 1
    if size >= 128:
        size, pos = more_uvarint(buf, pos, size)
    end = pos + size
    if end > len(buf):
        raise Malformed(f"a tagged field of {size} bytes has only {len(buf) - pos}")
    return tag, pos, end


def bad_tag(field: str) -> Malformed:
    return Malformed(f"the tagged field {field} is not as long as its size says")


# ----------------------------------------------------------------------------------------------------------- writing


def uvarint(value: int) -> bytes:
    if value < 128:
        return BYTE[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(value: str) -> bytes:
    raw = value.encode()
    return _pack_h(len(raw)) + raw


def nullable_string(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else string(value)


def compact_string(value: str) -> bytes:
    raw = value.encode()
    size = len(raw) + 1
    return (BYTE[size] if size < 128 else uvarint(size)) + raw


def compact_nullable_string(value: str | None) -> bytes:
    return b"\0" if value is None else compact_string(value)


def byte_field(value: bytes) -> bytes:
    return _pack_i(len(value)) + value


def nullable_byte_field(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else byte_field(value)


def compact_byte_field(value: bytes) -> bytes:
    return uvarint(len(value) + 1) + value


def compact_nullable_byte_field(value: bytes | None) -> bytes:
    return b"\0" if value is None else compact_byte_field(value)


def write_nullable_records(out: Out, records: Records | None) -> None:
    if records is None:
        out.small.append(b"\xff\xff\xff\xff")
    else:
        size = records_size(records)
        out.small.append(_pack_i(size))
        out.body(records, size)


def write_compact_nullable_records(out: Out, records: Records | None) -> None:
    if records is None:
        out.small.append(b"\0")
    else:
        size = records_size(records)
        out.small.append(uvarint(size + 1))
        out.body(records, size)


def int32s(values: Sequence[int]) -> bytes:
    count = len(values)
    return _INT32S[count].pack(*values) if count < 16 else struct.pack(f">{count}i", *values)


def int64s(values: Sequence[int]) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


def int8s(values: Sequence[int]) -> bytes:
    return struct.pack(f">{len(values)}b", *values)


def uuids(values: Sequence[bytes]) -> bytes:
    return b"".join(values)


def strings(values: Sequence[str]) -> bytes:
    return b"".join(map(string, values))


def compact_strings(values: Sequence[str]) -> bytes:
    return b"".join(map(compact_string, values))


def write_tags(out: Out, fields: Sequence[tuple[int, Out]]) -> None:
    """The tagged fields of a struct, which must be in ascending order of their tags."""
    small = out.small
    small.append(uvarint(len(fields)))
    for tag, value in fields:
        raw = b"".join(value.small)
        small += (uvarint(tag), uvarint(len(raw)), raw)
