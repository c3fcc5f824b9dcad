"""Where a certificate may serve: its subject alternative names."""

from __future__ import annotations

from typing import Final

from heirlog.security.der import OCTETS, Element, elements
from heirlog.security.distinguished_name import dotted

_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_HOST, _ADDRESS = 0x82, 0x87


def alternative_names(certificate: bytes) -> frozenset[str]:
    """Hosts and addresses as text, other kinds of names in hexadecimal. Raises NotReadable, ValueError."""
    (whole,) = elements(certificate)
    for field in whole.children()[0].children():
        if field.tag == _EXTENSIONS:
            for extension in field.only_child().children():
                number, *_, value = extension.children()
                if dotted(number.inside) == _ALTERNATIVE_NAMES:
                    (names,) = elements(value.content(OCTETS))
                    return frozenset(map(_text, names.children()))
    return frozenset()


def _text(name: Element) -> str:
    if name.tag == _HOST:
        return name.inside.decode("ascii").lower()
    if name.tag == _ADDRESS:
        return ".".join(map(str, name.inside)) if len(name.inside) == 4 else name.inside.hex(":", 2)
    return name.whole.hex()
