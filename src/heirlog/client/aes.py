"""AES decryption in CBC mode, for key stores of a few kilobytes: the standard library has none.

Slow and not hardened against timing: it opens files of our own, never what comes
from a peer. TLS has its own.

Source: FIPS 197; the tables are computed from the definition.
"""

from __future__ import annotations

BLOCK_BYTES = 16


def _times(a: int, b: int) -> int:
    """The product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def _substitution() -> bytes:
    """The S-box: the inverse in the field, then an affine map."""
    powers = [1]
    while len(powers) < 255:
        powers.append(_times(powers[-1], 3))
    box = bytearray(256)
    for value in range(256):
        inverse = powers[-powers.index(value) % 255] if value else 0
        mapped = 0x63
        for shift in range(5):
            mapped ^= (inverse << shift | inverse >> (8 - shift)) & 0xFF
        box[value] = mapped
    return bytes(box)


class Aes:
    """key: 16, 24 or 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._box = _substitution()
        inverse = bytearray(256)
        for value, mapped in enumerate(self._box):
            inverse[mapped] = value
        self._inverse_box = bytes(inverse)
        self._products = [bytes(_times(value, by) for value in range(256)) for by in (14, 11, 13, 9)]
        self._round_keys = self._expanded(key)

    def decrypt_cbc(self, iv: bytes, data: bytes) -> bytes:
        """Without its padding. Raises ValueError where that is not one: most likely the key is another."""
        if not data or len(data) % BLOCK_BYTES:
            raise ValueError("not a whole number of blocks")
        plain = bytearray()
        before = iv
        for at in range(0, len(data), BLOCK_BYTES):
            block = data[at : at + BLOCK_BYTES]
            plain += bytes(a ^ b for a, b in zip(self.decrypt_block(block), before, strict=True))
            before = block
        padding = plain[-1]
        if not 1 <= padding <= BLOCK_BYTES or plain[-padding:] != bytes([padding]) * padding:
            raise ValueError("the padding is wrong")
        return bytes(plain[:-padding])

    def decrypt_block(self, block: bytes) -> bytes:
        state = _added(block, self._round_keys[-1])
        for number, round_key in enumerate(reversed(self._round_keys[:-1])):
            # rows move right again: column c takes its row r from column c - r
            state = bytes(self._inverse_box[state[(at - 4 * (at % 4)) % 16]] for at in range(16))
            state = _added(state, round_key)
            if number < len(self._round_keys) - 2:
                state = self._unmixed(state)
        return state

    def _unmixed(self, state: bytes) -> bytes:
        by14, by11, by13, by9 = self._products
        out = bytearray()
        for at in range(0, 16, 4):
            a, b, c, d = state[at : at + 4]
            out.append(by14[a] ^ by11[b] ^ by13[c] ^ by9[d])
            out.append(by9[a] ^ by14[b] ^ by11[c] ^ by13[d])
            out.append(by13[a] ^ by9[b] ^ by14[c] ^ by11[d])
            out.append(by11[a] ^ by13[b] ^ by9[c] ^ by14[d])
        return bytes(out)

    def _expanded(self, key: bytes) -> list[bytes]:
        size = len(key) // 4
        words = [key[at : at + 4] for at in range(0, len(key), 4)]
        constant = 1
        for number in range(size, 4 * (size + 7)):
            word = words[-1]
            if number % size == 0:
                word = bytes(self._box[byte] for byte in word[1:] + word[:1])
                word = bytes([word[0] ^ constant]) + word[1:]
                constant = _times(constant, 2)
            elif size > 6 and number % size == 4:
                word = bytes(self._box[byte] for byte in word)
            words.append(_added(words[number - size], word))
        return [b"".join(words[at : at + 4]) for at in range(0, len(words), 4)]


def _added(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
