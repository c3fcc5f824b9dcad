"""Requests of a producer of transactions whose bytes arrive once more, after they were answered (X18).

A network may deliver a request twice: a client that was answered late has sent it again, or a broker that was paused
reads it after another one has handled it. From transaction.version 2 on an epoch has one transaction, so the second one
gets the same answer or a refusal. Its effect on records and offsets is judged as that of every request.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.client.call import Call
from heirlog.sim.clients.client import Client
from heirlog.sim.history import Finding, History
from heirlog.sim.transaction_rules import Answer, x18_repeated_request_changes_nothing

AFTER_MS = (50, 6000)


class LateRepeats:
    def __init__(self, client: Client, history: History, chance: float) -> None:
        self._client = client
        self._history = history
        self._chance = chance

    def maybe(self, what: str, first: Answer, again: Callable[[], Call[Answer]]) -> None:
        """first: the answer with success. again: sends the same request to the broker of the moment."""
        env = self._client.env
        if not self._chance or env.random.random() >= self._chance:
            return

        def answered(answer: Answer) -> None:
            outcome = "same" if answer.code == first.code else "refused"
            self._history.transaction_counts[f"repeated-{outcome}"] += 1
            broken = x18_repeated_request_changes_nothing(what, first, answer)
            if broken is not None:
                self._history.repeated.append(Finding("X18", broken))

        def send() -> None:
            self._client.driver.run(again(), answered, lambda _: None)

        env.call_later(env.random.randrange(*AFTER_MS), send)
