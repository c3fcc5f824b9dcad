"""PEM text in the lines that OpenSSL reads.

Kafka takes any white space within a key or a certificate. In a properties file or an environment variable they are
often one line, with spaces where the line ends were; OpenSSL finds nothing in that.
"""

from __future__ import annotations

import re
from typing import Final

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----")
"""What has headers of its own (keys encrypted in OpenSSL's older way) is in lines already, and left as it is."""
_LINE: Final = 64


def in_lines(text: str) -> str:
    return _BLOCK.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    label, body = found[1], "".join(found[2].split())
    lines = [body[at : at + _LINE] for at in range(0, len(body), _LINE)]
    return "\n".join(["", f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
