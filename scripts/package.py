"""make package: build the sdist and the wheel, install each on every supported Python of this machine, and try it.

    dist/*.tar.gz  --pip install-->  a clean environment for each Python  -->  tried from an empty folder
    dist/*.whl     --pip install-->  the same

What is in the wheel, tests/test_package.py knows; here is what only an installation shows: that pip finds every
dependency (its newest version, as for a user), what `pip show` prints, that every module can be imported although the
wheel leaves some out, that shells complete commands, and that the commands of README.md do what they should.
Nothing of this checkout is on the path meanwhile.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import setup

DIST = setup.ROOT / "dist"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
AT_ONCE = 2
EXTRAS = (
    "aiokafka",
    "confluent_kafka",
    "cryptography",
    "jwt",
    "numba",
    "numpy",
    "pandas",
    "psutil",
    "py4j",
    "pyarrow",
    "pyspark",
    "pytest",
)
"""What modules may want that only an extra, or a user's own test environment, installs."""

IMPORT_ALL = f"""
import importlib, pkgutil, heirlog
for module in pkgutil.walk_packages(heirlog.__path__, "heirlog."):
    if module.name != "heirlog.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {EXTRAS!r}:
                raise
"""
COMPLETION = """
export HOME=$PWD
heirlog --show-completion | grep -q _heirlog_completion || { echo "--show-completion printed no script"; exit 1; }
heirlog --install-completion >/dev/null
source .bash_completions/heirlog.sh
COMP_WORDS=(heirlog top) COMP_CWORD=1
_heirlog_completion heirlog
[ "${COMPREPLY[*]}" = topics ] || { echo "heirlog top<Tab> gave: ${COMPREPLY[*]}"; exit 1; }
"""


def main() -> int:
    os.environ.pop("PYTHONPATH", None)
    shutil.rmtree(DIST, ignore_errors=True)
    setup.run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    files = sorted(DIST.iterdir())
    wanted = [(python, file) for python in supported_pythons() for file in files]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda each: failure_of(*each), wanted))
    for (python, file), failure in zip(wanted, results, strict=True):
        print(f"{file.name} on {version_of(python)}: {failure or 'installs and runs'}")
    return 1 if any(results) else 0


def supported_pythons() -> list[str]:
    """One of each minor version that this machine has."""
    found: dict[str, str] = {}
    for python in setup.pythons():
        if setup.is_between(python, *setup.SUPPORTED):
            found.setdefault(version_of(python), python)
    return [found[version] for version in sorted(found)]


def version_of(python: str) -> str:
    return output([python, "-c", "import sys; print('Python %d.%d' % sys.version_info[:2])"], Path.cwd()).strip()


def failure_of(python: str, file: Path) -> str | None:
    """None: everything holds."""
    with tempfile.TemporaryDirectory(prefix="heirlog-package-") as folder:
        environment = Path(folder, "environment")
        elsewhere = Path(folder, "elsewhere")
        elsewhere.mkdir()
        try:
            setup.make_environment(environment, python)
            setup.pip_install(environment, file)
            judge(environment / "bin", elsewhere)
        except (setup.SetupError, AssertionError) as error:
            return f"FAILED: {error}"
    return None


def judge(programs: Path, elsewhere: Path) -> None:
    """Raises AssertionError, SetupError."""
    project = tomllib.loads((setup.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shown = output([programs / "python", "-m", "pip", "show", "--verbose", "heirlog"], elsewhere)
    said = output([programs / "heirlog", "--version"], elsewhere)
    assert f"\n{said.replace('heirlog ', 'Version: ')}" in shown, said + shown
    for part in (*project["classifiers"], *project["urls"].values()):
        assert part in shown, f"pip show does not print {part!r}:\n{shown}"
    # the pip that comes with Python 3.11 to 3.13 does not print this field yet
    license_of = "from importlib.metadata import metadata; print(metadata('heirlog')['License-Expression'])"
    assert output([programs / "python", "-c", license_of], elsewhere).strip() == project["license"]
    output([programs / "python", "-W", "error", "-c", IMPORT_ALL], elsewhere)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", COMPLETION],
        cwd=elsewhere, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, f"shell completion: {done.stdout}"
    keep_a_record(programs / "heirlog", elsewhere)


def keep_a_record(heirlog: Path, elsewhere: Path) -> None:
    """In the smallest cluster: one process. Raises AssertionError."""
    port = free_ports_in_a_row()
    with (elsewhere / "up.log").open("w+") as log:
        command = [heirlog, "up", "--nodes", "1", "--combined", "--port", str(port)]
        up = subprocess.Popen(command, cwd=elsewhere, stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while "heirlog is up" not in Path(log.name).read_text():
                assert up.poll() is None and time.monotonic() < deadline, f"up: {Path(log.name).read_text()}"
                time.sleep(0.05)
            path = f"PATH={heirlog.parent}{os.pathsep}{os.environ['PATH']}"
            tour = ["env", path, f"HEIRLOG_BOOTSTRAP=127.0.0.1:{port}", "bash", "-e", "-c", readme_commands()]
            seen = output(tour, elsewhere)
            assert "hola\n" in seen and "Leader" in seen, seen
        finally:
            up.send_signal(signal.SIGINT)
            try:
                up.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                up.kill()
                raise AssertionError(f"up did not stop: {Path(log.name).read_text()}") from None
        assert up.returncode == 0, f"up ended with {up.returncode}: {Path(log.name).read_text()}"


def readme_commands() -> str:
    """What README.md lets a new user type while a cluster runs."""
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", (setup.ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    return str(commands)


def free_ports_in_a_row() -> int:
    """The first of two: `up` takes one more for the controller."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def output(command: list[str | Path], where: Path, given: str = "") -> str:
    """Raises AssertionError with what it printed."""
    done = subprocess.run(command, cwd=where, input=given, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(map(str, command))} failed: {done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
