"""What the nodes have each their own of, and one name for: ids of topics, members of groups, producers, sessions.

A request names such a thing by a `Symbol`; each node's `World` puts that node's value in its place. The other way round
it turns the values of an answer into the same names, so that two answers can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from heirlog.protocol.batch import encode_batch

NO_ID = bytes(16)
UNKNOWN_ID = bytes(range(1, 17))
TIME_MS = 1_700_000_000_000
"""Of every record that a sequence writes, so that both nodes store the same bytes."""


@dataclass(frozen=True, repr=False)
class Symbol:
    """kind: a dictionary of `World`; name: a key of it; otherwise: what a node that does not know it is sent."""

    kind: str
    name: Any
    otherwise: Any

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


@dataclass(frozen=True, repr=False)
class Batch:
    """A record batch, or what looks like one."""

    values: tuple[bytes | None, ...] = (b"v",)
    keys: bool = True
    compression: int = 0
    producer: Any = None
    """Which of the producers of the sequence: a number, or a transactional id."""
    epoch_ahead: int = 0
    sequence: int = -1
    time_ms: int = TIME_MS
    control: bool = False
    transactional: bool = False
    damage: str = ""

    def __repr__(self) -> str:
        received = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self)]
        plain = [f"{field.name}={field.default!r}" for field in fields(self)]
        return f"<Batch {' '.join(each for each in received if each not in plain)}>"

    def encoded(self, world: World) -> bytes:
        producer_id, epoch = world.producers.get(self.producer, (4000, 0)) if self.producer is not None else (-1, -1)
        if self.producer is not None:
            epoch += self.epoch_ahead
        records = [
            (b"k%d" % number if self.keys else None, value, (), self.time_ms + number)
            for number, value in enumerate(self.values)
        ]
        encoded = encode_batch(
            records,
            compression=self.compression,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequence,
            control=self.control,
            transactional=self.transactional,
        )
        data = bytes(encoded)
        if self.damage == "crc":
            data = data[:-1] + bytes([data[-1] ^ 1])
        elif self.damage == "magic":
            data = data[:16] + b"\1" + data[17:]
        elif self.damage == "short":
            data = data[:-3]
        elif self.damage == "twice":
            data += data
        elif self.damage == "empty":
            data = b""
        return data


@dataclass
class World:
    """What one node calls the things that have the same name for all."""

    topic_ids: dict[Any, bytes] = field(default_factory=dict)
    members: dict[Any, str] = field(default_factory=dict)
    producers: dict[Any, tuple[int, int]] = field(default_factory=dict)
    producer_ids: dict[Any, int] = field(default_factory=dict)
    sessions: dict[Any, int] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)
    """The other way round: what a value is called in a comparison."""

    def resolve(self, value: Any) -> Any:
        if isinstance(value, Symbol):
            return getattr(self, value.kind).get(value.name, value.otherwise)
        return value.encoded(self) if isinstance(value, Batch) else value

    def learn_topic(self, name: str, topic_id: bytes) -> None:
        if topic_id != NO_ID and topic_id not in self.names:
            count = sum(1 for known in self.names.values() if known.startswith(f"id of {name}#"))
            self.names[topic_id] = f"id of {name}#{count + 1}"
            self.topic_ids[name] = topic_id

    def learn_member(self, symbol: Any, member_id: str) -> None:
        if member_id:
            self.members[symbol] = member_id
            self.names.setdefault(member_id, f"member {symbol}")

    def learn_producer(self, symbol: Any, producer_id: int, epoch: int) -> None:
        """It gets another id when the epochs of the one that it has are used up."""
        self.producers[symbol] = producer_id, epoch
        self.producer_ids[symbol] = producer_id
        if ("producer", producer_id) not in self.names:
            count = sum(1 for known in self.names.values() if known.startswith(f"producer {symbol}#"))
            self.names["producer", producer_id] = f"producer {symbol}#{count + 1}"

    def name_of(self, value: Any) -> Any:
        return self.names.get(value, value)
