"""What it costs to decrypt a private key (PKCS 8): the key says so itself, and a node decrypts it in its event loop.

    EncryptedPrivateKeyInfo   { algorithm { PBES2 { PBKDF2 { salt, iterations, ... }, cipher } }, key }
                              { algorithm { PBES2 { scrypt { salt, N, r, p, ... }, cipher } }, key }
                              { algorithm { an older one { salt, iterations } }, key }

OpenSSL has no bound. A store can be text in a dynamic configuration, so without one here, an administrator of
configurations could stop a broker for hours.

Source: RFC 5208, RFC 8018, RFC 7914.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from typing import Final

from heirlog.security.der import Element, NotReadable, elements

ITERATIONS_MAX: Final = 1_000_000
"""A quarter of a second. openssl has 2,048 and Java 10,000 unless one asks for more."""
SCRYPT_WORK_MAX: Final = 1 << 24
"""N * r * p; openssl has 2 ** 17 unless one asks for more."""
_INTEGER: Final = 0x02
_CONSTRUCTED: Final = 0x20
_SCRYPT: Final = "2b06010401da47040b"
"""1.3.6.1.4.1.11591.4.11."""
_DEPTH_MAX: Final = 10
"""Elements within elements; a key has five."""
_BEGIN: Final = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
_END: Final = "-----END"


def check_cost(pem: str) -> None:
    """Of each encrypted key in the text. Raises NotReadable."""
    _, *blocks = pem.split(_BEGIN)
    for block in blocks:
        body, end, _ = block.partition(_END)
        if not end:
            continue  # OpenSSL reads no key there
        try:
            (whole,) = elements(a2b_base64(body))
            algorithm, *_ = whole.children()
        except (Base64Error, ValueError):
            raise NotReadable("an encrypted private key in it is damaged") from None
        parts = list(_primitives(algorithm))
        numbers = [int.from_bytes(part.inside, "big") for part in parts if part.tag == _INTEGER]
        is_scrypt = any(part.whole[2:].hex() == _SCRYPT for part in parts)
        # the salt's length is no number, and that of the key is a small one
        cost, limit = (
            (scrypt_work(numbers), SCRYPT_WORK_MAX) if is_scrypt else (max(numbers, default=0), ITERATIONS_MAX)
        )
        if cost > limit:
            raise NotReadable(
                f"an encrypted private key in it takes {shown(cost)} iterations to decrypt; at most {limit} are taken: "
                "encrypt it with fewer (openssl pkcs8 -topk8 -iter 10000)"
            )


def scrypt_work(numbers: Iterable[int]) -> int:
    """Their product, or a part of it that is too much: there may be very many numbers, and large ones."""
    work = 1
    for number in numbers:
        work *= number
        if work > SCRYPT_WORK_MAX:
            break
    return work


def shown(iterations: int) -> str:
    """The number may have thousands of digits, which Python refuses to write."""
    return str(iterations) if iterations < 1 << 64 else "very many"


def _primitives(element: Element, depth: int = 0) -> Iterator[Element]:
    if not element.tag & _CONSTRUCTED:
        yield element
        return
    if depth == _DEPTH_MAX:
        raise NotReadable("an encrypted private key in it is damaged")
    for child in element.children():
        yield from _primitives(child, depth + 1)
