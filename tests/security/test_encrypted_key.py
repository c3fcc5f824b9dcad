from __future__ import annotations

import shutil
import subprocess
import time
from itertools import repeat

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from local.authorities import issued
from security.making_keys import PBE_MD5_DES, PBKDF2, SCRYPT, der, derived, key, number, oid

from heirlog.security.der import NotReadable
from heirlog.security.encrypted_key import ITERATIONS_MAX, SCRYPT_WORK_MAX, check_cost, scrypt_work
from heirlog.tls.contexts import STORE_MAX_BYTES


@pytest.mark.parametrize(
    "text",
    [
        issued("node"),
        derived(PBKDF2, ITERATIONS_MAX, 32),
        derived(SCRYPT, 1 << 14, 8, 1),
        "",
        key(oid(PBE_MD5_DES), der(0x30, der(4, bytes(8)), number(2048))),
    ],
    ids=["not encrypted", "PBKDF2", "scrypt", "nothing", "an older algorithm"],
)
def test_a_usual_key_is_taken(text: str) -> None:
    check_cost(text)


@pytest.mark.parametrize(
    "text",
    [
        derived(PBKDF2, ITERATIONS_MAX + 1),
        derived(PBKDF2, 2**31 - 1, 32),
        derived(PBKDF2, 1 << 30_000),
        derived(SCRYPT, 1 << 17, 1, 1 << 17),
        key(oid(PBE_MD5_DES), der(0x30, der(4, bytes(8)), number(2**40))),
        issued("node") + derived(PBKDF2, 2**31 - 1),
    ],
    ids=["one more", "hours", "a long number", "scrypt", "an older algorithm", "the second key"],
)
def test_a_key_that_takes_long_is_refused_unread(text: str) -> None:
    with pytest.raises(NotReadable, match=r"takes (\d+|very many) iterations"):
        check_cost(text)


@pytest.mark.parametrize("damaged", ["", "!", "AAAA", "MIAC", "MAA="])
def test_what_is_no_key_is_refused(damaged: str) -> None:
    """OpenSSL might take lengths that this reader does not."""
    with pytest.raises(NotReadable):
        check_cost(f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{damaged}\n-----END ENCRYPTED PRIVATE KEY-----\n")


def test_elements_within_elements_are_refused_beyond_a_depth() -> None:
    """A recursion without a bound would end the node."""
    nested = b""
    for _ in range(3000):
        nested = der(0x30, nested)
    with pytest.raises(NotReadable, match="damaged"):
        check_cost(key(nested))


def test_numbers_are_multiplied_only_until_they_are_too_much() -> None:
    """The whole product of the numbers that a store of 1 MiB has room for would take four seconds."""
    assert SCRYPT_WORK_MAX < scrypt_work(repeat(127)) < 127 * SCRYPT_WORK_MAX
    assert scrypt_work([1 << 14, 8, 1]) == 1 << 17


def test_a_store_full_of_beginnings_is_read_once() -> None:
    """What is behind each beginning would otherwise be searched for an end: minutes for a store of 1 MiB."""
    begin = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
    began_s = time.process_time()
    check_cost(begin * (STORE_MAX_BYTES // len(begin)))
    assert time.process_time() - began_s < 10


def test_the_key_of_a_library_is_taken() -> None:
    made = load_pem_private_key(issued("node").encode(), None)
    locked = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")).decode()
    assert "ENCRYPTED" in locked
    check_cost(locked)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("options", [("-iter", "4096"), ("-scrypt",), ("-v1", "PBE-SHA1-3DES")])
def test_the_keys_of_openssl_are_read(options: tuple[str, ...]) -> None:
    made = issued("node").partition("-----BEGIN CERTIFICATE")[0]
    command = ["openssl", "pkcs8", "-topk8", "-passout", "pass:secret", *options]
    done = subprocess.run(command, input=made, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    check_cost(done.stdout)
