"""A client's address as ACLs write it, and as bytes in an Envelope.

Kafka compares hosts of ACLs with Java's text of an address, letter by letter: four numbers, or all eight groups of an
IPv6 address without leading zeros (`0:0:0:0:0:0:0:1`, never `::1`). An IPv4 client of a socket that speaks both counts
as IPv4. What is no address (a host of the simulator) stands for itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

UNNAMED_HOST: Final = bytes(4)
_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})")
_MAPPED: Final = bytes(10) + b"\xff\xff"
_MAPPED_TEXT: Final = "::ffff:"


@lru_cache(maxsize=1024)
def kafka_host(host: str) -> str:
    address, percent, scope = host.partition("%")
    raw = host_bytes(address)
    return host if raw == UNNAMED_HOST else host_text(raw) + percent + scope


def without_mapping(host: str) -> str:
    """An IPv4 client of a socket that speaks both as IPv4; any other address as it is."""
    return host_text(host_bytes(host)) if host.startswith(_MAPPED_TEXT) else host


def host_bytes(host: str) -> bytes:
    """4 or 16 bytes; `UNNAMED_HOST` for what is no address."""
    four = _IPV4.fullmatch(host)
    if four is not None:
        numbers = [int(number) for number in four.groups()]
        return bytes(numbers) if max(numbers) < 256 else UNNAMED_HOST
    if ":" not in host:
        return UNNAMED_HOST
    head, gap, tail = host.partition("::")
    first, last = _groups(head), _groups(tail)
    if first is None or last is None or (len(first) + len(last) != 16 if not gap else len(first) + len(last) > 14):
        return UNNAMED_HOST
    raw = first + bytes(16 - len(first) - len(last)) + last
    return raw[12:] if raw.startswith(_MAPPED) else raw


def host_text(raw: bytes) -> str:
    """Of 4 or 16 bytes; of any other number "0.0.0.0"."""
    if len(raw) == 16:
        return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, 16, 2))
    return ".".join(str(number) for number in (raw if len(raw) == 4 else UNNAMED_HOST))


def _groups(text: str) -> bytes | None:
    """Groups of an IPv6 address, the last of which may be an IPv4 one; None if they are none."""
    if not text:
        return b""
    raw = b""
    *groups, last = text.split(":")
    four = _IPV4.fullmatch(last)
    for group in groups if four is not None else (*groups, last):
        if re.fullmatch(r"[0-9A-Fa-f]{1,4}", group) is None:
            return None
        raw += int(group, 16).to_bytes(2, "big")
    return raw + host_bytes(last) if four is not None else raw
