"""Text forms of ids and addresses."""

from __future__ import annotations

import pytest

from heirlog.protocol.types import Endpoint, endpoint_from_text, uuid_from_text, uuid_text


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [("a:1", Endpoint("a", 1)), ("10.0.0.1:9092", Endpoint("10.0.0.1", 9092)), ("[::1]:65535", Endpoint("::1", 65535))],
)
def test_an_address_is_a_host_and_a_port(text: str, endpoint: Endpoint) -> None:
    assert endpoint_from_text(text) == endpoint
    assert str(endpoint) == text


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:b", "a:65536", "::1:1", "a b:1", "PLAINTEXT://a:1"])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="not of the form host:port"):
        endpoint_from_text(text)


def test_a_uuid_survives_its_text() -> None:
    raw = bytes(range(240, 256))
    assert len(uuid_text(raw)) == 22
    assert uuid_from_text(uuid_text(raw)) == raw


@pytest.mark.parametrize("text", ["", "short", "!" * 22, "A" * 30])
def test_anything_else_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError, match="not a UUID"):
        uuid_from_text(text)
