"""Files with secrets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from local.authorities import authority

import heirlog.local
from heirlog.local.errors import LocalError
from heirlog.local.secure import close, write_private


def test_a_private_file_takes_the_place_of_what_lies_in_its_way(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    (tmp_path / ".secret.new").symlink_to(elsewhere)
    write_private(tmp_path / "secret", "s")
    assert elsewhere.read_text() == "kept"
    (tmp_path / ".secret.new").write_text("of a writer that was interrupted")
    (tmp_path / ".secret.new").chmod(0o644)
    write_private(tmp_path / "secret", "t")
    assert (tmp_path / "secret").read_text() == "t"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "secret"]


def test_nobody_else_looks_into_the_folder_of_a_closed_cluster(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    close(tmp_path, "SASL_PLAINTEXT", "127.0.0.1:9092")
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_the_certificate_of_a_user_is_no_servers() -> None:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    found = []
    for hosts in ([], ["127.0.0.1"]):
        pem = authority().issue("node", hosts)
        usage = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        found.append(ExtendedKeyUsageOID.SERVER_AUTH in usage.value)
    assert found == [False, True]


def test_without_the_package_for_certificates_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "heirlog.local.certificates", None)
    monkeypatch.delattr(heirlog.local, "certificates", raising=False)
    with pytest.raises(LocalError, match="pip install cryptography"):
        close(tmp_path / "data", "SASL_SSL", "127.0.0.1:9092")
    assert not (tmp_path / "data").exists()
