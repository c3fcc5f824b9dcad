"""`--watch`: a view that is renewed until Ctrl-C.

    a terminal            a table; its last column has the time at which a row changed, for who looks away meanwhile.
                          Where the rows do not fit, those that changed last
    no terminal           a line for each row, then one for each row that changes, with the time
    --json                the same, a JSON object each

A cluster that does not answer, or answers that it cannot say now, does not end the view: that may be what is watched
for. Only the first look must succeed, apart from errors that pass. A view of things with names ends when none is left.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from heirlog.cli.errors import CommandError
from heirlog.cli.render import cell, laid_out
from heirlog.client.retriable import REFRESH_AND_RETRY
from heirlog.protocol.errors import KafkaError

if TYPE_CHECKING:
    from rich.console import Console, Group

Row: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[Any, ...]
Watching = Annotated[bool, typer.Option("--watch", help="Renew the table until Ctrl-C; in a pipe, print what changes.")]
Interval = Annotated[float, typer.Option(min=0.1, help="Seconds between two looks of --watch.")]

WITHIN_S = 3.0
"""For one look: a person must not take an old view for the state of now."""
LOOKS_EMPTY = 2
"""So often in a row nothing must be there before a view ends: a broker that has just started may know nothing yet."""
LINES_LEFT = 4
"""Of a terminal: heading, status, an empty line, the cursor."""


class Watch:
    """What was seen so far. key: the columns that say which row is which; every_s: seconds between two looks.

    ends_with: what is said when no row is left; None: other rows may come, and while_empty is shown until then.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        key: Sequence[str],
        every_s: float,
        ends_with: str | None = None,
        *,
        while_empty: str = "",
    ) -> None:
        self._columns = columns
        self._key = key
        self._every_s = every_s
        self._ends_with = ends_with
        self._while_empty = while_empty
        self._looks_empty = 0
        self._has_seen = False
        self._rows: dict[Key, Row] = {}
        self._changed: dict[Key, datetime] = {}
        self._problem = ""

    def run(self, look: Callable[[], Sequence[Row]], as_json: bool) -> None:
        """Until KeyboardInterrupt. Raises CommandError and KafkaError as the module says, at the end CommandError."""
        if as_json or not sys.stdout.isatty():
            while True:
                self._print_changes(look, as_json)
                self._end_if_empty()
                time.sleep(self._every_s)
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, markup=False)
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                self._take(look)
                live.update(self._view(console), refresh=True)
                self._end_if_empty()
                time.sleep(self._every_s)

    def _take(self, look: Callable[[], Sequence[Row]]) -> tuple[list[Key], list[Key]]:
        """Which rows are new or changed, and which are gone."""
        try:
            found = {tuple(row[name] for name in self._key): row for row in look()}
        except (OSError, KafkaError, CommandError) as error:
            passes = isinstance(error, OSError) or (isinstance(error, KafkaError) and error.code in REFRESH_AND_RETRY)
            if not (passes or self._has_seen):
                raise
            self._problem = str(error)
            return [], []
        is_first, self._has_seen = not self._has_seen, True
        self._problem = ""
        self._looks_empty = 0 if found else self._looks_empty + 1
        changed = [key for key, row in found.items() if self._rows.get(key) != row]
        gone = [key for key in self._rows if key not in found]
        now = datetime.now(UTC)
        # of rows that were there from the beginning nothing is known
        self._changed |= dict.fromkeys([] if is_first else changed, now)
        for key in gone:
            self._changed.pop(key, None)
        self._rows = found
        return changed, gone

    def _end_if_empty(self) -> None:
        if self._ends_with is not None and self._looks_empty >= LOOKS_EMPTY:
            raise CommandError(self._ends_with)

    # without a terminal

    def _print_changes(self, look: Callable[[], Sequence[Row]], as_json: bool) -> None:
        problem = self._problem
        before, is_first = self._rows, not self._has_seen
        changed, gone = self._take(look)
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._problem and self._problem != problem:
            print(f"heirlog: {at} {self._problem}; still watching", file=sys.stderr, flush=True)
        if is_first and self._has_seen and not self._rows and self._while_empty:
            print(f"heirlog: {at} {self._while_empty}; still watching", file=sys.stderr, flush=True)
        for row, is_gone in [*((self._rows[key], False) for key in changed), *((before[key], True) for key in gone)]:
            if as_json:
                print(json.dumps({"at": at, "deleted": is_gone, **row}), flush=True)
            else:
                print(f"{at}  {self._line(row)}{'  DELETED' if is_gone else ''}", flush=True)

    def _line(self, row: Row) -> str:
        return "  ".join(f"{heading} {cell(row[name])}" for name, heading in self._columns.items())

    # on a terminal

    def _view(self, console: Console) -> Group:
        from rich.console import Group
        from rich.text import Text

        # the keys that changed last come first, where not all have room
        room = max(1, console.height - LINES_LEFT)
        shown = sorted(self._rows, key=self._age)[:room]
        rows = [{**self._rows[key], "changed": self._when(key)} for key in self._rows if key in set(shown)]
        lines = laid_out({**self._columns, "changed": "Changed"}, rows, console.width)[: room + 1]
        status = f"{len(self._rows) - len(shown)} more; " if len(shown) < len(self._rows) else ""
        if not self._rows and self._while_empty:
            status += f"{self._while_empty}; "
        status += self._problem or f"{datetime.now(UTC):%H:%M:%S} UTC, every {self._every_s:g} s; Ctrl-C ends"
        return Group(*lines, Text(), Text(status, "bold red" if self._problem else "dim"))

    def _age(self, key: Key) -> float:
        at = self._changed.get(key)
        return 0.0 if at is None else -at.timestamp()

    def _when(self, key: Key) -> str:
        at = self._changed.get(key)
        return "-" if at is None else f"{at:%H:%M:%S}"
