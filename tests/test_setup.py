"""`make setup`: where `python -m venv` cannot make an environment, something else does, or the package is named."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "setup.py"


@pytest.fixture
def setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("heirlog_setup", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def python_without_venv(tmp_path: Path) -> str:
    """As on Debian without python3-venv: the module is there and fails after it made half an environment."""
    return program(tmp_path / "python", 'mkdir -p "$3/bin"; echo "ensurepip is not available"; exit 1')


def program(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_without_venv_uv_makes_the_environment(
    setup: ModuleType, python_without_venv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "tools" / "uv", f'test ! -e "$5" && mkdir "$5" && echo "$@" > {tmp_path}/called')
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}{os.pathsep}/bin{os.pathsep}/usr/bin")
    setup.make_environment(tmp_path / "env", python_without_venv)
    assert (tmp_path / "called").read_text().split() == [
        "venv", "--seed", "--python", python_without_venv, str(tmp_path / "env"),
    ]  # fmt: skip


def test_without_venv_and_uv_virtualenv_makes_it(
    setup: ModuleType, python_without_venv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "tools" / "virtualenv", 'mkdir "$3"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}{os.pathsep}/bin")
    monkeypatch.setattr(setup.shutil, "which", lambda name: str(tmp_path / "tools" / name) if name != "uv" else None)
    setup.make_environment(tmp_path / "env", python_without_venv)
    assert (tmp_path / "env").is_dir()


def test_without_any_of_them_the_package_to_install_is_named(
    setup: ModuleType, python_without_venv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(setup.SetupError, match=rf"apt install python{sys.version_info[0]}\.{sys.version_info[1]}-venv"):
        setup.make_environment(tmp_path / "env", python_without_venv)


def test_an_environment_is_up_to_date_only_with_the_stamp_of_its_locks(setup: ModuleType, tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("a==1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".heirlog-dev").write_text(setup.stamp_of(lock))
    assert setup.stamped(tmp_path, "dev", setup.stamp_of(lock))
    lock.write_text("a==2")
    assert not setup.stamped(tmp_path, "dev", setup.stamp_of(lock))
