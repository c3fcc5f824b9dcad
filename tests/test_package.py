"""What users install: the wheel has the product and nothing else, and says whose it is."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "oauth",
    "security",
    "tls",
    "apis", "blocking", "broker", "cli", "client", "controller", "drill", "local", "metadata", "node", "protocol",
    "raft", "server", "sim", "spark", "storage", "testing",
}  # fmt: skip
MODULES = {
    "__init__.py",
    "__main__.py",
    "bounded_file.py",
    "context.py",
    "ending_signals.py",
    "env.py",
    "failure_log.py",
    "log_levels.py",
    "pending.py",
    "rate_limited_log.py",
    "rates.py",
    "version.py",
}
DATA = {"heirlog/py.typed", "heirlog/spark/log4j2.properties"}
PUBLIC_TESTING = {"__init__.py", "cluster.py", "plugin.py"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, capture_output=True
    )
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def product(wheel: zipfile.ZipFile) -> list[str]:
    return [name for name in wheel.namelist() if ".dist-info/" not in name]


def test_the_wheel_has_the_packages_of_the_product_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in product(wheel)} == {"heirlog", "pyspark_heirlog"}
    names = [name for name in product(wheel) if name.startswith("heirlog/")]
    assert {name.split("/")[1] for name in names} <= PACKAGES | MODULES | {"py.typed"}


def test_the_wheel_has_every_module_of_the_product(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    left_out = modules - set(wheel.namelist())
    assert {name for name in left_out if not name.startswith("heirlog/testing/")} == set()


def test_the_wheel_has_no_catalogue_and_no_program_that_runs_apache_kafka(wheel: zipfile.ZipFile) -> None:
    testing = {name.removeprefix("heirlog/testing/") for name in product(wheel) if name.startswith("heirlog/testing/")}
    assert testing == PUBLIC_TESTING


def test_the_wheel_has_no_files_but_modules_and_the_data_that_they_read(wheel: zipfile.ZipFile) -> None:
    assert {name for name in product(wheel) if not name.endswith(".py")} == DATA


def test_the_wheel_registers_the_command_and_the_pytest_plugin(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    entries = wheel.read(name).decode()
    assert "heirlog = heirlog.cli.main:main" in entries
    assert "heirlog = heirlog.testing.plugin" in entries


def test_the_wheel_names_its_license_its_pages_and_every_supported_python(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    urls = {line.split(",")[0] for line in metadata.get_all("Project-URL", [])}
    assert urls == {"Homepage", "Changelog", "Documentation", "Issues"}
    assert metadata["Requires-Python"] == ">=3.11"
    supported = [name for name in metadata.get_all("Classifier", []) if "Python :: 3." in name]
    assert supported == [f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)]
