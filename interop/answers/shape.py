"""From a plan to one node's request, and from an answer to what can be compared."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemas import FieldSpec, StructSpec, our_specs, snake

from answers.world import World
from heirlog.protocol.api import request_class
from heirlog.protocol.batch import InvalidBatch, walk
from heirlog.protocol.primitives import Struct

SPECS = {spec.key: spec for spec in our_specs() if spec.kind == "api"}
IDENTITY = (
    *("name", "topic", "topic_id", "topic_name", "group_id", "resource_type", "resource_name", "key", "feature"),
    *("partition_index", "partition", "partition_id", "index", "broker_id", "node_id", "log_dir", "api_key"),
    *("principal", "host", "operation", "permission_type", "pattern_type", "member_id", "producer_id", "replica_id"),
    "transactional_id",
)
"""What tells the items of an array apart, whatever their order."""
ORDERED = {("DescribeTopicPartitionsResponse", "topics")}
"""Arrays whose order is defined. Kafka's others come out of hash maps."""
MERGED = {
    "FetchResponse": [("responses", "partitions")],
    "ProduceResponse": [("responses", "partition_responses")],
    "OffsetDeleteResponse": [("topics", "partitions")],
    "OffsetCommitResponse": [("topics", "partitions")],
    "TxnOffsetCommitResponse": [("topics", "partitions")],
    "ElectLeadersResponse": [("replica_election_results", "partition_result")],
}
"""Arrays in which a topic may come several times, and be split in other ways on other nodes."""
TEXTS = frozenset(("error_message", "acknowledge_error_message", "documentation"))
OWN_NUMBERS = frozenset(
    (
        *("total_bytes", "usable_bytes", "broker_epoch"),
        *("log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp"),
    )
)
A_DAY_MS = 86_400_000
GENERATED = re.compile(r".*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Ids of members: a coordinator adds a random id to a client's."""


@dataclass(frozen=True)
class Plan:
    """A request for every node; nested structs are dicts, under the field names of our messages."""

    key: int
    version: int
    fields: dict[str, Any]
    client: int = 0
    controller: bool = False
    keeps: Any = None
    """What the answer has an id for: a member, a producer."""

    @property
    def name(self) -> str:
        return SPECS[self.key].name

    def __str__(self) -> str:
        where = " to the controller" if self.controller else ""
        return f"{self.name} v{self.version}{where} {present(SPECS[self.key].blocks['request'], self)}"


def present(struct: StructSpec, plan: Plan) -> dict[str, Any]:
    """The fields that the version has."""
    return {
        snake(field.name): plan.fields[snake(field.name)]
        for field in struct.fields
        if plan.version in field.versions and snake(field.name) in plan.fields
    }


def request_of(plan: Plan, world: World) -> Any:
    cls = request_class(plan.key)
    return _filled(cls, cls, SPECS[plan.key].blocks["request"], plan.fields, plan.version, world)


def _filled(cls: Any, top: Any, struct: StructSpec, fields: dict[str, Any], version: int, world: World) -> Any:
    made = cls()
    for field in struct.fields:
        name = snake(field.name)
        if version not in field.versions:
            continue
        value = fields.get(name, getattr(made, name))
        if value is None:
            value = None if version in field.nullable else _empty(field)
        elif name not in fields:
            continue
        elif field.struct is not None:
            nested = getattr(top, field.type)
            items = value if field.is_array else [value]
            built = [_filled(nested, top, field.struct, item, version, world) for item in items]
            value = built if field.is_array else built[0]
        elif field.is_array:
            value = [world.resolve(item) for item in value]
        else:
            value = world.resolve(value)
        setattr(made, name, value)
    return made


def _empty(field: FieldSpec) -> Any:
    """Where a version has no null."""
    return [] if field.is_array else "" if field.type == "string" else b""


def normal(answer: Any, world: World) -> Any:
    """Structs as dicts, with the same names for the same things on every node."""
    if not isinstance(answer, Struct):
        return answer
    found = {}
    for name in answer.FIELDS:
        value = getattr(answer, name)
        if isinstance(value, list):
            found[name] = [
                normal(item, world) if isinstance(item, Struct) else _value(name, item, world) for item in value
            ]
            if (type(answer).__name__, name) not in ORDERED:
                found[name].sort(key=_identity)
        elif isinstance(value, Struct):
            found[name] = normal(value, world)
        else:
            found[name] = _value(name, value, world)
    for array, inner in MERGED.get(type(answer).__name__, ()):
        found[array] = _merged(found[array], inner)
    if type(answer).__name__ == "DescribeQuorumResponse":
        for partition in (each for topic in found["topics"] for each in topic["partitions"]):
            partition |= {name: "some" for name in ("high_watermark", "leader_epoch") if partition[name] > 0}
    return found


def topic_of(name: str) -> str:
    """Of what a topic's id is called in an answer."""
    return name.removeprefix("id of ").rpartition("#")[0] if name.startswith("id of ") else name


def _merged(topics: list[dict[str, Any]], inner: str) -> list[dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for topic in topics:
        known = merged.setdefault(_identity(topic), topic)
        if known is not topic:
            known[inner] = sorted(known[inner] + topic[inner], key=_identity)
    return list(merged.values())


def _value(name: str, value: Any, world: World) -> Any:
    if name in TEXTS:
        return "a text" if value else value
    if name.endswith("directory_id"):
        return "an id"
    if name == "records":
        return _records(value)
    if name == "host" and value == "localhost":
        return "127.0.0.1"
    if name == "port":
        return "a port" if value > 0 else value
    if name == "log_dir":
        return "a directory"
    if name in OWN_NUMBERS:
        return "some" if value > 0 else value
    if name == "cluster_id":
        return "the cluster" if value else value
    if name == "producer_id":
        return world.names.get(("producer", value), value)
    if name == "session_id":
        return world.names.get(("session", value), value)
    if isinstance(value, int) and "time" in name and abs(value - time.time() * 1000) < A_DAY_MS:
        return "now"
    if isinstance(value, memoryview | bytearray):
        value = bytes(value)
    name_of_it = world.name_of(value)
    if name_of_it is value and isinstance(value, str) and GENERATED.fullmatch(value):
        return "a member whose id no client knows yet"
    return name_of_it


def _records(value: Any) -> Any:
    if value is None:
        return None
    data = memoryview(b"".join(value) if isinstance(value, list) else bytes(value))
    try:
        return [
            {
                "base_offset": header.base_offset,
                "leader_epoch": header.leader_epoch,
                "attributes": header.attributes,
                "last_offset_delta": header.last_offset_delta,
                "record_count": header.record_count,
            }
            for _, header in walk(data, partial_tail=True)
        ]
    except InvalidBatch:
        return bytes(data)


def _identity(item: Any) -> str:
    if isinstance(item, dict):
        return repr([item[name] for name in IDENTITY if name in item])
    return repr(item)


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two comparable answers differ: the path, with what tells the item apart, and both values."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        for name in theirs:
            yield from differences(theirs[name], ours[name], f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and any(isinstance(x, dict) for x in theirs + ours):
        yield from _of_lists(theirs, ours, path)
    elif theirs != ours or type(theirs) is not type(ours):
        yield path, theirs, ours


def _of_lists(theirs: list[Any], ours: list[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    there, here = _numbered(theirs), _numbered(ours)
    for key in [*there, *(key for key in here if key not in there)]:
        at = f"{path}[{key}]"
        if key not in here:
            yield at, there[key], "not there"
        elif key not in there:
            yield at, "not there", here[key]
        else:
            yield from differences(there[key], here[key], at)
    order = [key for key in there if key in here]
    if order != [key for key in here if key in there]:
        yield f"{path} (their order)", list(there), list(here)


def _numbered(items: list[Any]) -> dict[str, Any]:
    """By identity; items that have the same one are counted."""
    seen: Counter[str] = Counter()
    found = {}
    for item in items:
        identity = _identity(item)
        seen[identity] += 1
        found[identity if seen[identity] == 1 else f"{identity}#{seen[identity]}"] = item
    return found


def kind_of(path: str) -> str:
    """Without what tells items apart."""
    kept, depth = [], 0
    for letter in path:
        depth -= letter == "]"
        if depth == 0:
            kept.append(letter)
        depth += letter == "["
    return "".join(kept)
