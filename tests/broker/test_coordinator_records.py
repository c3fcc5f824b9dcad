"""How a coordinator's record holds its messages."""

from __future__ import annotations

import pytest

from heirlog.broker.coordinator_records import decode_message, decode_value, encode_key, encode_value, prefix_of
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.records import GroupMetadataKey, ShareGroupMetadataValue


def test_a_key_begins_with_the_type_of_the_record() -> None:
    key = encode_key(2, GroupMetadataKey(group="g"), 2)
    assert key == b"\0\2\0\1g"
    assert prefix_of(key, "t") == 2
    assert decode_message(GroupMetadataKey, key, 2).group == "g"


def test_a_value_begins_with_its_version_and_a_tombstone_has_none() -> None:
    value = ShareGroupMetadataValue(epoch=3, metadata_hash=4)
    assert decode_value(ShareGroupMetadataValue, encode_value(value, 0), "t") == value
    assert decode_value(ShareGroupMetadataValue, None, "t") is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\x7f\xff"])
def test_a_value_without_a_known_version_is_malformed(value: bytes) -> None:
    with pytest.raises(Malformed, match=r"a record of t is shorter|not version 32767"):
        decode_value(ShareGroupMetadataValue, value, "t")
