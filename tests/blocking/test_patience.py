"""What is told when there is no time left."""

from __future__ import annotations

import pytest

from heirlog.blocking.patience import Patience


def test_a_try_that_the_end_of_the_time_cut_short_does_not_hide_what_failed_before_it() -> None:
    patience = Patience(0.05)
    with pytest.raises(ConnectionError, match="the last but one"):
        patience.again(ConnectionError("the first"))
        patience.again(ConnectionError("the last but one"))
        while True:
            patience.again(TimeoutError("no time"))
    with pytest.raises(ConnectionError, match="the last but one"), patience.explained():
        raise TimeoutError("no time")


def test_where_nothing_else_failed_the_time_is_told_also_after_progress() -> None:
    patience = Patience(30)
    patience.again(ConnectionError("long ago"))
    patience.progress()
    with pytest.raises(TimeoutError), patience.explained():
        raise TimeoutError("no time")
    patience.timeout_s = 0
    patience.progress()
    with pytest.raises(TimeoutError):
        patience.again(TimeoutError("no time"))


def test_other_errors_pass_as_they_are() -> None:
    patience = Patience(30)
    patience.again(ConnectionError("gone"))
    with pytest.raises(ValueError, match="wrong"), patience.explained():
        raise ValueError("wrong")
