from __future__ import annotations

import io

import pytest

from heirlog.cli.progress import batches
from heirlog.spark.pipeline.looking import Look


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return monkeypatch


def test_a_terminal_shows_the_batch_its_tasks_and_what_is_left(patch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    patch.setattr("sys.stderr", terminal)
    with batches("orders", hidden=False) as show:
        assert show is not None
        assert terminal.getvalue() == "", "nothing before the first look"
        show(Look(batch=3, tasks=8, tasks_done=2, left=1200))
        show(Look(batch=4, tasks=0, tasks_done=0, left=None))
    text = terminal.getvalue()
    assert "orders: batch 3, 1200 records left" in text and "2/8" in text
    assert "orders: batch 4 " in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is back"


@pytest.mark.parametrize("hidden", [True, False])
def test_nothing_is_shown_with_json_or_in_a_pipe(patch: pytest.MonkeyPatch, hidden: bool) -> None:
    stderr = Terminal() if hidden else io.StringIO()
    patch.setattr("sys.stderr", stderr)
    with batches("orders", hidden) as show:
        assert show is None
    assert stderr.getvalue() == ""
