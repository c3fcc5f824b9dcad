"""Make an environment from a lock file: `scripts/python scripts/setup.py KIND`: runtime, dev, or one for a test.

Standard library only: it runs before anything is installed. An environment carries a stamp with the hash of the locks
that filled it; with an equal stamp there is nothing to do, so `make up` may call this every time.

    .venv                     runtime, and with dev what tests and checks need (a superset with the same versions)
    .venv-confluent-kafka-2.5.0    an older confluent-kafka, for the tests that speak through it
    .venv-docs                     what `make docs` needs
    .venv-other-python             the runtime on another supported Python, where this machine has one

Where `python -m venv` cannot make an environment (Debian without python3-venv), uv or virtualenv does it. Everything
is installed with pip and checked against the hashes of the lock; the tree itself is then installed editable without
network, because the lock holds its build backend too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
OLD_CLIENT = "confluent-kafka-2.5.0"
OTHER_PYTHON = "other-python"
SUPPORTED = ((3, 11), (3, 15))
"""The first minor version, and the one after the last."""
DOCS = "docs"


class SetupError(Exception):
    """One sentence for the person who typed `make`."""


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SetupError(f"{' '.join(str(part) for part in command)} failed:\n{done.stdout.strip()}")


def succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def make_environment(directory: Path, python: str) -> None:
    """Raises SetupError naming the package to install where none of the three ways works."""
    shutil.rmtree(directory, ignore_errors=True)
    if succeeds(python, "-m", "venv", str(directory)):
        return
    # what `venv` left behind has no pip, and the other tools refuse a directory that is there
    shutil.rmtree(directory, ignore_errors=True)
    if shutil.which("uv") and succeeds("uv", "venv", "--seed", "--python", python, str(directory)):
        return
    if shutil.which("virtualenv") and succeeds("virtualenv", "--python", python, str(directory)):
        return
    raise SetupError(
        f"{python} cannot make a virtual environment here, and neither uv nor virtualenv can: install the package that "
        f"brings venv (on Debian and Ubuntu: apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv)"
    )


def pip_install(directory: Path, *arguments: str | Path) -> None:
    try:
        run(directory / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)
    except SetupError as error:
        if "connection broken" not in str(error):
            raise
        # pip's own last line says that a version does not exist
        raise SetupError(
            "no package index could be reached. Once there is a network, or PIP_INDEX_URL names a mirror or "
            f"PIP_FIND_LINKS a folder with the wheels, run make again: it continues where it was\nsetup: {error}"
        ) from error


def stamp_of(*files: Path) -> str:
    # not the patch level: a terminal with `.venv` activated may run another one than the terminal that made it
    digest = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def stamped(directory: Path, name: str, stamp: str) -> bool:
    file = directory / f".heirlog-{name}"
    return file.exists() and file.read_text() == stamp and (directory / "bin" / "python").exists()


def set_up_tree(kind: str) -> None:
    """Fill `.venv`. A dev environment of the same state is a runtime environment too and is left alone."""
    directory = ROOT / ".venv"
    # the project file counts: its entry points are installed with the tree
    stamps = {
        name: stamp_of(ROOT / "pyproject.toml", LOCKS / "runtime.txt", LOCKS / f"{name}.txt")
        for name in ("runtime", "dev")
    }
    if stamped(directory, "dev", stamps["dev"]) or stamped(directory, kind, stamps[kind]):
        return
    print(f"setting up {directory} from requirements/{kind}.txt", flush=True)
    python = str(directory / "bin" / "python")
    mine = sys.version_info[:2]
    if not (is_between(python, mine, (mine[0], mine[1] + 1)) and succeeds(python, "-m", "pip", "--version")):
        build = fastest_build()
        if build != sys.executable:
            print(
                f"with {build}, a faster build than {sys.executable}; PYTHON={sys.executable} takes that one",
                flush=True,
            )
        make_environment(directory, build)
    pip_install(directory, "--require-hashes", "-r", LOCKS / f"{kind}.txt")
    pip_install(directory, "--no-index", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    # nodes start twice as fast, also where PYTHONDONTWRITEBYTECODE keeps Python from remembering what it compiled
    run(directory / "bin" / "python", "-m", "compileall", "-q", ROOT / "src")
    (directory / f".heirlog-{kind}").write_text(stamps[kind])


def pythons() -> list[str]:
    """This Python, then others of this machine: by their names on PATH, then what pyenv keeps behind its shims."""
    names = [sys.executable, "python3.14", "python3.13", "python3.12", "python3.11"]
    kept = sorted((Path.home() / ".pyenv" / "versions").glob("3.1[1234]*/bin/python"))
    return [*names, *(str(path) for path in kept)]


def is_optimised(python: str) -> bool:
    """Built with profile-guided optimisation. Those of distributions are, and Debian's do not say so."""
    told = "'--enable-optimizations' in (sysconfig.get_config_var('CONFIG_ARGS') or '')"
    return succeeds(python, "-c", f"import sys, sysconfig; sys.exit(not (sys.base_prefix == '/usr' or {told}))")


def fastest_build() -> str:
    """This Python, or one of the same version on this machine that was built with profile-guided optimisation.

    Version managers leave that out, which costs nodes a seventh of their CPU (docs/internals/benchmarks.md). PYTHON is
    a choice of a person and stays.
    """
    if os.environ.get("PYTHON") or is_optimised(sys.executable):
        return sys.executable
    major, minor = sys.version_info[:2]
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"]
    for python in dict.fromkeys(os.path.join(folder, f"python{major}.{minor}") for folder in folders):
        # Debian may have it without what makes environments
        fits = is_between(python, (major, minor), (major, minor + 1)) and succeeds(python, "-c", "import ensurepip")
        if fits and is_optimised(python):
            return python
    return sys.executable


def is_between(python: str, low: tuple[int, int], above: tuple[int, int]) -> bool:
    return succeeds(python, "-c", f"import sys; sys.exit(not {low} <= sys.version_info[:2] < {above})")


def set_up_old_client() -> None:
    """The lock has wheels up to Python 3.12; on a newer Python an older one of this machine is taken, or none.

    No suitable Python is no error: the tests that need this environment skip and say so.
    """
    fitting = next((python for python in pythons() if is_between(python, (3, 11), (3, 13))), None)
    set_up_side_environment(OLD_CLIENT, fitting, LOCKS / f"{OLD_CLIENT}.txt")


def set_up_other_python() -> None:
    """Another supported minor version than the one that runs: seeds must give the same trace on both."""
    mine = sys.version_info[:2]
    others = (python for python in pythons() if is_between(python, *SUPPORTED))
    fitting = next((python for python in others if not is_between(python, mine, (mine[0], mine[1] + 1))), None)
    set_up_side_environment(OTHER_PYTHON, fitting, LOCKS / "runtime.txt")


def set_up_docs() -> None:
    set_up_side_environment(DOCS, sys.executable, LOCKS / f"{DOCS}.txt")


def set_up_side_environment(name: str, python: str | None, lock: Path) -> None:
    directory = ROOT / f".venv-{name}"
    stamp = stamp_of(lock)
    if stamped(directory, name, stamp):
        return
    if python is None:
        print(f"no fitting Python here: tests that need {directory.name} will be skipped", file=sys.stderr)
        return
    print(f"setting up {directory} from {lock.relative_to(ROOT)}", flush=True)
    make_environment(directory, python)
    pip_install(directory, "--require-hashes", "--only-binary", ":all:", "-r", lock)
    (directory / f".heirlog-{name}").write_text(stamp)


def main(arguments: list[str]) -> int:
    kinds = ("runtime", "dev", DOCS, OLD_CLIENT, OTHER_PYTHON)
    if len(arguments) != 1 or arguments[0] not in kinds:
        print(f"usage: scripts/setup.py {'|'.join(kinds)}", file=sys.stderr)
        return 2
    os.environ.pop("PYTHONPATH", None)
    try:
        if arguments[0] == OLD_CLIENT:
            set_up_old_client()
        elif arguments[0] == DOCS:
            set_up_docs()
        elif arguments[0] == OTHER_PYTHON:
            set_up_other_python()
        else:
            set_up_tree(arguments[0])
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: stopped before the environment was complete; the next run completes it", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
