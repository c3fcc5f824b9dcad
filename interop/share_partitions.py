"""Our SharePartition beside Apache Kafka's class of that name, on random sequences: what a fetch acquires in which
parts, which acknowledgements are refused, what is written to the share coordinator, and where the partition is then.

Ours plays first, because what it has acquired is acknowledged later; Kafka's class then gets the same lines.

    SHARES_SEED=123 SHARES_SEQUENCES=20000 python interop/run.py "share partitions"     other ones, or more

Two cases are left out, because Kafka's answers there say nothing. Where the stored state or the log has holes, its
start offset follows later, and offsets without a record do not count as finished; what is acquired is the same. And
where nothing is in flight, an acknowledgement that begins below the start offset fails in it (`DEFECT`), with what the
same request has changed before.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import jars

from heirlog.broker.share_coordinator.batches import StateBatch
from heirlog.broker.share_partitions.acquisition import FetchedBatch, ShareLimits, Wanted
from heirlog.broker.share_partitions.share_partition import Acknowledgement, SharePartition, StateTransition
from heirlog.protocol.errors import KafkaError

JAVA = Path(__file__).resolve().parent / "java"
SEQUENCES = 1_500
STEPS = 25
DEFECT = "UNKNOWN_SERVER_ERROR"
MEMBERS = ("a", "b")
ACCEPT, RELEASE = 1, 2
NOTHING = "-"


@dataclass
class Deliveries:
    """One share partition, and the log that it reads."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    log: list[FetchedBatch] = field(default_factory=list)
    held: list[tuple[str, int, int]] = field(default_factory=list)
    """Member, first and last offset, as it was acquired."""

    def play(self) -> None:
        self._open()
        for _ in range(STEPS):
            self.rng.choice((*[self._fetch] * 4, *[self._acknowledge] * 4, self._append, self._release))()

    def _said(self, line: str, result: str, change: StateTransition | None = None) -> None:
        written = NOTHING
        if change is not None and change.batches:
            texts = (f"{each[0]}-{each[1]}:{int(each[2])}:{each[3]}" for each in change.batches)
            written = f"{change.start_offset};{change.finished_count};{','.join(texts)}"
        self.lines.append(line)
        self.answers.append(f"{result} {written} {self.share.start_offset} {self.share.next_fetch_offset}")

    def _open(self) -> None:
        rng, at, batches = self.rng, 0, []
        deliveries = rng.choice((2, 3, 4, 5, 5, 10))
        for _ in range(rng.choice((0, 0, 0, 1, 3))):
            first, at = at, at + rng.randint(1, 6)
            batches.append(StateBatch(first, at - 1, rng.choice((0, 0, 2, 4)), rng.randint(1, deliveries - 1)))
        self.share = SharePartition(ShareLimits(deliveries), 0, batches)
        for _ in range(3):
            self._append()
        texts = [f"{each[0]}-{each[1]}:{each[2]}:{each[3]}" for each in batches]
        self._said(" ".join(["open", str(deliveries), "0", *texts]), "ok")

    def _append(self) -> None:
        first = self.log[-1].last + 1 if self.log else 0
        self.log.append(FetchedBatch(first, first + self.rng.choice((0, 1, 2, 4, 9))))

    def _fetch(self) -> None:
        share, rng = self.share, self.rng
        offset = share.next_fetch_offset
        found = [batch for batch in self.log if batch.last >= offset]
        if not found:
            return
        member = rng.choice(MEMBERS)
        wanted = Wanted(rng.choice((1, 2, 3, 5, 100)), rng.choice((1, 3, 500)), rng.random() < 0.5)
        acquired = share.acquire(member, offset, found, wanted, 1)
        self.held += [(member, first, last) for first, last, _ in acquired]
        read = " ".join(f"{each.first}-{each.last}" for each in found)
        self._said(
            f"fetch {member} {int(wanted.is_exact)} {wanted.batch_size} {wanted.max_records} {read}",
            ",".join(f"{first}-{last}:{count}" for first, last, count in acquired) or NOTHING,
        )

    def _acknowledge(self) -> None:
        rng = self.rng
        member = rng.choice(MEMBERS)
        mine = sorted(each[1:] for each in self.held if each[0] == member)
        given: list[Acknowledgement] = []
        for first, last in rng.sample(mine, min(len(mine), rng.choice((1, 1, 2)))):
            begin = first if rng.random() < 0.6 else rng.randint(first, last)
            end = last if rng.random() < 0.6 else rng.randint(begin, last)
            if rng.random() < 0.1:
                begin, end = max(0, begin - rng.choice((0, 1))), end + rng.choice((0, 1, 5))
            count = end - begin + 1
            types = [rng.choice((0, ACCEPT, RELEASE, RELEASE, 3)) for _ in range(1 if rng.random() < 0.7 else count)]
            given.append(Acknowledgement(begin, end, types))
        given.sort()
        if not given or any(one.last > other.first for one, other in pairwise(given)):
            return
        line = " ".join(["acknowledge", member, *(f"{a}-{b}:{','.join(map(str, types))}" for a, b, types in given)])
        try:
            change = self.share.acknowledge(member, given, 1)
        except KafkaError as error:
            self._said(line, error.code.name)
            return
        self.share.settle(change, is_stored=True)
        self._said(line, "ok", change)

    def _release(self) -> None:
        member = self.rng.choice(MEMBERS)
        change = self.share.release(member)
        self._said(f"release {member}", "ok", change)


def theirs(sequences: Sequence[Deliveries]) -> Iterator[str]:
    """Kafka's answers to all lines."""
    command = ["java", "-cp", jars.classpath(), str(JAVA / "SharePartitions.java")]
    given = "".join(f"{line}\n" for sequence in sequences for line in sequence.lines)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300)
    answers = done.stdout.splitlines()
    expected = sum(len(sequence.lines) for sequence in sequences)
    assert len(answers) == expected, f"{len(answers)} answers to {expected} lines: {done.stderr[-2000:]}"
    return iter(answers)


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError at the first difference."""
    jars.fetch()
    seed = os.environ.get("SHARES_SEED") or str(secrets.randbelow(10**6))
    rng = random.Random(seed)
    sequences = []
    for _ in range(int(os.environ.get("SHARES_SEQUENCES", SEQUENCES))):
        sequences.append(Deliveries(rng))
        sequences[-1].play()
    answers = theirs(sequences)
    count = refused = 0
    for sequence in sequences:
        has_failed = False
        for number, ours in enumerate(sequence.answers):
            answer = next(answers)
            has_failed |= answer.startswith(DEFECT) and ours.startswith("INVALID_RECORD_STATE")
            lines = "\n".join(sequence.lines[: number + 1])
            assert has_failed or ours == answer, (
                f"seed {seed}: Kafka's answer {answer}, ours {ours}, to the last of\n{lines}"
            )
            count += 1
            refused += "INVALID" in answer
    return f"seed {seed}: {len(sequences)} sequences, {count} answers like those of Kafka's class, {refused} refusals"
