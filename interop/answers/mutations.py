"""What clients should not send: odd values, nulls, nothing, items twice. Any field of a request but those that wait."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from schemas import FieldSpec, StructSpec, snake

from answers.shape import SPECS, Plan
from answers.world import NO_ID, UNKNOWN_ID, Batch

LEFT_ALONE = frozenset(
    (
        *("timeout_ms", "max_wait_ms", "min_bytes", "session_timeout_ms", "rebalance_timeout_ms", "validate_only"),
        *("allow_auto_topic_creation", "replica_id", "replica_state", "acks"),
        *("transaction_timeout_ms", "producer_id", "v3_and_below_producer_id"),
    )
)
"""These make a node wait, or act later on its own, change every node of a cluster, speak as a node, or name a producer
of another sequence."""
ODD_INTS = (-1, -2, -3, -6, 0, 1, 2, 3, 4, 5, 7, 10, 16, 32, 64, 99, 127)
ODD_TEXTS = ("", " ", "none", "bad/name", ".", "x" * 250, "*", "0", "99", "é")
Site = tuple[dict[str, Any], FieldSpec]


def mutated(plan: Plan, rng: random.Random) -> Plan:
    """With one to three things changed."""
    fields = copy.deepcopy(plan.fields)
    made = Plan(plan.key, plan.version, fields, plan.client, plan.controller, plan.keeps)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        sites = list(_sites(fields, SPECS[plan.key].blocks["request"], plan.version))
        if sites:
            _change(*rng.choice(sites), plan.version, rng)
    return made


def _sites(fields: dict[str, Any], struct: StructSpec, version: int) -> Iterator[Site]:
    for field in struct.fields:
        name = snake(field.name)
        if name in LEFT_ALONE or version not in field.versions or (field.tag or 0) >= 10_000:
            continue
        if name not in fields and field.struct is not None:
            continue
        yield fields, field
        value = fields.get(name)
        if field.struct is not None and value:
            for item in value if field.is_array else [value]:
                yield from _sites(item, field.struct, version)


def _change(fields: dict[str, Any], field: FieldSpec, version: int, rng: random.Random) -> None:
    name = snake(field.name)
    if version in field.nullable and rng.random() < 0.3:
        fields[name] = None
    elif field.is_array:
        items = list(fields.get(name) or [])
        if items and rng.random() < 0.6:
            items.insert(rng.randrange(len(items) + 1), copy.deepcopy(rng.choice(items)))
        elif items and rng.random() < 0.5:
            items.pop(rng.randrange(len(items)))
        elif field.struct is None:
            items.append(_odd(field, rng))
        else:
            items.clear()
        fields[name] = items
    elif field.struct is None:
        fields[name] = _odd(field, rng)


def _odd(field: FieldSpec, rng: random.Random) -> Any:
    made: dict[str, Callable[[], Any]] = {
        "bool": lambda: rng.random() < 0.5,
        "string": lambda: rng.choice(ODD_TEXTS),
        "bytes": lambda: rng.choice((b"", b"\0", b"abc")),
        "records": lambda: Batch(damage=rng.choice(("crc", "magic", "short", "twice", "empty", ""))),
        "uuid": lambda: rng.choice((NO_ID, UNKNOWN_ID)),
    }
    if field.type in made:
        return made[field.type]()
    largest = {"int8": 127, "int16": 2**15 - 1, "uint16": 2**16 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}[field.type]
    return rng.choice((*ODD_INTS, largest, -largest - 1)) if field.type != "uint16" else rng.randrange(100)
