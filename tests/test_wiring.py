"""Whole at birth: an object gets its callbacks and collaborators when it is made, never afterwards.

A hook is an attribute that holds what another object calls or uses: by its name (`on_...`, `..._listener` and others
below), or because what is assigned is a function (a lambda, a `partial`, a method of `self`) or `self`. Assigning a
hook to an object other than `self` is refused. Where the one who listens is made later than the one who notifies,
the notifier has a list of listeners, or a method that takes one.

Not hooks: data fields, also of objects that the module has just made, and what a call returns (a timer's cancel).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "heirlog"
HOOK = re.compile(r"_?(on_[a-z_]+|([a-z_]+_)?(listener|observer|callback|hook|handler|delegate))")


def methods_in(tree: ast.AST) -> set[str]:
    """Names of functions that are no properties: what `self.NAME` without a call hands on as a callback."""
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and not node.decorator_list}


def is_hook(name: str, value: ast.expr | None, methods: set[str]) -> bool:
    if HOOK.fullmatch(name) or isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return value.value.id == "self" and value.attr in methods
    if isinstance(value, ast.Name):
        return value.id == "self"
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "partial"


def assignments(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
    """(target, value) of every assignment to an attribute, and of every `setattr` with a literal name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                        yield part, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            yield node.target, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            of, name, value = node.args
            if isinstance(name, ast.Constant):
                yield ast.Attribute(of, str(name.value), ast.Store(), lineno=node.lineno), value


def patched(source: str) -> list[str]:
    """`line: target` of each hook that is assigned on another object."""
    tree = ast.parse(source)
    methods = methods_in(tree)
    return [
        f"{target.lineno}: {ast.unparse(target)}"
        for target, value in assignments(tree)
        if not (isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"))
        and is_hook(target.attr, value, methods)
    ]


def test_no_object_gets_a_hook_from_outside_after_it_was_made() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "_generated" not in path.parts
        for line in patched(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "log.on_failure = failed",
        "self.world.on_log = self._logged",
        "fetchers.replicas = self",
        "pending.abandoned = lambda: forget(wait)",
        "connection.closed = partial(node.gone, 1)",
        "network.observer: Observer = checker",
        "a.x, b.on_done = 1, done",
        "setattr(log, 'on_failure', failed)",
        "class A:\n    def gone(self) -> None:\n        other.closed = self.gone",
    ],
)
def test_the_check_notices_a_hook(line: str) -> None:
    assert len(patched(line)) == 1


@pytest.mark.parametrize("line", ["self.on_done = on_done", "answer.error_code = code", "wait.cancel = env.call(1, f)"])
def test_the_check_leaves_data_and_own_attributes_alone(line: str) -> None:
    assert not patched(line)
