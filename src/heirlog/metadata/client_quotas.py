"""Client quotas: limits for users, client ids and addresses, and which limit counts for a client.

    entity     a user, a client id, both together, or an address. A name of None is the default of that type: it counts
               for every name that has no limit of its own
    key        what is limited (`USER_AND_CLIENT_KEYS`, `IP_KEYS`)
    bucket     what is counted together against one limit, as (user, client id); "" where every value shares it

For each key on its own, the first of these that is configured counts (KIP-55):

    user, client id     user, default client     user
    default user, client id     default user, default client     default user
    client id     default client

A user's limit is shared by all clients of that user, a client id's by all users with it, and every other bucket is one
user with one client id. Limits are per broker: each broker allows the full rate.

Source: KIP-13, KIP-55, KIP-257, KIP-546, KIP-599, KIP-612.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, NamedTuple, TypeAlias

from heirlog.metadata.address import kafka_host

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

USER_AND_CLIENT_KEYS: Final = {
    PRODUCER_BYTE_RATE: True,
    CONSUMER_BYTE_RATE: True,
    REQUEST_PERCENTAGE: False,
    CONTROLLER_MUTATION_RATE: False,
}
"""The quotas of users and client ids, and whether the value must be a whole number."""
IP_KEYS: Final = {CONNECTION_CREATION_RATE: True}

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""(type, name) pairs in the order of the types; a name of None is the default."""
Bucket: TypeAlias = tuple[str, str]
_NOT_NAMED: Final = object()
"""In place of a type that an entity does not have."""


class QuotaLimit(NamedTuple):
    rate: float
    bucket: Bucket


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    return tuple(sorted(parts, key=lambda part: part[0]))


class ClientQuotas:
    """All quotas of a cluster. `put` is the only way in."""

    def __init__(self) -> None:
        self.by_entity: dict[Entity, dict[str, float]] = {}
        self._by_key: dict[str, dict[tuple[object, object], float]] = {}
        """Per key, by (user, client id); of `IP_KEYS` by (address, `_NOT_NAMED`)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientQuotas) and self.by_entity == other.by_entity

    __hash__ = None  # type: ignore[assignment]  # mutable

    def copy(self) -> ClientQuotas:
        other = ClientQuotas()
        for entity, quotas in self.by_entity.items():
            for key, value in quotas.items():
                other.put(entity, key, value)
        return other

    def put(self, entity: Entity, key: str, value: float | None) -> None:
        """None: the entity has no such quota any more."""
        # replaced, not changed: a snapshot that is being written may still read the old one
        quotas = {name: limit for name, limit in self.by_entity.get(entity, {}).items() if name != key}
        limits = self._by_key.setdefault(key, {})
        place = _place(entity)
        if value is None:
            limits.pop(place, None)
            if not limits:
                del self._by_key[key]
        else:
            quotas[key] = limits[place] = value
        if quotas:
            self.by_entity[entity] = quotas
        else:
            self.by_entity.pop(entity, None)

    def value(self, entity: Entity, key: str) -> float | None:
        return self.by_entity.get(entity, {}).get(key)

    def has(self, key: str) -> bool:
        """Whether there is any quota of this key: without one nothing is counted."""
        return key in self._by_key

    def limit(self, key: str, user: str, client_id: str) -> QuotaLimit | None:
        """What counts for this user with this client id; None: no limit."""
        limits = self._by_key.get(key)
        if limits is None:
            return None
        for place, bucket in _candidates(user, client_id):
            rate = limits.get(place)
            if rate is not None:
                return QuotaLimit(rate, bucket) if _limits(rate) else None
        return None

    def ip_limit(self, address: str) -> float | None:
        """Connections per second from this address, as `address.kafka_host` writes it; None: no limit."""
        limits = self._by_key.get(CONNECTION_CREATION_RATE)
        if limits is None:
            return None
        own = limits.get((address, _NOT_NAMED))
        rate = limits.get((None, _NOT_NAMED)) if own is None else own
        return rate if rate is not None and _limits(rate) else None


def _limits(rate: float) -> bool:
    """Apache Kafka stores NaN, and infinity for some keys: no client waits for either there. Nothing stores 0 today."""
    return 0 < rate < inf


def _place(entity: Entity) -> tuple[object, object]:
    names = dict(entity)
    if IP in names:
        address = names[IP]
        return None if address is None else kafka_host(address), _NOT_NAMED
    return names.get(USER, _NOT_NAMED), names.get(CLIENT_ID, _NOT_NAMED)


def _candidates(user: str, client_id: str) -> Iterator[tuple[tuple[object, object], Bucket]]:
    """Where to look, in order, and the bucket of each."""
    both = (user, client_id)
    yield (user, client_id), both
    yield (user, None), both
    yield (user, _NOT_NAMED), (user, "")
    yield (None, client_id), both
    yield (None, None), both
    yield (None, _NOT_NAMED), (user, "")
    yield (_NOT_NAMED, client_id), ("", client_id)
    yield (_NOT_NAMED, None), ("", client_id)
