"""AES against the examples of its standard, and what a wrong key looks like."""

from __future__ import annotations

import pytest

from heirlog.client.aes import Aes

PLAIN = "00112233445566778899aabbccddeeff"


@pytest.mark.parametrize(
    ("key_bytes", "encrypted"),
    [
        (16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
        (24, "dda97ca4864cdfe06eaf70a0ec0d7191"),
        (32, "8ea2b7ca516745bfeafc49904b496089"),
    ],
)
def test_a_block_is_that_of_the_standard(key_bytes: int, encrypted: str) -> None:
    assert Aes(bytes(range(key_bytes))).decrypt_block(bytes.fromhex(encrypted)).hex() == PLAIN


# `printf 'sixteen bytes, and three' | openssl enc -aes-128-cbc -K 00..0f -iv 0f..00`, in hexadecimal
CHAINED = bytes.fromhex("ad3727be0ebbbcea0d64fe49925bc83287f6d29c42d078c80e9aaec0609830aa")


def test_blocks_are_chained_and_padded() -> None:
    cipher = Aes(bytes(range(16)))
    assert cipher.decrypt_cbc(bytes(reversed(range(16))), CHAINED) == b"sixteen bytes, and three"


@pytest.mark.parametrize("data", [b"", CHAINED[:-1], CHAINED[:16], CHAINED[::-1]])
def test_what_was_not_encrypted_with_this_key_has_no_padding(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"padding|blocks"):
        Aes(bytes(range(16))).decrypt_cbc(bytes(16), data)
