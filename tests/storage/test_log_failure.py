from __future__ import annotations

import pytest

from heirlog.storage.log_failure import LogFailure

FIRST = OSError(5, "Input/output error")
SECOND = OSError(28, "No space left on device")


def test_a_working_log_passes_the_check_and_reports_nothing() -> None:
    reported: list[OSError] = []
    failure = LogFailure(reported.append)
    failure.background_done(None)
    failure.check()
    assert failure.error is None and reported == []


def test_the_first_failure_is_final_and_reported_once() -> None:
    reported: list[OSError] = []
    failure = LogFailure(reported.append)
    failure.background_done(FIRST)
    failure.background_done(SECOND)
    failure.background_done(None)
    assert failure.error is FIRST and reported == [FIRST]
    with pytest.raises(OSError) as raised:
        failure.check()
    assert raised.value is FIRST


def test_the_failure_is_set_before_it_is_reported() -> None:
    seen: list[OSError | None] = []
    failure = LogFailure(lambda error: seen.append(failure.error))
    failure.background_done(FIRST)
    assert seen == [FIRST]


def test_a_detached_log_cannot_fail_any_more() -> None:
    reported: list[OSError] = []
    failure = LogFailure(reported.append)
    failure.detach()
    failure.background_done(FIRST)
    failure.check()
    assert failure.is_detached and failure.error is None and reported == []


def test_a_failure_before_the_detachment_stays() -> None:
    failure = LogFailure(lambda error: None)
    failure.background_done(FIRST)
    failure.detach()
    with pytest.raises(OSError):
        failure.check()
