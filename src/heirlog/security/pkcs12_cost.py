"""What it costs to open a PKCS 12 store: the store says so itself, at each of its parts, and OpenSSL has no bound.

    MacData                   { digest, salt, iterations }
    PBES2, PBKDF2             { salt, iterations, ... }       scrypt   { salt, N, r, p, ... }
    an older algorithm        { salt, iterations }

Each is a sequence with an octet string (the salt) and a number behind it, and nothing else in such a store looks so.
The sum is bounded: a store may have thousands of parts. A node opens stores in its event loop.

Not DER alone: OpenSSL reads BER, and Windows writes it (lengths that are not known beforehand, strings in pieces). What
is wrapped in an encrypted part is seen only after that was decrypted; no tool encrypts twice.

Source: RFC 7292, RFC 8018, RFC 7914; X.690.
"""

from __future__ import annotations

from typing import Final

from heirlog.security.der import OCTETS, SEQUENCE, NotReadable
from heirlog.security.encrypted_key import SCRYPT_WORK_MAX, scrypt_work, shown

STORE_ITERATIONS_MAX: Final = 4_000_000
"""A second. keytool and openssl need 10,000 to 100,000 for each key and for the store."""
STEPS_MAX: Final = 500_000
"""Elements; a store of 1 MiB with all authorities of a system has a tenth."""
DEPTH_MAX: Final = 40
_INTEGER: Final = 0x02
_CONSTRUCTED: Final = 0x20
_Part = tuple[int, bytes]


def check_store_cost(store: bytes) -> None:
    """Raises NotReadable."""
    cost = _Walk().cost_of(store, 0)
    if cost > STORE_ITERATIONS_MAX:
        raise NotReadable(
            f"it takes {shown(cost)} iterations to open; at most {STORE_ITERATIONS_MAX} are taken: write it with fewer "
            "(openssl pkcs12 -export -iter 10000)"
        )


class _Walk:
    def __init__(self) -> None:
        self._steps = 0

    def cost_of(self, data: bytes, depth: int) -> int:
        """Of the elements in `data` that can be read, and of all within them."""
        if depth > DEPTH_MAX:
            raise NotReadable("its parts are nested too deeply")
        cost = 0
        for tag, inside in self._parts(data, depth):
            if tag == SEQUENCE:
                cost += _own_cost(self._parts(inside, depth))
            if tag & ~_CONSTRUCTED == OCTETS:
                inside = self._joined(tag, inside, depth)
                if inside[:1] != bytes([SEQUENCE]):
                    continue
            elif not tag & _CONSTRUCTED:
                continue
            cost += self.cost_of(inside, depth + 1)
        return cost

    def _parts(self, data: bytes, depth: int) -> list[_Part]:
        parts, at = [], 0
        while (found := self._next(data, at, depth)) is not None:
            tag, start, end, at = found
            parts.append((tag, data[start:end]))
        return parts

    def _next(self, data: bytes, at: int, depth: int) -> tuple[int, int, int, int] | None:
        """Tag, content from and to, and where the next one begins; None: there is nothing that can be read."""
        self._steps += 1
        if self._steps > STEPS_MAX or depth > DEPTH_MAX:
            raise NotReadable("it has too many parts, or they are nested too deeply")
        head = data[at : at + 2]
        if len(head) < 2:
            return None
        tag, size, start = head[0], head[1], at + 2
        if size == 0x80 and tag & _CONSTRUCTED:
            end = start
            while data[end : end + 2] != b"\0\0":
                inner = self._next(data, end, depth + 1)
                if inner is None:
                    return None
                end = inner[3]
            return tag, start, end, end + 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[at + 2 : start], "big")
        return None if start + size > len(data) else (tag, start, start + size, start + size)

    def _joined(self, tag: int, inside: bytes, depth: int) -> bytes:
        """An octet string that may come in pieces, which may come in pieces."""
        if not tag & _CONSTRUCTED:
            return inside
        return b"".join(self._joined(tag, piece, depth + 1) for tag, piece in self._parts(inside, depth + 1))


def _own_cost(parts: list[_Part]) -> int:
    for index, (tag, _) in enumerate(parts):
        if tag & ~_CONSTRUCTED == OCTETS:
            numbers = []
            for kind, inside in parts[index + 1 :]:
                if kind != _INTEGER:
                    break
                numbers.append(int.from_bytes(inside, "big"))
            if len(numbers) >= 3:
                return scrypt_work(numbers[:3]) * STORE_ITERATIONS_MAX // SCRYPT_WORK_MAX
            if numbers:
                return numbers[0]
    return 0
