"""Ids, epochs and offsets as distinct types, so that one cannot be passed for another unseen.

Messages carry plain ints; the floors above name what they mean with these.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from enum import IntEnum
from typing import NamedTuple, NewType, TypeAlias

BrokerId = NewType("BrokerId", int)
LeaderEpoch = NewType("LeaderEpoch", int)
"""Of a partition: grows with each change of its leader."""
PartitionEpoch = NewType("PartitionEpoch", int)
"""Of a partition: grows with each record about it."""
BrokerEpoch = NewType("BrokerEpoch", int)
"""Of a registration: the offset of its RegisterBroker record."""
ControllerEpoch = NewType("ControllerEpoch", int)
"""The raft term."""
Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes; as text Kafka writes URL-safe base64 without padding."""
PartitionKey: TypeAlias = tuple[Uuid, int]
"""The topic's id and the partition's index: a topic that was recreated under its name has other keys."""

NO_LEADER = BrokerId(-1)
NO_BROKER_EPOCH = BrokerEpoch(-1)
ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
PORT_MAX = 65535
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]\s]+):(\d+)")


class CoordinatorType(IntEnum):
    """Key types of FindCoordinator: what the key is that a coordinator is looked for."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Endpoint(NamedTuple):
    """Where a listener can be reached."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint_from_text(text: str) -> Endpoint:
    """`host:port`, an IPv6 host in brackets. Raises ValueError for anything else."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[2]) > PORT_MAX:
        raise ValueError(f"{text!r} is not of the form host:port")
    return Endpoint(match[1].strip("[]"), int(match[2]))


def uuid_text(uuid: bytes) -> str:
    """Kafka's text form, 22 characters."""
    return b2a_base64(uuid, newline=False).decode().replace("+", "-").replace("/", "_").rstrip("=")


def uuid_from_text(text: str) -> Uuid:
    """Raises ValueError for anything that is not 16 bytes in Kafka's text form."""
    try:
        raw = a2b_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a UUID in Kafka's form (22 characters of URL-safe base64)") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a UUID in Kafka's form: {len(raw)} bytes instead of 16")
    return Uuid(raw)
