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


def test_what_is_waited_for_may_be_known_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []
    question = Unanswered(lambda: f"{len(tries)} tries")
    monkeypatch.setattr(waiting, "SAID_EVERY_S", 0.0)
    with question:
        tries.append("refused")
        assert question.said() == "1 tries"
