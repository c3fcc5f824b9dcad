"""Encrypted private keys that say what it takes to decrypt them, and hold nothing."""

from __future__ import annotations

from heirlog.client.keystore import pem

PBES2, PBKDF2, SCRYPT, AES = "2a864886f70d01050d", "2a864886f70d01050c", "2b06010401da47040b", "60864801650304012a"
PBE_MD5_DES = "2a864886f70d010503"


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content).to_bytes(2, "big")
    return bytes([tag]) + (bytes([len(content)]) if len(content) < 128 else b"\x82" + size) + content


def oid(text: str) -> bytes:
    return der(6, bytes.fromhex(text))


def number(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def key(*algorithm: bytes) -> str:
    return pem("ENCRYPTED PRIVATE KEY", der(0x30, der(0x30, *algorithm), der(4, bytes(64))))


def derived(function: str, *numbers: int) -> str:
    """As PBES2 has it; the salt looks like a large number."""
    parameters = der(0x30, der(4, b"\xff" * 16), *map(number, numbers))
    cipher = der(0x30, oid(AES), der(4, b"\xff" * 16))
    return key(oid(PBES2), der(0x30, der(0x30, oid(function), parameters), cipher))
