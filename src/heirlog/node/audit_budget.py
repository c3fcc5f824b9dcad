"""How many lines of the audit log the requests of clients cause, and what is written in place of further ones.

    kind            a user at an address, an API, and whether anything came of the request
    within budget   a line for each request: `BURST_S` seconds' worth at once, then so many per second
    beyond          counted. The first request has a line that says so at once, and then one line in `SUMMARY_MS`
                    has the number of requests, their outcomes and the first names

Each kind has a budget of its own. So requests that are refused hide none that is executed, those of one API none of
another, and no client hides another. Kinds beyond `KINDS_MAX` share one for each API.

Nothing is left out silently. A count is written although no further request comes, and when the node stops. A node that
is killed loses the last count, but not that there is one: its first line is in the log already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from heirlog.env import Cancel
from heirlog.rates import TokenBucket

EXECUTED_PER_S: Final = 10
REFUSED_PER_S: Final = 1
BURST_S: Final = 10
SUMMARY_MS: Final = 10_000
NAMES_MAX: Final = 500
"""In the line of what was left out."""
KINDS_MAX: Final = 1000
ANY_CLIENT: Final = "..."
_LOOK_AGAIN_MS: Final = 1000


class AuditKind(NamedTuple):
    principal: str
    host: str
    api: str
    is_executed: bool

    @property
    def lines_per_s(self) -> int:
        return EXECUTED_PER_S if self.is_executed else REFUSED_PER_S


@dataclass(slots=True)
class LeftOut:
    requests: int = 0
    names: dict[str, None] = field(default_factory=dict)
    """In the order in which they came."""
    outcome: Counter[str] = field(default_factory=Counter)

    def add(self, names: Iterable[str], outcome: Mapping[str, int]) -> None:
        self.requests += 1
        self.outcome.update(outcome)
        for name in names:
            if len(self.names) <= NAMES_MAX:
                self.names[name] = None

    def shown(self) -> list[str]:
        """`...` stands for further names."""
        names = list(self.names)
        return names if len(names) <= NAMES_MAX else [*names[:NAMES_MAX], "..."]


class AuditBudget:
    def __init__(
        self,
        now_ms: Callable[[], int],
        call_later: Callable[[int, Callable[[], None]], Cancel],
        write: Callable[[AuditKind, LeftOut], None],
    ) -> None:
        """write: gets what was left out."""
        self._now_ms = now_ms
        self._call_later = call_later
        self._write = write
        self._buckets: dict[AuditKind, TokenBucket] = {}
        self._left_out: dict[AuditKind, LeftOut] = {}
        """Of kinds that are beyond their budget, since the last line that said so."""
        self._looked_ms: int | None = None

    def allows(self, kind: AuditKind) -> bool:
        """Whether one more request of this kind has a line of its own."""
        now_ms = self._now_ms()
        bucket, _ = self._of(kind, now_ms)
        if bucket.left(kind.lines_per_s, now_ms) < 1:
            return False
        bucket.take(1, kind.lines_per_s, now_ms)
        return True

    def leave_out(self, kind: AuditKind, names: Iterable[str], outcome: Mapping[str, int]) -> None:
        """A request that has no line of its own."""
        _, kind = self._of(kind, self._now_ms())
        known = self._left_out.get(kind)
        if known is not None:
            known.add(names, outcome)
            return
        if not self._left_out:
            self._call_later(SUMMARY_MS, self._summarise)
        self._left_out[kind] = LeftOut()
        first = LeftOut()
        first.add(names, outcome)
        self._write(kind, first)

    def write_all(self) -> None:
        """The node stops."""
        for kind, found in self._left_out.items():
            if found.requests:
                self._left_out[kind] = LeftOut()
                self._write(kind, found)

    def _summarise(self) -> None:
        self._left_out = {kind: found for kind, found in self._left_out.items() if found.requests}
        self.write_all()
        if self._left_out:
            self._call_later(SUMMARY_MS, self._summarise)

    def _of(self, kind: AuditKind, now_ms: int) -> tuple[TokenBucket, AuditKind]:
        bucket = self._buckets.get(kind)
        if bucket is not None:
            return bucket, kind
        if len(self._buckets) >= KINDS_MAX:
            self._forget_quiet_kinds(now_ms)
        if len(self._buckets) >= KINDS_MAX:
            kind = kind._replace(principal=ANY_CLIENT, host=ANY_CLIENT)
            bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = TokenBucket(samples=BURST_S)
        return bucket, kind

    def _forget_quiet_kinds(self, now_ms: int) -> None:
        if self._looked_ms is not None and now_ms - self._looked_ms < _LOOK_AGAIN_MS:
            return
        self._looked_ms = now_ms
        for kind, bucket in list(self._buckets.items()):
            if kind not in self._left_out and bucket.left(kind.lines_per_s, now_ms) >= BURST_S * kind.lines_per_s:
                del self._buckets[kind]
