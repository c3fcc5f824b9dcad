"""The checksum of what a run executes."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import heirlog
from heirlog.sim.code_version import EXECUTED, code_version

ROOT = Path(heirlog.__file__).parent
IMPORTED = """
import sys
from heirlog.sim.durability import measure
print(*{name.split(".")[1] for name in sys.modules if name.startswith("heirlog.")})
"""
ASKED = (
    "import sys; sys.path.insert(0, sys.argv[1]); from heirlog.sim.code_version import code_version as c; print(c())"
)


def said(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_it_covers_all_that_a_run_imports() -> None:
    assert set(said(IMPORTED).split()) <= {name.removesuffix(".py") for name in EXECUTED}


def test_an_archive_has_the_version_of_the_directory_that_it_was_made_of(tmp_path: Path) -> None:
    archive, changed = tmp_path / "same.zip", tmp_path / "changed.zip"
    for file, more in ((archive, b""), (changed, b"# one line more\n")):
        with zipfile.ZipFile(file, "w") as output:
            for source in sorted(ROOT.rglob("*.py")):
                path = source.relative_to(ROOT.parent)
                is_changed = path.name == "world.py"
                output.writestr(str(path), source.read_bytes() + (more if is_changed else b""))
    assert said(ASKED, str(archive)) == code_version()
    assert said(ASKED, str(changed)) != code_version()
