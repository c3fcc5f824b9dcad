from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest

from heirlog.protocol import checksum


def test_the_check_value_of_the_polynomial_comes_out() -> None:
    assert checksum.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("size", [0, 1, 7, 4096, 100_003])
def test_it_is_what_the_package_computes_also_of_views(size: int) -> None:
    data = memoryview(bytearray(range(256)) * (size // 256 + 1))[:size]
    assert checksum.crc32c(data) == package.crc32c(data)


def test_the_package_is_used_where_its_extension_module_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksum, "EXTENSION", "crc32c._elsewhere")
    assert checksum._load()(b"123456789") == 0xE3069283


HEAVY = ["importlib.metadata", "email", "typer", "rich", "confluent_kafka", "cramjam", "heirlog.controller.controller"]


def test_a_node_imports_neither_what_the_package_drags_in_nor_what_only_clients_need() -> None:
    code = f"import sys, heirlog.server.main; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
