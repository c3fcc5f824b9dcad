"""What lies outside the package and is run by hand or in .ci/run imports only what the package still has."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("benchmarks", "examples", "interop", "scripts", "tools")


def imported(path: Path) -> Iterator[tuple[str, str | None]]:
    """(module, name or None) of every import of the package, those inside of functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "heirlog" and not node.level:
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.split(".")[0] == "heirlog")


def exists(module: str, name: str | None) -> bool:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        return not str(error.name).startswith("heirlog")
    if name is None or hasattr(found, name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_scripts_import_exists(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    missing = [
        f"{path.relative_to(ROOT)}: {module} {name or ''}"
        for path in files
        for module, name in imported(path)
        if not exists(module, name)
    ]
    assert missing == []
