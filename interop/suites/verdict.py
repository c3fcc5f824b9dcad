"""What the outcomes of a suite mean: compared with those on Apache Kafka and with the reasons for what is left out."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
Outcomes = Mapping[str, str]
"""The name of a test -> passed, failed or skipped."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Of one suite."""

    on_kafka: Outcomes
    reasons: Mapping[str, str]
    """Of the tests that are not asked of heirlog."""
    aside: Mapping[str, str]
    """Why tests do not pass on Apache Kafka either, as they are run here."""

    @property
    def asked(self) -> list[str]:
        """Tests that must pass."""
        return [name for name, outcome in self.on_kafka.items() if outcome == "passed" and name not in self.reasons]

    def missed(self, outcomes: Outcomes) -> list[str]:
        """Tests that had to pass and did not."""
        return [name for name in self.asked if outcomes.get(name) != "passed"]

    def problems(self, outcomes: Outcomes) -> list[str]:
        """Sentences; none if all is as it should be."""
        found = [f"{name} {outcomes.get(name, 'did not run')}, and passes on Kafka" for name in self.missed(outcomes)]
        for name, reason in self.reasons.items():
            if self.on_kafka.get(name) != "passed":
                found.append(f"{name} has a reason ({reason}) and does not pass on Kafka either: remove the reason")
            elif outcomes.get(name) == "passed":
                found.append(f"{name} passes and has a reason not to ({reason}): remove the reason")
        found += [f"{name} passes on Kafka: it is not aside" for name in self.aside if name in self.asked]
        found += [
            f"{name} is in no list: run interop/suites/record.py" for name in outcomes if name not in self.on_kafka
        ]
        return found


def run_patiently(
    run: Callable[[Sequence[str]], Outcomes], missed: Callable[[Outcomes], list[str]], reruns: int = 1
) -> tuple[Outcomes, int]:
    """What each test came to in the end, and how many were run again.

    run: runs these tests, or all where none is named. missed: those that should have passed; they are run again, up to
    `reruns` times.
    """
    outcomes = dict(run(()))
    failed = again = missed(outcomes)
    for _ in range(reruns):
        if failed:
            outcomes.update(run(failed))
            failed = missed(outcomes)
    return outcomes, len(again)


def not_passed(outcomes: Outcomes) -> list[str]:
    return [name for name, outcome in outcomes.items() if outcome != "passed"]


def expectation(client: str, suite: str) -> Expectation:
    """From `<client>.json` and `<client>.toml`. In the latter a reason stands over the names of its tests."""
    on_kafka = json.loads((HERE / f"{client}.json").read_text())[suite]
    tables = tomllib.loads((HERE / f"{client}.toml").read_text())

    def named(kind: str) -> dict[str, str]:
        return {name: table["reason"] for table in tables.get(kind, ()) for name in table["tests"].get(suite, ())}

    return Expectation(on_kafka, named("excluded"), named("aside"))
