"""make release: what `make package` does, and what a release needs besides.

    a clean tree        what is built is what is committed
    built twice         in two folders, with another time zone and another umask: the same bytes
    twine check         the metadata are what the package index accepts, and its page can be drawn
    make package        each file on each Python, with the commands of README.md

Nothing is uploaded. The last lines say what a person still has to do.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import package
import setup

CHANGELOG = setup.ROOT / "CHANGELOG.md"


def main() -> int:
    try:
        refuse_uncommitted()
        if package.main():
            return 1
        built = digests(package.DIST)
        with tempfile.TemporaryDirectory(prefix="heirlog-release-") as folder:
            again = digests(build_elsewhere(Path(folder)))
        if built != again:
            raise setup.SetupError(f"two builds differ: {built}, {again}")
        setup.run(setup.ROOT / ".venv-docs/bin/python", "-m", "twine", "check", "--strict", *package.DIST.iterdir())
    except setup.SetupError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for name, digest in built.items():
        print(f"{digest}  dist/{name}")
    print("built twice with the same bytes; twine finds nothing wrong")
    for left in left_to_do():
        print(f"before an upload: {left}")
    return 0


def refuse_uncommitted() -> None:
    """Raises SetupError."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=setup.ROOT, text=True, capture_output=True)
    if done.returncode:
        raise setup.SetupError(f"a release is made from a git checkout: {done.stderr.strip()}")
    if done.stdout.strip():
        raise setup.SetupError(f"commit or remove these files first:\n{done.stdout.rstrip()}")


def build_elsewhere(folder: Path) -> Path:
    """The folder of files that were built from the commit alone, under other circumstances. Raises SetupError."""
    tree = folder / "tree"
    # a clone has only what is committed
    setup.run("git", "clone", "--quiet", "--no-hardlinks", setup.ROOT, tree)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    environment = {**os.environ, "TZ": "Pacific/Chatham"}
    done = subprocess.run(command, cwd=tree, env=environment, umask=0o077, text=True, capture_output=True)
    if done.returncode:
        raise setup.SetupError(f"the second build failed: {done.stdout}{done.stderr}")
    return folder / "dist"


def digests(folder: Path) -> dict[str, str]:
    """By name of the file."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def left_to_do() -> list[str]:
    text = CHANGELOG.read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.*)"', (setup.ROOT / "src/heirlog/version.py").read_text(encoding="utf-8"))
    assert version is not None, "src/heirlog/version.py has no version"
    found = []
    if f"## [{version[1]}]" not in text:
        found.append(f"CHANGELOG.md has no section [{version[1]}]")
    unreleased = text.partition("## [Unreleased]")[2].partition("\n## [")[0]
    if "\n- " in unreleased:
        found.append(
            "CHANGELOG.md has entries in [Unreleased]: give them a section with a new version and the day, and write "
            "that version into src/heirlog/version.py"
        )
    tags = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=setup.ROOT, text=True, capture_output=True)
    if f"v{version[1]}" not in tags.stdout.split():
        found.append(f"tag the commit: git tag v{version[1]}")
    found.append("pages say `pip install <this folder>`: write `pip install heirlog` when the index has it")
    return found


if __name__ == "__main__":
    sys.exit(main())
