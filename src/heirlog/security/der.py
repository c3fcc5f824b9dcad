"""DER, the encoding of certificates and keys: just enough to find a value in one.

Source: X.690.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SEQUENCE, SET, OCTETS, OID = 0x30, 0x31, 0x04, 0x06


class NotReadable(ValueError):
    """Not a key store, another format, or another password; holds nothing of either."""


@dataclass(frozen=True, slots=True)
class Element:
    """One value of DER: a tag, and what it holds."""

    tag: int
    whole: bytes
    inside: bytes

    def content(self, tag: int) -> bytes:
        if self.tag != tag:
            raise NotReadable(f"it has an element {self.tag:#x} where {tag:#x} belongs")
        return self.inside

    def oid(self) -> str:
        """An object identifier, in hexadecimal."""
        return self.content(OID).hex()

    def children(self) -> list[Element]:
        return list(elements(self.inside))

    def only_child(self) -> Element:
        (child,) = elements(self.inside)
        return child


def elements(data: bytes) -> Iterator[Element]:
    """The values that stand one behind the other. Raises NotReadable."""
    position = 0
    while position < len(data):
        head = data[position : position + 2]
        length_bytes = head[1] & 0x7F if len(head) == 2 and head[1] & 0x80 else 0
        size = int.from_bytes(data[position + 2 : position + 2 + length_bytes], "big") if length_bytes else head[-1]
        start = position + 2 + length_bytes
        end = start + size
        if len(head) < 2 or head[1] == 0x80 or end > len(data):
            raise NotReadable("it is damaged, or not DER")
        yield Element(head[0], data[position:end], data[start:end])
        position = end
