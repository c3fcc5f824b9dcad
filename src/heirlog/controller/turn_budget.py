"""How much of the controller's work one turn of the event loop does.

    records appended in this turn
        below the limit       a client's change is handled at once
        limit reached         it waits, and so does every change that comes after it
    the next turn             one part of a divided change, then one change that waits; more while below the limit

A change of 2,000 partitions takes a tenth of a second. When ten clients send one each, all ten are ready to be read in
one turn. Handled in it, they would delay heartbeats, and the fetches of the other voters, by the time of all ten: after
controller.quorum.fetch.timeout.ms the voters elect another controller. Between two turns the event loop serves those.

A change waits *before* it reads the image. Once it is handled, its records are appended at once; so what its handler
has read is what they are applied to. In each turn one change is handled even if the other kind has used up the limit:
neither a broker with very many partitions nor many clients can keep the others out.

Requests of brokers (heartbeats, registrations, ISR changes) do not wait here. What they change beyond one turn is
divided (`turns.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from heirlog.env import Env

RECORDS_PER_TURN: Final = 2_000
"""Beyond them a turn begins no further change."""


class TurnBudget:
    def __init__(self, env: Env) -> None:
        self._env = env
        self._appended = 0
        self._is_turn_expected = False
        self._parts: deque[Callable[[], None]] = deque()
        self._changes: deque[Callable[[], None]] = deque()

    @property
    def is_used_up(self) -> bool:
        """Whether a change that comes now has to wait: also for those that wait already."""
        return bool(self._changes) or self._appended >= RECORDS_PER_TURN

    def appended(self, records: int) -> None:
        """So many records were appended in this turn."""
        self._appended += records
        self._expect_turn()

    def continue_later(self, part: Callable[[], None]) -> None:
        """Run the next part of a divided change in a later turn."""
        self._parts.append(part)
        self._expect_turn()

    def wait(self, change: Callable[[], None]) -> None:
        """Handle a client's change in a later turn, after those that wait already."""
        self._changes.append(change)
        self._expect_turn()

    def _expect_turn(self) -> None:
        if not self._is_turn_expected:
            self._is_turn_expected = True
            self._env.call_later(0, self._turn)

    def _turn(self) -> None:
        self._is_turn_expected = False
        self._appended = 0
        for waiting in (self._parts, self._changes):
            # what these add comes in the turn after this one
            for position in range(len(waiting)):
                if position and self._appended >= RECORDS_PER_TURN:
                    break
                waiting.popleft()()
        if self._parts or self._changes:
            self._expect_turn()
