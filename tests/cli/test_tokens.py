"""How tokens are shown. The commands on a cluster: `tests/clients/test_delegation_tokens.py`."""

from __future__ import annotations

from heirlog.cli.tokens import as_text


def test_an_end_beyond_all_calendars_can_be_shown() -> None:
    assert as_text(1_000_000_000_123) == "2001-09-09T01:46:40.123Z"
    for end_ms in (253_402_300_800_000, 2**63 - 1):
        assert as_text(end_ms) == "after the year 9999"
