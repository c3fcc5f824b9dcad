"""Where our controller puts replicas beside Apache Kafka's own StripedReplicaPlacer class, on random clusters.

The two draw in different ways, so what they promise is compared: which requests are refused, how many racks each
partition is in and with how many replicas at most in one of them, that leaders are unfenced, and how evenly brokers
lead. Ours may be more even, and use fewer fenced brokers; never less.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jars

from heirlog.controller.placement import place
from heirlog.metadata.state import BrokerRegistration
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.types import BrokerEpoch, BrokerId, Uuid

JAVA = Path(__file__).resolve().parent / "java"
SEED = 966
CASES = 3_000
RACKS = (None, "a", "b", "c", "d", "e")

Assignments = Sequence[Sequence[int]]


class Case(NamedTuple):
    seed: int
    partitions: int
    factor: int
    brokers: list[BrokerRegistration]

    def line(self) -> str:
        brokers = (f"{one.id}:{one.rack or ''}:{str(one.fenced).lower()}" for one in self.brokers)
        return "\t".join([str(self.seed), str(self.partitions), str(self.factor), *brokers])


class Promise(NamedTuple):
    """What is the same for both, then what may be better: less."""

    racks: list[int]
    most_in_one_rack: list[int]
    fenced: int
    leaders_apart: int


def random_case(rng: random.Random) -> Case:
    racks = rng.sample(RACKS, rng.randint(1, len(RACKS)))
    fenced = rng.choice((0.0, 0.0, 0.3))
    brokers = [
        BrokerRegistration(
            BrokerId(number),
            BrokerEpoch(0),
            Uuid(bytes(16)),
            rack=rng.choice(racks),
            fenced=rng.random() < fenced,
        )
        for number in range(rng.randint(1, 14))
    ]
    return Case(rng.getrandbits(40), rng.randint(1, 60), rng.randint(1, min(6, len(brokers) + 1)), brokers)


def promise(case: Case, placed: Assignments) -> Promise:
    state = {one.id: one for one in case.brokers}
    assert len(placed) == case.partitions
    assert all(len(set(replicas)) == case.factor for replicas in placed)
    assert not any(state[BrokerId(replicas[0])].fenced for replicas in placed)
    racks = [Counter(state[BrokerId(replica)].rack for replica in replicas) for replicas in placed]
    leads = Counter(replicas[0] for replicas in placed)
    active = [leads[one.id] for one in case.brokers if not one.fenced]
    return Promise(
        sorted(map(len, racks)),
        sorted(max(used.values()) for used in racks),
        sum(state[BrokerId(replica)].fenced for replicas in placed for replica in replicas),
        max(active) - min(active),
    )


def ours(case: Case) -> Assignments | None:
    try:
        return place(case.brokers, case.partitions, case.factor, random.Random(case.seed))
    except KafkaError:
        return None


def theirs(answer: str) -> Assignments | None:
    return None if answer == "refused" else [[int(one) for one in part.split(",")] for part in answer.split()]


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError at the first difference."""
    jars.fetch()
    rng = random.Random(SEED)
    cases = [random_case(rng) for _ in range(CASES)]
    command = ["java", "-cp", jars.classpath(), str(JAVA / "Placement.java")]
    given = "".join(f"{case.line()}\n" for case in cases)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300)
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} lines: {done.stderr[-2000:]}"
    refused = more_even = 0
    for case, answer in zip(cases, answers, strict=True):
        placed, kafkas = ours(case), theirs(answer)
        if placed is None or kafkas is None:
            assert placed is kafkas, f"{case.line()}: Kafka's answer {answer}, ours {placed}"
            refused += 1
            continue
        mine, other = promise(case, placed), promise(case, kafkas)
        assert mine[:2] == other[:2], f"{case.line()}: Kafka promises {other}, we {mine}"
        assert mine.fenced <= other.fenced, f"{case.line()}: Kafka promises {other}, we {mine}"
        assert mine.leaders_apart <= max(1, other.leaders_apart), f"{case.line()}: Kafka promises {other}, we {mine}"
        more_even += mine.leaders_apart < other.leaders_apart
    return f"{len(cases)} clusters, {refused} refused, as many racks as Kafka's class, {more_even} times more even"
