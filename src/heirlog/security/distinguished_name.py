"""The subject of a certificate, as Java prints it: the name that `ssl.principal.mapping.rules` and ACLs are about.

    CN=alice,OU=Pipelines,O=Example\\, Inc.,C=DE        the most specific part first, no spaces between the parts

* Only nine types of parts have a name (`KEYWORDS`). Any other is its number with the value's DER in hexadecimal: an
  e-mail address is 1.2.840.113549.1.9.1=#1612616c6963...
* These characters have a backslash before them wherever they are: , = + < > # ; " and the backslash; so have spaces at
  the beginning and at the end. NUL becomes \\00. All other characters are as they are.

A name is never cut: one that is longer than `NAME_BYTES_MAX`, and an empty one, are refused, because two clients would
be the same principal.

Source: RFC 2253; what the JDK's X500Principal.getName() prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from heirlog.security.der import OID, SEQUENCE, SET, Element, NotReadable, elements

NAME_BYTES_MAX: Final = 4096
"""Of a subject in DER."""
KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",  # PrintableString
    0x14: "latin-1",  # T61String
    0x16: "ascii",  # IA5String
    0x1B: "ascii",  # GeneralString
    0x1E: "utf-16-be",  # BMPString
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_VERSION: Final = 0xA0
_SERIAL_TO_VALIDITY: Final = 4
"""Fields between the version and the subject: serial number, algorithm, issuer, validity."""


class UnusableName(ValueError):
    """The certificate names nobody; one sentence that says why."""


def subject_of(certificate: bytes) -> str:
    """The subject of an X.509 certificate in DER. Raises UnusableName."""
    try:
        (whole,) = elements(certificate)
        fields = whole.children()[0].children()
        subject = fields[_SERIAL_TO_VALIDITY + (fields[0].tag == _VERSION)]
        if len(subject.whole) > NAME_BYTES_MAX:
            raise UnusableName(
                f"the subject of its certificate has {len(subject.whole)} bytes; at most {NAME_BYTES_MAX} are accepted"
            )
        parts = [_part(part) for part in elements(subject.content(SEQUENCE))]
    except (NotReadable, IndexError, ValueError) as error:
        if isinstance(error, UnusableName):
            raise
        raise UnusableName("the subject of its certificate cannot be read") from error
    if not parts:
        raise UnusableName("the subject of its certificate is empty")
    return ",".join(reversed(parts))


def _part(part: Element) -> str:
    """A part is a set: usually of one attribute, several are joined by +."""
    return "+".join(_attribute(attribute.children()) for attribute in elements(part.content(SET)))


def _attribute(pair: Sequence[Element]) -> str:
    kind, value = pair
    number = dotted(kind.content(OID))
    keyword, encoding = KEYWORDS.get(number), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.whole.hex()}"
    try:
        return f"{keyword}={_escaped(value.inside.decode(encoding))}"
    except UnicodeDecodeError:
        return f"{keyword}=#{value.whole.hex()}"


def dotted(raw: bytes) -> str:
    """An object identifier in its usual form. Raises NotReadable."""
    numbers, number = [], 0
    for byte in raw:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or raw[-1] & 0x80:
        raise NotReadable("it has a damaged object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    after = len(text) - before - len(inner)
    return "".join(("\\ " * before, *map(_character, inner), "\\ " * after))


def _character(character: str) -> str:
    if character in _ESCAPED:
        return "\\" + character
    return "\\00" if character == "\0" else character
