"""Until when a certificate is good."""

from __future__ import annotations

from typing import Final

from heirlog.security.der import NotReadable, elements

_VERSION: Final = 0xA0
_SHORT, _LONG = 0x17, 0x18
"""UTCTime, which has two digits for the year, and GeneralizedTime."""
_OF_THIS_CENTURY: Final = "50"
"""Years of two digits below this one (RFC 5280, section 4.1.2.5.1)."""


def not_after(certificate: bytes) -> str:
    """In UTC, as `20261127000000Z`. Raises NotReadable, ValueError."""
    (whole,) = elements(certificate)
    fields = whole.children()[0].children()
    # serial number, algorithm and issuer come before it; the version is left out if it is the first
    validity = fields[3 + (fields[0].tag == _VERSION)].children()
    if len(validity) != 2 or validity[1].tag not in (_SHORT, _LONG):
        raise NotReadable("its validity cannot be read")
    text = validity[1].inside.decode("ascii")
    if validity[1].tag == _SHORT:
        text = ("20" if text[:2] < _OF_THIS_CENTURY else "19") + text
    return text
