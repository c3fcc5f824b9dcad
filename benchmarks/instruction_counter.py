"""Counts interpreted instructions in a node, between two signals. Imported by the nodes of `benchmarks.instructions`.

The instructions of a step are those from its call until its return, without the steps in between. What is outside of
all steps is the event loop.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

BEGIN, END = signal.SIGUSR1, signal.SIGUSR2
FOLDER = "HEIRLOG_COUNTED_IN"
"""The environment variable with the folder where each process writes a file, named after its process id."""
LOOP = "event loop"
STEPS = {
    "FrameStream._readable": "a socket is readable",
    "DelayedOperations._notify_of_appends": "waiting fetches are answered",
    "DelayedOperations.watermark_may_have_moved": "the high watermark has moved",
}
"""By the functions that begin them. A readable socket is named by the API of its request or answer."""

_counted: Counter[str] = Counter()
_steps: list[tuple[FrameType | None, list[Any]]] = [(None, [LOOP, 0])]
"""The open steps, with their names and counts so far."""


def install() -> None:
    signal.signal(BEGIN, _begin)
    signal.signal(END, _end)


def _begin(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        _count_in(frame)
        frame.f_trace = _in_frame
        frame = frame.f_back
    sys.settrace(_called)


def _end(number: int, frame: FrameType | None) -> None:
    sys.settrace(None)
    while frame is not None:
        frame.f_trace = None
        frame = frame.f_back
    for _, (name, count) in _steps:
        _counted[name] += count
    lines = [f"{count}\t{name}\n" for name, count in _counted.items()]
    Path(os.environ[FOLDER], str(os.getpid())).write_text("".join(lines))


def _count_in(frame: FrameType) -> None:
    frame.f_trace_opcodes, frame.f_trace_lines = True, False


def _called(frame: FrameType, event: str, arg: object) -> Any:
    _count_in(frame)
    called = frame.f_code.co_qualname
    if called in STEPS:
        _steps.append((frame, [STEPS[called], 0]))
    elif called == "ClientConnection.received":
        _steps[-1][1][0] = f"a request of API {frame.f_locals['header'].api_key} comes"
    elif called == "OutboundConnection.on_frame" and frame.f_locals["self"].sent:
        _steps[-1][1][0] = f"an answer to API {frame.f_locals['self'].sent[0].api_key} comes"
    return _in_frame


def _in_frame(frame: FrameType, event: str, arg: object) -> Any:
    if event == "opcode":
        _steps[-1][1][1] += 1
    elif event == "return" and _steps[-1][0] is frame:
        _, (name, count) = _steps.pop()
        _counted[name] += count
    return _in_frame
