"""Counts interpreted instructions in a node, between two signals. Imported by the nodes of `benchmarks.instructions`.

The instructions of a step are those from its call until its return, without the steps in between. What is outside of
all steps is the event loop. They are counted by step and function: those of a function are its own, without the calls.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

BEGIN, END = signal.SIGUSR1, signal.SIGUSR2
FOLDER = "HEIRLOG_COUNTED_IN"
"""The environment variable with the folder where each process writes a file, named after its process id."""
LOOP = "event loop"
FETCH = 1
METADATA = bytes(15) + b"\1"
"""Id of the topic that is the metadata log."""
STEPS = {
    "FrameStream._readable": "a socket is readable",
    "DelayedOperations._notify_of_appends": "waiting fetches are answered",
    "DelayedOperations.watermark_may_have_moved": "the high watermark has moved",
}
"""By the functions that begin them. A readable socket is named by the API of its request or answer."""

_counted: Counter[tuple[str, CodeType]] = Counter()
_called_at: Counter[tuple[str, CodeType]] = Counter()
_steps: list[tuple[FrameType | None, list[Any]]] = [(None, [LOOP, Counter(), Counter()])]
"""The open steps, with their names, and so far the instructions and the calls of each function."""


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
    while _steps:
        _close_step()
    lines = [
        f"{count}\t{_called_at[step, code]}\t{step}\t{Path(code.co_filename).stem}.{code.co_qualname}\n"
        for (step, code), count in _counted.items()
    ]
    Path(os.environ[FOLDER], str(os.getpid())).write_text("".join(lines))


def _count_in(frame: FrameType) -> None:
    frame.f_trace_opcodes, frame.f_trace_lines = True, False


def _called(frame: FrameType, event: str, arg: object) -> Any:
    _count_in(frame)
    called = frame.f_code.co_qualname
    if called in STEPS:
        _steps.append((frame, [STEPS[called], Counter(), Counter()]))
    elif called == "ClientConnection.received":
        _steps[-1][1][0] = f"a request of API {frame.f_locals['header'].api_key} comes"
    elif called == "OutboundConnection.on_frame" and frame.f_locals["self"].sent:
        asked = frame.f_locals["self"].sent[0]
        of_metadata = any(topic.topic_id == METADATA for topic in getattr(asked.message, "topics", None) or ())
        log = " for the metadata log" if asked.api_key == FETCH and of_metadata else ""
        _steps[-1][1][0] = f"an answer to API {asked.api_key} comes{log}"
    _steps[-1][1][2][frame.f_code] += 1
    return _in_frame


def _in_frame(frame: FrameType, event: str, arg: object) -> Any:
    if event == "opcode":
        _steps[-1][1][1][frame.f_code] += 1
    elif event == "return" and _steps[-1][0] is frame:
        _close_step()
    return _in_frame


def _close_step() -> None:
    _, (step, instructions, calls) = _steps.pop()
    for code, count in instructions.items():
        _counted[step, code] += count
    for code, count in calls.items():
        _called_at[step, code] += count
