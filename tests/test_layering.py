"""The order of the house: each package imports only floors below its own, and below floor 7 only a written list.

Why so strict: one import of `time` or `asyncio` below floor 7 and the simulator no longer runs the product. Imports are
read from the syntax tree, so one inside a function or under `if TYPE_CHECKING:` counts as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "heirlog"

FLOORS = {
    "protocol": 0,
    "env": 0,
    "pending": 0,
    "rates": 0,
    "context": 0,
    "log_levels": 0,
    "failure_log": 0,
    "rate_limited_log": 0,
    "version": 0,
    "security": 1,
    "storage": 1,
    "metadata": 2,
    "raft": 3,
    "client": 4,
    "controller": 5,
    "broker": 5,
    "apis": 6,
    # the upper half of floor 6: a node dispatches to the APIs, which know it by ports only
    "node": 6.5,
    "bounded_file": 7,
    "ending_signals": 7,
    "tls": 7.2,
    "oauth": 7.2,
    # both bodies, and clients with sockets, build on it
    "server": 7.5,
    "sim": 7.5,
    "blocking": 7.5,
    "local": 8,
    "drill": 9,
    "spark": 9,
    "testing": 9,
    "cli": 10,
    "__main__": 11,
}

STANDARD_BELOW_7 = {
    "__future__",
    "abc",
    "array",
    "binascii",
    "bisect",
    "collections",
    "contextlib",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "importlib",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "string",
    "struct",
    "types",
    "typing",
    "zlib",
}
INSTALLED_BELOW_7 = {"crc32c", "cramjam", "cryptography", "re2"}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__")


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import of a module, relative ones resolved."""
    dotted = ("heirlog", *path.relative_to(SOURCE).with_suffix("").parts)
    package = dotted[:-1]
    for node in statements(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        else:
            base = node.module or ""
            if node.level:
                base = ".".join(package[: len(package) - node.level + 1] + ((base,) if base else ()))
            if base == "heirlog":
                for alias in node.names:
                    yield node.lineno, f"heirlog.{alias.name}"
            else:
                yield node.lineno, base


def violations(path: Path) -> list[str]:
    package = package_of(path)
    floor = FLOORS[package]
    found = []
    for line, name in imports(path):
        root, _, rest = name.partition(".")
        where = f"{path.relative_to(SOURCE.parent)}:{line}"
        if root == "heirlog":
            target = rest.partition(".")[0]
            if target in ("", package):
                continue
            if target not in FLOORS:
                found.append(f"{where}: heirlog.{target} stands on no floor")
            elif FLOORS[target] > floor:
                found.append(f"{where}: floor {floor} ({package}) imports floor {FLOORS[target]} (heirlog.{target})")
            elif FLOORS[target] == floor and floor:
                found.append(f"{where}: {package} and {target} share floor {floor} and do not know each other")
        elif floor < 7 and root not in STANDARD_BELOW_7 | INSTALLED_BELOW_7:
            found.append(f"{where}: below floor 7 nobody imports {root}")
    return found


def test_every_package_has_a_floor() -> None:
    homeless = {package_of(path) for path in modules()} - set(FLOORS)
    assert not homeless


@pytest.mark.parametrize("floor", sorted(set(FLOORS.values())))
def test_a_floor_imports_only_floors_below_it_and_the_written_list(floor: float) -> None:
    found = [found for path in modules() if FLOORS.get(package_of(path)) == floor for found in violations(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("storage", "import time"),
        ("storage", "from heirlog.metadata import image"),
        ("protocol", "from heirlog import storage"),
        ("broker", "from heirlog.controller import election"),
        ("broker", "def f():\n    import asyncio"),
        ("raft", "from ..controller import election"),
        ("node", "import os.path"),
        ("apis", "from heirlog.node import node"),
        ("sim", "from heirlog.server import loop"),
        ("sim", "from heirlog.cli import main"),
        ("local", "from heirlog.cli import errors"),
        ("testing", "from heirlog.drill import stage"),
    ],
)
def test_the_check_notices_a_break(package: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "heirlog" / package / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(line + "\n")
    monkeypatch.setitem(globals(), "SOURCE", tmp_path / "heirlog")
    assert len(violations(module)) == 1


def test_what_spark_looks_for_knows_floor_9_only() -> None:
    """Each session of Spark imports it, also one that never uses heirlog."""
    (module,) = (SOURCE.parent / "pyspark_heirlog").glob("*.py")
    assert [getattr(statement, "module", None) for statement in statements(module)] == ["heirlog.spark.deferred"]


# -- circles ----------------------------------------------------------------------------------------------------


def import_graph(root: Path) -> dict[str, set[str]]:
    """Which module of the package imports which others, imports for a type checker included."""
    modules = {}
    for path in root.rglob("*.py"):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph = {}
    for module, path in modules.items():
        found = set()
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        for node in statements(path):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            else:
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                for alias in node.names:
                    submodule = f"{base}.{alias.name}"
                    found.add(submodule if submodule in modules else base)
        graph[module] = (found & modules.keys()) - {module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others of its group."""
    reached: dict[str, set[str]] = {}
    for module in graph:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[module] = seen
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }
    return sorted(sorted(group) for group in groups)


def test_no_module_imports_itself_through_others() -> None:
    found = circles(import_graph(SOURCE))
    assert not found, "\n".join(" <-> ".join(group) for group in found)


def test_a_circle_is_noticed_also_where_only_a_type_checker_sees_it(tmp_path: Path) -> None:
    package = tmp_path / "heirlog"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from heirlog.b import B\n")
    (package / "b.py").write_text("from heirlog import c\n")
    (package / "c.py").write_text("if TYPE_CHECKING:\n    from .a import A\n")
    (package / "d.py").write_text("def f():\n    import heirlog.a\n")
    assert circles(import_graph(package)) == [["heirlog.a", "heirlog.b", "heirlog.c"]]
