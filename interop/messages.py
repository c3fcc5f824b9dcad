"""Random messages and records through Apache Kafka's own classes and back.

For every API, metadata record, control record and group record, in each of its versions: objects of ours with random
values are encoded, Kafka's class reads the bytes and writes them again (java/RoundTrip.java), and the answer must be
the same bytes and, read by us, the same values. So Kafka reads what we write, and we read what Kafka writes; that a
field means the same to both is what `schemas.py` compares.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jars
from schemas import FieldSpec, Spec, StructSpec, known_to_kafka, our_specs, snake

import heirlog.protocol.records as records
from heirlog.broker.groups.records import GROUP_KEY_VERSION, OFFSET_KEY_VERSION
from heirlog.protocol.api import request_class, response_class
from heirlog.protocol.metadata_record import decode_record, encode_record
from heirlog.protocol.primitives import Message, decode, encode_bytes
from heirlog.storage.producers import ProducedBatch, ProducerStateEntry, ProducerStateManager

SEED = 20260
PER_VERSION = 30
JAVA = Path(__file__).resolve().parent / "java"
MESSAGES = "org.apache.kafka.common.message"
GROUP_KEYS = {"OffsetCommitValue": OFFSET_KEY_VERSION, "GroupMetadataValue": GROUP_KEY_VERSION}
BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "int64": 64}
PIECES = "abcxyz-._ Zß漢😀"


@dataclass
class Case:
    what: str
    line: str
    expected: str
    check: Callable[[], bool]
    """Whether our classes read the expected bytes as what was written."""


class Values:
    """Random values for the fields of our specs."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def fill(self, cls: Any, namespace: Any, struct: StructSpec, version: int) -> Any:
        made = cls()
        for field in struct.fields:
            if version not in field.versions or (field.tag is not None and self.rng.random() < 0.4):
                continue
            setattr(made, snake(field.name), self.value(field, namespace, version))
        return made

    def value(self, field: FieldSpec, namespace: Any, version: int) -> Any:
        if version in field.nullable and self.rng.random() < 0.25:
            return None
        if field.is_array:
            return [self.item(field, namespace, version) for _ in range(self.rng.choice([0, 1, 1, 2, 3]))]
        return self.item(field, namespace, version)

    def item(self, field: FieldSpec, namespace: Any, version: int) -> Any:
        rng = self.rng
        if field.struct is not None:
            return self.fill(getattr(namespace, field.type), namespace, field.struct, version)
        if field.type == "bool":
            return rng.random() < 0.5
        if field.type == "float64":
            return rng.choice([0.0, float(rng.randrange(2**40)), rng.uniform(-1e9, 1e9)])
        if field.type in BITS:
            bits = rng.choice([3, BITS[field.type]])
            return (
                rng.randrange(2**bits) if field.type == "uint16" else rng.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))
            )
        if field.type == "uuid":
            return rng.randbytes(16)
        size = rng.choice([0, 1, 5, 12, 130, 1000 if rng.random() < 0.05 else 3])
        return "".join(rng.choices(PIECES, k=size)) if field.type == "string" else rng.randbytes(size)


def cases(rng: random.Random) -> Iterator[Case]:
    values = Values(rng)
    specs = our_specs()
    for spec in specs:
        for version in known_to_kafka(spec):
            for _ in range(PER_VERSION):
                yield from _cases_of(spec, version, values, specs)


def _cases_of(spec: Spec, version: int, values: Values, specs: list[Spec]) -> Iterator[Case]:
    if spec.kind == "api":
        for block, cls in (("request", request_class(spec.key)), ("response", response_class(spec.key))):
            made = values.fill(cls, cls, spec.blocks[block], version)
            yield _message(f"{MESSAGES}.{cls.__name__}Data", made, version)
        return
    cls = getattr(records, spec.name)
    made = values.fill(cls, cls, spec.blocks["fields"], version)
    if spec.kind == "control":
        yield _message(f"{MESSAGES}.{spec.name}", made, version)
    elif spec.kind == "record":
        data = encode_record(made, version)
        yield Case(f"{spec.name} v{version}", f"metadata {data.hex()}", data.hex(), lambda: decode_record(data) == made)
    elif spec.name.startswith("TransactionLog"):
        yield _message(f"org.apache.kafka.coordinator.transaction.generated.{spec.name}", made, version)
    elif spec.name in GROUP_KEYS:
        yield _group(spec, made, version, values, specs)


def _message(java_class: str, made: Message, version: int) -> Case:
    data = encode_bytes(made, version)
    return Case(
        f"{type(made).__name__} v{version}",
        f"message {java_class} {version} {data.hex()}",
        data.hex(),
        lambda: encode_bytes(decode(type(made), data, version), version) == data,
    )


def _group(spec: Spec, made: Message, version: int, values: Values, specs: list[Spec]) -> Case:
    key_version = GROUP_KEYS[spec.name]
    key_spec = next(other for other in specs if other.name == spec.name.replace("Value", "Key"))
    key_class = getattr(records, key_spec.name)
    key = values.fill(key_class, key_class, key_spec.blocks["fields"], key_version)
    key_data = key_version.to_bytes(2, "big") + encode_bytes(key, key_version)
    body = encode_bytes(made, version)
    value = "null" if values.rng.random() < 0.1 else (version.to_bytes(2, "big") + body).hex()
    return Case(
        f"{spec.name} v{version}",
        f"group {key_data.hex()} {value}",
        f"{key_data.hex()} {value}",
        lambda: decode(type(made), body, version) == made,
    )


def round_trips() -> str:
    """Every case through Kafka's classes. Raises AssertionError with the first differences."""
    jars.fetch()
    chosen = list(cases(random.Random(SEED)))
    wrong: list[str] = []
    for case, answer in zip(chosen, through_kafka([case.line for case in chosen]), strict=True):
        if answer != case.expected:
            wrong.append(f"{case.what}: Kafka was given {case.line[:300]} and answered {answer[:300]}")
        elif not case.check():
            wrong.append(f"{case.what}: read back, our object is another: {case.line[:300]}")
    if wrong:
        kinds = Counter(line.split(":")[0] for line in wrong)
        raise AssertionError("\n".join([*wrong[:10], f"{len(wrong)} in all: {dict(kinds)}"]))
    return f"{len(chosen)} messages and records of {len({case.what for case in chosen})} kinds and versions"


def through_kafka(lines: list[str]) -> list[str]:
    """The answers of java/RoundTrip.java. Raises RuntimeError where it ends early."""
    command = ["java", "-cp", jars.classpath(), str(JAVA / "RoundTrip.java")]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=180)
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(lines):
        raise RuntimeError(f"RoundTrip answered {len(answers)} of {len(lines)} lines: {done.stderr[-2000:]}")
    return answers


def producer_snapshots(directory: Path) -> str:
    """Random snapshots of ours, read and written again by Kafka."""
    rng = random.Random(SEED)
    pairs = []
    for number in range(50):
        source, target = directory / f"{number:020d}.snapshot", directory / f"{number:020d}.kafka"
        source.write_bytes(random_states(rng).encode())
        pairs.append((source, target))
    return compare_snapshots(pairs)


def compare_snapshots(pairs: list[tuple[Path, Path]]) -> str:
    answers = through_kafka([f"snapshot {source} {target}" for source, target in pairs])
    for (source, target), answer in zip(pairs, answers, strict=True):
        assert answer == "ok", f"{source}: {answer}"
        # Kafka keeps entries in no order; one order is made of both
        entries = entries_of(source.read_bytes())
        assert entries == entries_of(target.read_bytes()), f"{source}: Kafka wrote other bytes"
        states = ProducerStateManager.decode(target.read_bytes())
        assert states is not None and entries_of(states.encode()) == entries, f"{target}: not what we wrote"
    return f"{len(pairs)} snapshots"


def entries_of(snapshot: bytes) -> list[bytes]:
    """Without the first sequences behind them, which are ours."""
    size, start = 46, 10
    end = start + int.from_bytes(snapshot[6:start], "big") * size
    return sorted(snapshot[at : at + size] for at in range(start, end, size))


def random_states(rng: random.Random) -> ProducerStateManager:
    states = ProducerStateManager()
    for _ in range(rng.choice([0, 1, 2, 40])):
        state = ProducerStateEntry(rng.randrange(2**15), rng.randrange(2**42), 0)
        for _ in range(rng.choice([0, 1, 6])):
            delta = rng.randrange(1000)
            base, last = rng.randrange(2**31 - 1001), rng.randrange(1000, 2**40)
            state.batches.append(ProducedBatch(base, base + delta, last, delta, rng.randrange(2**42)))
        if rng.random() < 0.5:
            state.coordinator_epoch, state.transaction_start = (
                rng.randrange(2**31),
                rng.choice([-1, rng.randrange(2**40)]),
            )
        states.producers[rng.randrange(2**62)] = state
    return states
