"""Requests that are likely to reach deep into a node: every field by its type and name, drawn from a few good values.

Made with kio's classes, so that they exist in every version; those that kio does not have, with our own classes.
`seeds` is where fuzzers begin.
"""

from __future__ import annotations

import dataclasses
import datetime
import random
import typing
import uuid
from collections.abc import Iterator
from typing import Any

from clients.wire_client import API_KEYS, header_bytes
from fuzz.brain import LISTENERS, REPAIR_BATCHES, TOPICS, Brain, joined
from kio.index import load_request_schema
from kio.serial._introspect import classify_field, get_field_tag, get_schema_field_type, is_optional
from protocol.oracle import ERROR_CODES, INTEGERS, NOT_IN_KIO, kio_bytes

from heirlog.apis.common.api import Role
from heirlog.node.router import routes_with_unstable
from heirlog.protocol.api import APIS, request_class
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.compression import GZIP, LZ4, SNAPPY, ZSTD
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import DescribeRecoveryRequest, ElectLeadersRequest, GetReplicaLogInfoRequest
from heirlog.protocol.primitives import Message

NAMES = {int(api.key): api.name for api in APIS.values()} | {key: name for name, key in API_KEYS.items()}
OURS = {
    (NAMES[int(api.key)], version)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
    if version > api.kafka_max_version or (api.name, version) in NOT_IN_KIO
}
ROLES = (Role.BROKER, Role.CONTROLLER)
STRINGS = (
    "t",
    "t",
    "c",
    "g",
    "",
    "m",
    "no-such",
    "__consumer_offsets",
    "range",
    "consumer",
    "1",
    "retention.ms",
)
LONG = "x" * 300
LENGTH_BYTES = 4
TOPIC_FIELDS = ("topic", "topic_name", "name")
NOW_MS = 1_700_000_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def cases() -> list[tuple[Role, str, int]]:
    """Every API of every listener in every version."""
    return [
        (role, NAMES[key], version)
        for role in ROLES
        for key, route in sorted(routes_with_unstable(role).items())
        for version in range(route.min_version, route.max_version + 1)
    ]


class Plausible:
    """Requests to `brain`; what is drawn depends on `rng` only."""

    def __init__(self, rng: random.Random, brain: Brain) -> None:
        self._rng = rng
        self._ids = [uuid.UUID(bytes=brain.topic_ids[name]) for name in TOPICS]

    def frame(self, api: str, version: int) -> bytes:
        """Header and request, without the length."""
        if (api, version) in OURS:
            message = self._ours(api)
            header = RequestHeader(message.API_KEY, version, self._rng.randrange(1000), "fuzz")
            return b"".join(encode_request(header, message))[LENGTH_BYTES:]
        entity = self._entity(load_request_schema(API_KEYS[api], version))
        return header_bytes(api, version, self._rng.randrange(1000)) + kio_bytes(entity)

    def _ours(self, api: str) -> Message:
        rng = self._rng
        names = [rng.choice(STRINGS) for _ in range(rng.randrange(3))]
        indexes = [rng.choice((0, 0, 1, -1, 2**31 - 1)) for _ in range(rng.randrange(4))]
        if api == "GetReplicaLogInfo":
            topics = [
                GetReplicaLogInfoRequest.TopicPartitions(
                    topic_id=rng.choice([*(topic.bytes for topic in self._ids), bytes(16)]), partitions=indexes
                )
                for _ in names
            ]
            broker = rng.choice((1, 2, -1))
            return GetReplicaLogInfoRequest(broker_id=broker, topic_partitions=rng.choice((topics, None)))
        if api == "DescribeRecovery":
            cursor = DescribeRecoveryRequest.Cursor(
                topic_name=rng.choice(STRINGS), partition_index=rng.choice((0, 1, -1, -9))
            )
            return DescribeRecoveryRequest(
                topics=[
                    DescribeRecoveryRequest.TopicRequest(name=name, partitions=rng.choice((indexes, None)))
                    for name in names
                ],
                ask_replicas=rng.random() < 0.5,
                response_partition_limit=rng.choice((2000, 1, 0, -1)),
                cursor=rng.choice((cursor, None)),
            )
        if api != "ElectLeaders":
            empty: Message = request_class(API_KEYS[api])()
            return empty
        elections = [
            ElectLeadersRequest.TopicPartitions(
                topic=name, partitions=indexes, desired_leaders=rng.choice((None, [], [1], [1, 2, -1, 9]))
            )
            for name in names
        ]
        return ElectLeadersRequest(
            election_type=rng.choice((0, 1, 2, 3, 4, 5, -1)),
            topic_partitions=rng.choice((elections, None)),
            skip_wait=rng.random() < 0.5,
        )

    def _entity(self, cls: Any) -> Any:
        return cls(**{field.name: self._field(field) for field in dataclasses.fields(cls)})

    def _field(self, field: Any) -> Any:
        rng = self._rng
        shape = classify_field(field)
        kafka_type = None if dataclasses.is_dataclass(shape.type_) else get_schema_field_type(field)
        args = typing.get_args(field.type)
        nullable = type(None) in args if shape.is_array else is_optional(field)
        if get_field_tag(field) is not None and rng.random() < 0.7 and field.default is not dataclasses.MISSING:
            return field.default
        if nullable and kafka_type not in ("uuid", "datetime_i64", "records") and rng.random() < 0.2:
            return None
        if not shape.is_array:
            return self._item(field.name, shape.type_, kafka_type)
        count = rng.choice((0, 1, 1, 1, 2, 3))
        return tuple(self._item(field.name, shape.type_, kafka_type) for _ in range(count))

    def _item(self, name: str, cls: Any, kafka_type: str | None) -> Any:
        rng = self._rng
        if kafka_type is None:
            return self._entity(cls)
        if kafka_type in INTEGERS:
            return self._integer(name, INTEGERS[kafka_type], kafka_type == "uint16")
        match kafka_type:
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return rng.choice((0.0, 0.5, 1.0, 1000.0, -1.0, 1e300, float("nan"), float("inf")))
            case "uuid":
                return rng.choice((*self._ids, None, uuid.UUID(bytes=rng.randbytes(16))))
            case "error_code":
                return rng.choice(ERROR_CODES)
            case "timedelta_i32" | "timedelta_i64":
                return datetime.timedelta(milliseconds=rng.choice((0, 1, 100, 6000, 10_000, 30_000, -1)))
            case "datetime_i64":
                return rng.choice((None, EPOCH, EPOCH + datetime.timedelta(milliseconds=NOW_MS)))
            case "string":
                if name in TOPIC_FIELDS and rng.random() < 0.7:
                    return rng.choice(list(TOPICS))
                return rng.choice((*STRINGS, LONG))
            case "records":
                return self._batch()
        return rng.choice((b"", b"\x00\x03abc", rng.randbytes(20)))

    def _integer(self, name: str, bits: int, unsigned: bool) -> int:
        rng = self._rng
        if name == "acks":
            return rng.choice((-1, 0, 1))
        if "bytes" in name:
            return rng.choice((1, 100, 1_000_000))
        low = 0 if unsigned else -(2**bits)
        usual = (0, 0, 0, 1, 1, 2, 100, max(low, -1))
        return rng.choice((*usual, *usual, 2**bits - 1, low, rng.randrange(low, 2**bits)))

    def _batch(self) -> bytes:
        rng = self._rng
        records = [
            (
                rng.choice((b"k", b"l", None)),
                rng.choice((b"v" * 10, None)),
                (("h", b"x"),) if rng.random() < 0.2 else (),
                NOW_MS + n,
            )
            for n in range(rng.choice((1, 2, 5)))
        ]
        producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": rng.choice((0, 1, 5))}
        more = producer if rng.random() < 0.3 else {}
        batch = encode_batch(records, compression=rng.choice((0, 0, GZIP, SNAPPY, LZ4, ZSTD)), **more)
        if rng.random() < 0.2:
            batch[rng.randrange(len(batch))] ^= 1 << rng.randrange(8)
        return bytes(batch)


def conversation(rng: random.Random, brain: Brain, frames: int) -> bytes:
    """An input of `brain`: several requests of one listener."""
    listener = rng.choice((0, 0, 0, 1))
    served = [case for case in cases() if case[0] is ROLES[listener]]
    make = Plausible(rng, brain)
    chosen = [make.frame(api, version) for _, api, version in (rng.choice(served) for _ in range(frames))]
    return joined(listener | rng.choice((0, REPAIR_BATCHES)) | rng.randrange(4) << 2, chosen)


def seeds() -> Iterator[tuple[str, bytes]]:
    """(name, input): each API and version alone, then conversations."""
    brain, rng = Brain(), random.Random(1)
    make = Plausible(rng, brain)
    for role, api, version in cases():
        frame = make.frame(api, version)
        yield f"{LISTENERS[ROLES.index(role)]}-{api}-{version}", joined(ROLES.index(role) | REPAIR_BATCHES, [frame])
    for number in range(100):
        yield f"conversation-{number}", conversation(rng, brain, 8)
