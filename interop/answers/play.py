"""One random sequence after another on three nodes, for a limited time, and what differs.

    python interop/run.py "answers beside"                 a new seed, which is printed
    ANSWERS_SEED=123 python interop/run.py "answers ..."   the same sequences again
    ANSWERS_SEED=123/45,67 python interop/run.py "answers" only the sequences 45 and 67 of them
    ANSWERS_OF="share groups" ...                          only sequences of one family (`ONLY`)
    ANSWERS_SECONDS=200 ANSWERS_SEQUENCES=1000 ...         for how long, and how many at most
    ANSWERS_WORN=1 ...                                     transactional ids have used up nearly all of their epochs

A new seed may find a difference that was never seen before: that is its purpose. So that a finding in unchanged code
does not stop other changes, `.ci/run` repeats a seed that was clean, and its first ANSWERS_SEQUENCES sequences only. It
should draw a new one as soon as less than one new kind of difference in 300 sequences is found. When this was last
measured, 215 sequences of three seeds found five, all of which are mended or named.

Each sequence (`sequence.py`) has topics, groups and producers of its own, and leaves nothing behind.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable

import jars

from answers import two_phase_commit
from answers.deviations import DEVIATIONS, examples_of, explained, rowless
from answers.sequence import Sequence
from answers.shape import kind_of
from answers.three_nodes import three_nodes

SECONDS = 60
SHOWN = 700
"""Characters."""
SHOWN_OF_REQUEST = 8


def _by_request(found: Iterable[tuple[int, str, str]]) -> list[str]:
    """Each request in which kinds of difference were first seen, with all of them."""
    lines: dict[str, list[str]] = {}
    for times, request, difference in found:
        lines.setdefault(request, []).append(f"    {times} times {difference}")
    return [line for request, differing in lines.items() for line in (request, *differing[:SHOWN_OF_REQUEST])]


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError with every kind of difference that has no name."""
    jars.fetch()
    seed, _, only = (os.environ.get("ANSWERS_SEED") or str(secrets.randbelow(10**6))).partition("/")
    print(f"interop: answers beside Apache Kafka's: ANSWERS_SEED={seed}", flush=True)
    unexplained: dict[tuple[str, str, str, str], tuple[int, str, str]] = {}
    used: set[str] = set()
    worn = os.environ.get("ANSWERS_WORN") == "1"
    with three_nodes(worn=worn) as table:
        until = time.monotonic() + float(os.environ.get("ANSWERS_SECONDS", SECONDS))
        chosen = [int(number) for number in only.split(",") if number]
        at_most = int(os.environ.get("ANSWERS_SEQUENCES", "1000000"))
        count = 0
        for number in chosen or range(at_most):
            if not chosen and time.monotonic() > until:
                break
            identity = f"{seed}/{number}"
            sequence = Sequence(table, identity)
            if number == 0 and not chosen:
                sequence.play([*two_phase_commit.examples(), *examples_of()])
            else:
                sequence.play()
            for difference in sequence.differences:
                if (deviation := explained(difference)) is not None:
                    used.add(deviation.name)
                    continue
                kind = (
                    difference.plan.name,
                    kind_of(difference.path),
                    str(difference.theirs)[:60],
                    str(difference.ours)[:60],
                )
                first = (
                    f"{identity}: {str(difference.plan)[:SHOWN]}",
                    f"{difference.path}\n        Kafka   {str(difference.theirs)[:SHOWN]}\n"
                    f"        heirlog {str(difference.ours)[:SHOWN]}",
                )
                times, *seen = unexplained.get(kind, (0, *first))
                unexplained[kind] = (times + 1, *seen)
            count += 1
            if chosen:
                print("\n".join(sequence.log))
    lines = _by_request(unexplained.values())
    if not chosen:
        lines += [
            f"deviation never seen: {each.name}" for each in DEVIATIONS if each.name not in used and not each.by_chance
        ]
    lines += [f"deviation without a row in docs/compatibility.md: {name}" for name in rowless()]
    summary = f"seed {seed}: {count} sequences, {table.answers} answers, {table.noise} fields differ in the control"
    summary += f" ({', '.join(f'{name} {count}' for name, count in table.noisy.most_common(5))})" if table.noise else ""
    repeat = f"repeat one with ANSWERS_SEED={seed}/NUMBER, all with ANSWERS_SEED={seed} ANSWERS_SEQUENCES={count}"
    assert not lines, f"{summary}, {len(unexplained)} kinds of difference without a name ({repeat}):\n" + "\n".join(
        lines
    )
    counted = "".join(f", {count} {what}" for what, count in sorted(table.played.items()))
    return f"{summary}, {len(used)} named deviations seen{counted}"
