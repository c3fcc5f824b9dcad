"""The format of metadata records in the log of `__cluster_metadata`: frame, versions, and the keys of control records.

    value       frame version 1 | record key | record version | record      (three unsigned varints, then the body)
    control     key: version int16 = 0, type int16; value: the record's body

Nothing may follow the body: a reader that skipped trailing bytes would apply half of a record from the future.

Which version of a record may be written follows from metadata.version, because a broker dies of a record that it
cannot read. BrokerRegistrationChange is the exception to "the newest allowed": it is written in the lowest version
that can carry the change (`registration_change_version`).

Source: KIP-746 (versioned metadata records), KIP-631, KIP-966.
"""

from __future__ import annotations

import struct

from heirlog.env import Buffer
from heirlog.protocol.primitives import Malformed, Message, decode_with_end, encode_bytes, read_uvarint, uvarint
from heirlog.protocol.records import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

FRAME_VERSION = 1
DIRECTORIES = 17
"""metadata.version 3.7-IV2: log directories in broker and partition records."""
ELIGIBLE_LEADER_REPLICAS = 23
"""metadata.version 4.0-IV1: ELR fields in partition records."""
MIGRATION = 8
"""metadata.version 3.4-IV0: whether a broker is on its way from ZooKeeper."""
IN_CONTROLLED_SHUTDOWN = 7
"""metadata.version 3.3-IV3, the lowest there is."""

_CONTROL_KEY = struct.Struct(">hh")
_VERSIONS: dict[type[Message], tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord: ((DIRECTORIES, 3), (MIGRATION, 2), (IN_CONTROLLED_SHUTDOWN, 1)),
    PartitionRecord: ((ELIGIBLE_LEADER_REPLICAS, 2), (DIRECTORIES, 1)),
    PartitionChangeRecord: ((ELIGIBLE_LEADER_REPLICAS, 2), (DIRECTORIES, 1)),
    BrokerRegistrationChangeRecord: ((DIRECTORIES, 2), (IN_CONTROLLED_SHUTDOWN, 1)),
}


class UnknownRecord(Malformed):
    """A record key or version from the future: the log cannot be applied by this node."""


def record_version(cls: type[Message], metadata_version: int) -> int:
    """The newest version of a record that may be written at this level of metadata.version."""
    for level, version in _VERSIONS.get(cls, ()):
        if metadata_version >= level:
            return version
    return 0


def registration_change_version(record: BrokerRegistrationChangeRecord) -> int:
    """The lowest version that carries this change."""
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


def encode_record(record: Message, version: int) -> bytes:
    """The value of a metadata record. Raises UnsupportedVersion."""
    return bytes([FRAME_VERSION]) + uvarint(record.API_KEY) + uvarint(version) + encode_bytes(record, version)


def decode_record(value: Buffer) -> Message:
    """Raises UnknownRecord for a key or version that is not known here, Malformed for anything else that is wrong."""
    buf = value if isinstance(value, memoryview) else memoryview(value)
    try:
        frame_version, pos = read_uvarint(buf, 0)
        key, pos = read_uvarint(buf, pos)
        version, pos = read_uvarint(buf, pos)
    except IndexError as error:
        raise Malformed(f"a metadata record of {len(buf)} bytes is shorter than its frame") from error
    if frame_version != FRAME_VERSION:
        raise Malformed(f"a metadata record has the frame version {frame_version} instead of {FRAME_VERSION}")
    cls = METADATA_RECORDS.get(key)
    if cls is None:
        raise UnknownRecord(f"there is no metadata record with the key {key} here")
    if version > cls.MAX_VERSION:
        raise UnknownRecord(f"{cls.__name__} v{version} is newer than v{cls.MAX_VERSION}, the newest known here")
    return _whole(cls, buf, version, pos)


def control_key(record_type: int) -> bytes:
    """The key of a control record; the type is the record class's API_KEY."""
    return _CONTROL_KEY.pack(0, record_type)


def control_type(key: Buffer) -> int:
    """The type in a control record's key; later key versions may be longer. Raises Malformed."""
    if len(key) < _CONTROL_KEY.size:
        raise Malformed(f"the key of a control record has {len(key)} bytes instead of {_CONTROL_KEY.size}")
    version, record_type = _CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise Malformed(f"the key of a control record has the version {version}")
    return int(record_type)


def encode_control(record: Message, version: int = 0) -> tuple[bytes, bytes]:
    """Key and value of a control record."""
    return control_key(record.API_KEY), encode_bytes(record, version)


def decode_control(key: Buffer, value: Buffer) -> Message:
    """A raft control record. Raises UnknownRecord for other types (the abort and commit markers are no messages)."""
    record_type = control_type(key)
    cls = CONTROL_RECORDS.get(record_type)
    if cls is None:
        raise UnknownRecord(f"there is no control record of the type {record_type} here")
    if len(value) < 2:
        raise Malformed(f"a {cls.__name__} of {len(value)} bytes is shorter than its version")
    # every control record begins with its own version
    version = min(int.from_bytes(value[:2], "big", signed=True), cls.MAX_VERSION)
    return _whole(cls, value if isinstance(value, memoryview) else memoryview(value), version, 0)


def _whole(cls: type[Message], buf: memoryview, version: int, position: int) -> Message:
    record, end = decode_with_end(cls, buf, version, position)
    if end != len(buf):
        raise Malformed(f"{cls.__name__} v{version} has {len(buf) - end} bytes too many")
    return record
