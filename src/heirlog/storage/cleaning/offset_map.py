"""The last offset of each key in the dirty part of a log, for one pass.

Its size is limited to `log.cleaner.dedupe.buffer.size` bytes, filled up to `log.cleaner.io.buffer.load.factor`, with
`BYTES_PER_KEY` for each key. A full map only accepts known keys, and the pass ends at the first new one. Keys as long
as a digest or longer are stored as their digest; no shorter key has that length, so no key can equal another one's
digest.

It uses many small dicts: one large dict would block the event loop for tens of milliseconds when it grows or is freed.
"""

from __future__ import annotations

from hashlib import sha1

BYTES_PER_KEY = 200
"""A bytes object, an int and a dict's slot at its lowest load, as measured in CPython 3.11 to 3.13."""
ABSENT = -1

_SHARDS = 64
_DIGEST_BYTES = 20


def keys_within(buffer_bytes: int, load_factor: float) -> int:
    """How many keys a pass may hold: at least one, or it would never end."""
    return max(1, int(buffer_bytes * load_factor) // BYTES_PER_KEY)


class OffsetMap:
    __slots__ = ("_capacity", "_count", "_shards")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._count = 0
        self._shards: list[dict[bytes, int]] = [{} for _ in range(_SHARDS)]

    def __len__(self) -> int:
        return self._count

    def put(self, key: bytes, offset: int) -> bool:
        """False if it is full and the key is new: nothing was stored. Offsets of a key come in rising order."""
        if len(key) >= _DIGEST_BYTES:
            key = sha1(key, usedforsecurity=False).digest()
        shard = self._shards[hash(key) % _SHARDS]
        if key not in shard:
            if self._count >= self._capacity:
                return False
            self._count += 1
        shard[key] = offset
        return True

    def get(self, key: bytes) -> int:
        """ABSENT if the key is not in the dirty part."""
        if len(key) >= _DIGEST_BYTES:
            key = sha1(key, usedforsecurity=False).digest()
        return self._shards[hash(key) % _SHARDS].get(key, ABSENT)

    def release_some(self) -> bool:
        """Free a part of the memory; False if none is left."""
        if not self._shards:
            return False
        self._shards.pop()
        return True
