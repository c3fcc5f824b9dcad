from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

import pytest
from local.authorities import issued

from heirlog.server.certificate_ends import LOOK_AGAIN_S, WARNING_DAYS, CertificateEnds, has_ended

DAY_S = 24 * 3600


@pytest.mark.parametrize("content", [b"", b"\x30\x00", b"\x30\x02\x30\x00", b"\xff" * 100])
def test_a_certificate_whose_end_cannot_be_read_has_ended(content: bytes) -> None:
    """A continued session shows nothing else."""
    assert has_ended(content, 0.0)


def test_a_certificate_is_named_in_the_log_before_and_after_its_end_once_a_day() -> None:
    """`authorities.issued` makes one for two days."""
    pem = issued("node", "127.0.0.1")
    certificate = ssl.PEM_cert_to_DER_cert(pem[pem.index(ssl.PEM_HEADER) :])
    lines: list[tuple[str, str, dict[str, Any]]] = []
    shown = {"CLIENTS": certificate, "BROKEN": b"\x30\x00"}
    now_s = [time.time()]

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        ends = CertificateEnds(
            loop, lambda: shown, lambda level, event, **values: lines.append((level, event, values)), lambda: now_s[0]
        )
        for days in (-WARNING_DAYS - 10, 0, 3):
            now_s[0] = time.time() + days * DAY_S
            ends.look()
        timers = [timer for timer in loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        assert len(timers) == 1 and timers[0].when() - loop.time() <= LOOK_AGAIN_S, "one at a time"

    asyncio.run(scenario())
    found = [(level, event, values["listener"], values["days_left"]) for level, event, values in lines]
    assert found in (
        [("warning", "certificate-ends", "CLIENTS", left), ("error", "certificate-ended", "CLIENTS", 0)]
        for left in (1, 2)
    )
