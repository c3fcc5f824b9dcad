"""A line with a checksum at the end of a small file, where Apache Kafka's readers ignore it.

A bit that flips in an id or a number makes another one, which nothing else would show. A file without the line was
written by Apache Kafka or by an operator, and is believed.
"""

from __future__ import annotations

from heirlog.protocol.checksum import crc32c

_NAME = "crc32c: "


class WrongChecksum(ValueError):
    """The content is not what was written."""


def with_check_line(content: str, prefix: str = "") -> bytes:
    """prefix: what makes the line a comment, where the format has comments. `content` ends with its last line's end."""
    return f"{content}{prefix}{_NAME}{crc32c(content.encode()):08x}\n".encode()


def checked(content: bytes, prefix: str = "") -> str:
    """The content without the line. Raises WrongChecksum, and UnicodeDecodeError."""
    text = content.decode()
    shown, separator, checksum = text.rpartition(f"{prefix}{_NAME}")
    if not separator:
        return text
    if checksum.strip() != f"{crc32c(shown.encode()):08x}":
        raise WrongChecksum("its checksum does not match")
    return shown
