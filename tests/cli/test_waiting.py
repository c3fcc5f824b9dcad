from __future__ import annotations

import pytest

from heirlog.cli import waiting
from heirlog.cli.waiting import Unanswered


def test_what_gets_no_answer_is_named_once_and_what_does_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Unanswered("waiting")
    with question:
        assert question.said() is None, "it may be answered soon"
    monkeypatch.setattr(waiting, "SAID_EVERY_S", 0.0)
    assert question.said() is None
    with question:
        assert [question.said(), question.said()] == ["waiting", None]
    with question:
        assert [question.said(), question.said()] == ["waiting", None], "another outage"
