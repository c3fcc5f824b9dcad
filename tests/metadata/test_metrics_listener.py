"""heirlog.metrics.listener, as server.properties may have it."""

from __future__ import annotations

import pytest

from heirlog.metadata.config_def import ConfigError, StaticConfig, parse_static
from heirlog.protocol.types import Endpoint


def parsed(text: str | None) -> StaticConfig:
    given = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": "C://localhost:1",
        "controller.listener.names": "C",
        "controller.quorum.voters": "1@localhost:1",
    }
    return parse_static(given if text is None else {**given, "heirlog.metrics.listener": text})


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        (None, None),
        ("", None),
        ("127.0.0.1:9404", Endpoint("127.0.0.1", 9404)),
        ("localhost:0", Endpoint("localhost", 0)),
        ("[::1]:9404", Endpoint("::1", 9404)),
    ],
)
def test_it_is_nowhere_or_at_a_host_and_port(text: str | None, endpoint: Endpoint | None) -> None:
    assert parsed(text).metrics_listener == endpoint


@pytest.mark.parametrize("text", [":9404", "9404", "127.0.0.1", "127.0.0.1:70000", "http://127.0.0.1:9404"])
def test_without_a_host_or_a_port_it_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"heirlog\.metrics\.listener: .*127\.0\.0\.1:9404"):
        parsed(text)
