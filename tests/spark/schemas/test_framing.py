from __future__ import annotations

import pytest

from heirlog.spark.schemas.framing import BadValue, Framed, message_path, unframed


def test_the_id_is_where_the_serializer_put_it() -> None:
    assert unframed(b"\0\0\0\0\7value", "confluent") == Framed(7, b"value")
    assert unframed(b"\0" + bytes(7) + b"\7value", "apicurio") == Framed(7, b"value")
    assert unframed(b"value", "none") == Framed(None, b"value")
    header = {"key": "apicurio.value.globalId", "value": bytes(7) + b"\7"}
    assert unframed(b"value", "headers", [{"key": "x", "value": None}, header]) == Framed(7, b"value")


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b"\1\0\0\0\7value"])
def test_a_value_without_the_framing_is_bad(value: bytes) -> None:
    with pytest.raises(BadValue, match="does not begin with a zero byte and a schema id of 4 bytes"):
        unframed(value, "confluent")


@pytest.mark.parametrize("headers", [None, [], [{"key": "apicurio.value.contentId", "value": b"7"}]])
def test_headers_without_an_id_are_bad(headers: list[dict[str, bytes | str | None]] | None) -> None:
    with pytest.raises(BadValue, match=r"none of the headers apicurio\.value\.contentId"):
        unframed(b"value", "headers", headers)


def test_the_path_to_a_message_type_is_read() -> None:
    assert message_path(b"\0value") == ((0,), b"value")
    assert message_path(b"\4\2\6value") == ((1, 3), b"value")
    assert message_path(b"\2\xd0\x0fvalue") == ((1000,), b"value")


@pytest.mark.parametrize("payload", [b"", b"\4\2", b"\x80", b"\xff" * 6, b"\1", b"\xfe\x7f"])
def test_a_damaged_path_is_bad(payload: bytes) -> None:
    with pytest.raises(BadValue, match="path to its message type"):
        message_path(payload)
