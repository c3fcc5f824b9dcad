"""A finding as a file, `TARGET-DIGEST`: the inputs that led to it, each behind its 32-bit length.

Of a node these are all that it had been given, since what it does depends on them; replay tries the last one alone
first.
What libFuzzer writes by itself (TARGET-crash-..., TARGET-oom-..., TARGET-timeout-...) is one input without a length.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

from fuzz.targets import HISTORIES, TARGETS

_LENGTH = struct.Struct(">I")
_WRITTEN_BY_LIBFUZZER = ("crash", "oom", "timeout", "leak", "slow")


def save(directory: Path, target: str, inputs: Sequence[bytes]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    content = b"".join(_LENGTH.pack(len(data)) + data for data in inputs)
    path = directory / f"{target}-{hashlib.sha256(content).hexdigest()[:12]}"
    path.write_bytes(content)
    return path


def inputs_of(target: str, last: bytes) -> list[bytes]:
    """What led to a finding with this last input."""
    return HISTORIES[target].inputs if target in HISTORIES else [last]


def load(path: Path) -> tuple[str, list[bytes]]:
    target, _, rest = path.name.partition("-")
    content = path.read_bytes()
    if rest.startswith(_WRITTEN_BY_LIBFUZZER):
        return target, [content]
    inputs, at = [], 0
    while at < len(content):
        (size,) = _LENGTH.unpack_from(content, at)
        inputs.append(content[at + 4 : at + 4 + size])
        at += 4 + size
    return target, inputs


def run(path: Path) -> None:
    """Raises what the finding is about."""
    target, inputs = load(path)
    for attempt in [inputs[-1:], inputs] if len(inputs) > 1 else [inputs]:
        forget()
        for data in attempt:
            TARGETS[target](data)
    forget()


def forget() -> None:
    for history in HISTORIES.values():
        history.forget()
