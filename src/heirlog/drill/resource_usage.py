"""Whether memory and open files of nodes grow: both are sampled while the nodes work.

    start --first third: it warms up--> second third --median--> last third --median--> the end

Samples are judged per process of a node. Its usage is level if the median of its last third is at most a tenth, plus an
allowance, above the median of its second third. Medians are used because a garbage collection or a run of the cleaner
is not a leak. The first third is ignored because a process uses more and more while it loads its logs. Processes that
ran for less than `SHORTEST_S` are not checked.

A segment that was deleted and is still open uses invisible disk space: a file that stays deleted and open for longer
than `DELETED_OPEN_S` is a finding of its own.

The values are read from /proc. On systems without it nothing is checked, and `ResourceUsage.judged` says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

SHORTEST_S = 40.0
GROWTH = 1.1
MEMORY_ALLOWANCE_BYTES = 4 << 20
FILES_ALLOWANCE = 40
"""Allowance for clients that reconnect and elections that create fetchers and connections, a few hundred per broker."""
DELETED_OPEN_S = 15.0
SAMPLES_KEPT = 1_200
"""Samples per process; at the limit, every other one is dropped."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_DELETED = " (deleted)"


@dataclass(slots=True)
class ProcessSamples:
    """One incarnation: (seconds since the drill began, resident bytes, open files) again and again."""

    node: int
    pid: int
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    _step: int = 1
    _skipped: int = 0

    def add(self, at_s: float, memory_bytes: int, files: int) -> None:
        self._skipped += 1
        if self._skipped < self._step:
            return
        self._skipped = 0
        self.samples.append((at_s, memory_bytes, files))
        if len(self.samples) >= SAMPLES_KEPT:
            self.samples = self.samples[::2]
            self._step *= 2

    @property
    def seconds(self) -> float:
        return self.samples[-1][0] - self.samples[0][0] if self.samples else 0.0

    def medians(self, column: int) -> tuple[float, float]:
        """Of the second and of the last third of this process."""
        begin, third = self.samples[0][0], self.seconds / 3
        second = [one[column] for one in self.samples if begin + third <= one[0] < begin + 2 * third]
        last = [one[column] for one in self.samples if one[0] >= begin + 2 * third]
        return median(second), median(last)


@dataclass(slots=True)
class ResourceUsage:
    """Call `sample` every second or so; ask `findings` at the end."""

    processes: list[ProcessSamples] = field(default_factory=list)
    held_open: set[str] = field(default_factory=set)
    """Files that were deleted and stayed open for too long."""
    judged: bool = field(default_factory=lambda: Path("/proc/self/fd").is_dir())
    _now: dict[int, ProcessSamples] = field(default_factory=dict)
    _deleted_since_s: dict[tuple[int, str], float] = field(default_factory=dict)

    def sample(self, at_s: float, pids: Mapping[int, int]) -> None:
        """pids: per node that runs."""
        if not self.judged:
            return
        deleted: dict[tuple[int, str], float] = {}
        for node, pid in pids.items():
            try:
                memory_bytes, targets = _resident_bytes(pid), _open_files(pid)
            except OSError:
                continue  # it has just died
            process_samples = self._now.get(node)
            if process_samples is None or process_samples.pid != pid:
                process_samples = self._now[node] = ProcessSamples(node, pid)
                self.processes.append(process_samples)
            process_samples.add(at_s, memory_bytes, len(targets))
            for target in targets:
                if target.endswith(_DELETED):
                    deleted[pid, target] = self._deleted_since_s.get((pid, target), at_s)
        self._deleted_since_s = deleted
        self.held_open |= {target for (_, target), since_s in deleted.items() if at_s - since_s > DELETED_OPEN_S}

    def findings(self) -> list[str]:
        """A sentence for each process whose usage was not level, and for each file held open."""
        found = [f"{target} stayed open for more than {DELETED_OPEN_S:g} s" for target in sorted(self.held_open)]
        for process_samples in self.processes:
            if process_samples.seconds < SHORTEST_S:
                continue
            before, after = process_samples.medians(1)
            if after > GROWTH * before + MEMORY_ALLOWANCE_BYTES:
                found.append(
                    f"node {process_samples.node}: memory grew from {before / 1e6:.1f} to {after / 1e6:.1f} MB"
                )
            before, after = process_samples.medians(2)
            if after > GROWTH * before + FILES_ALLOWANCE:
                found.append(f"node {process_samples.node}: open files grew from {before:g} to {after:g}")
        return found

    def as_json(self) -> list[dict[str, Any]]:
        """The processes that ran long enough to be judged."""
        return [
            {
                "node": process_samples.node,
                "seconds": round(process_samples.seconds),
                "memory_mb": [round(value / 1e6, 1) for value in process_samples.medians(1)],
                "open_files": list(process_samples.medians(2)),
            }
            for process_samples in self.processes
            if process_samples.seconds >= SHORTEST_S
        ]


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def _open_files(pid: int) -> list[str]:
    """The file of each descriptor."""
    folder = f"/proc/{pid}/fd"
    targets = []
    for name in os.listdir(folder):
        try:
            targets.append(os.readlink(f"{folder}/{name}"))
        except OSError:
            continue  # closed meanwhile
    return targets
