"""`make setup`: where `python -m venv` cannot make an environment, something else does, or the package is named."""

from __future__ import annotations

import importlib.util
import os
import subprocess
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


def test_an_environment_is_up_to_date_only_with_the_stamp_of_its_locks(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("a==1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".heirlog-dev").write_text(setup.stamp_of(lock))
    assert setup.stamped(tmp_path, "dev", setup.stamp_of(lock))
    version = sys.version.replace(".", "-")
    monkeypatch.setattr(sys, "version", version)
    assert setup.stamped(tmp_path, "dev", setup.stamp_of(lock)), "another patch level is no other Python"
    lock.write_text("a==2")
    assert not setup.stamped(tmp_path, "dev", setup.stamp_of(lock))


def test_an_environment_of_another_python_is_made_anew(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `PYTHON=python3.11 make setup` would go on with the Python of before and call it 3.11."""
    made: list[Path] = []
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "stamp_of", lambda *files: "stamp")
    monkeypatch.setattr(setup, "run", lambda *command: None)
    monkeypatch.setattr(setup, "make_environment", lambda directory, python: made.append(directory))
    program(tmp_path / ".venv" / "bin" / "python", f'exec {sys.executable} "$@"')
    setup.set_up_tree("runtime")
    assert made == [] and (tmp_path / ".venv" / ".heirlog-runtime").read_text() == "stamp"
    (tmp_path / ".venv" / ".heirlog-runtime").unlink()
    major, minor = sys.version_info[:2]
    monkeypatch.setattr(setup.sys, "version_info", (major, minor + 1))
    setup.set_up_tree("runtime")
    assert made == [tmp_path / ".venv"]


def test_an_optimised_build_of_the_same_version_is_taken(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    major, minor = sys.version_info[:2]
    found = {
        folder: program(tmp_path / folder / f"python{major}.{minor}", body)
        for folder, body in (
            ("older", "exit 1"),
            ("slow", f'exec {sys.executable} "$@"'),
            ("without-venv", f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"'),
            ("fast", f'exec {sys.executable} "$@"'),
        )
    }
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / folder) for folder in found))
    monkeypatch.delenv("PYTHON", raising=False)
    monkeypatch.setattr(setup, "is_optimised", lambda python: python in (found["without-venv"], found["fast"]))
    assert setup.fastest_build() == found["fast"]
    monkeypatch.setattr(setup, "is_optimised", lambda python: False)
    assert setup.fastest_build() == sys.executable
    monkeypatch.setattr(setup, "is_optimised", lambda python: python != sys.executable)
    monkeypatch.setenv("PYTHON", sys.executable)
    assert setup.fastest_build() == sys.executable, "PYTHON is what a person chose"


def test_builds_of_distributions_and_those_that_say_so_are_optimised(setup: ModuleType, tmp_path: Path) -> None:
    for prefix, options, optimised in (
        ("/usr", "", True),
        ("/home/a/.pyenv/versions/3.11.7", "--enable-shared", False),
        ("/home/a/.pyenv/versions/3.11.7", "--enable-optimizations", True),
    ):
        built = f"sys.base_prefix = {prefix!r}; sysconfig.get_config_vars()['CONFIG_ARGS'] = {options!r}"
        python = program(tmp_path / "python", f'exec {sys.executable} -c "import sys, sysconfig; {built}; $2"')
        assert setup.is_optimised(python) is optimised, (prefix, options)


def test_without_network_the_first_line_says_so(setup: ModuleType, tmp_path: Path) -> None:
    program(
        tmp_path / "bin" / "python", "echo 'WARNING: Retrying after connection broken by ...'; echo 'ERROR: No'; exit 1"
    )
    with pytest.raises(
        setup.SetupError, match=r"(?s)^no package index could be reached.*\nsetup: .*WARNING: .*\nERROR: No"
    ):
        setup.pip_install(tmp_path, "x")


def test_ctrl_c_is_one_line(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "set_up_tree", interrupted)
    assert setup.main(["runtime"]) == 130
    assert capsys.readouterr().err.splitlines() == [
        "setup: stopped before the environment was complete; the next run completes it"
    ]


PYTHON_SCRIPT = SCRIPT.with_name("python")


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ({"python3": "(3, 15)", "python3.12": "(3, 12)"}, "python3.12"),
        ({"python3": "(3, 10)", "python": "(3, 15)"}, "python"),
        ({"python3": "(3, 10)"}, None),
    ],
)
def test_a_supported_python_is_taken_before_a_newer_one(
    tmp_path: Path, versions: dict[str, str], chosen: str | None
) -> None:
    pretended = (
        'case "$1" in -c) exec {python} -c "import sys; sys.version_info = {version}; $2";; esac; echo {name} "$@"'
    )
    for name, version in versions.items():
        program(tmp_path / name, pretended.format(python=sys.executable, version=version, name=name))
    ran = subprocess.run(
        ["/bin/sh", PYTHON_SCRIPT, "setup.py"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == ((1, "") if chosen is None else (0, f"{chosen} setup.py\n"))
    if chosen is None:
        assert "needs Python 3.11 to 3.14 and found none" in ran.stderr


def test_a_python_that_was_named_and_does_not_fit_is_refused() -> None:
    ran = subprocess.run(
        ["/bin/sh", PYTHON_SCRIPT, "setup.py"], env={"PYTHON": "/bin/false"}, capture_output=True, text=True
    )
    assert ran.returncode == 1 and "PYTHON=/bin/false is no Python 3.11 or newer" in ran.stderr
