"""Writes `messages/` and `records/` from the files in `specs`: `python -m heirlog.protocol.generator`.

One module per API and per record, an index of the records, and the table of APIs. What the classes and functions in
them look like is decided in `codegen.py`.

This module, `codegen.py` and `spec.py` are tools of the developer: nothing imports them at run time.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from importlib.resources.abc import Traversable

from heirlog.protocol.codegen import Codec, shape_name
from heirlog.protocol.spec import Spec, parse

HEADER = '"""Written by `python -m heirlog.protocol.generator` from {source}. Do not edit."""\n'
FUTURE = "from __future__ import annotations\n"


def generate(specs: Traversable) -> dict[str, str]:
    """The text of every generated file, by its path below `protocol/`."""
    files: dict[str, str] = {}
    apis = list(_load(specs / "messages"))
    records = list(_load(specs / "records"))
    for file, spec in apis:
        files[f"messages/{file}.py"] = Module(spec, f"specs/messages/{file}.spec").text()
    for file, spec in records:
        files[f"records/{file}.py"] = Module(spec, f"specs/records/{file}.spec").text()
    files["messages/__init__.py"] = (
        '"""Requests and responses, one module per API, written by `heirlog.protocol.generator`; imported lazily."""\n'
    )
    files["records/__init__.py"] = _records_index(records)
    files["api_table.py"] = _api_table(apis)
    return files


def _load(folder: Traversable) -> Iterator[tuple[str, Spec]]:
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".spec"):
            yield path.name.removesuffix(".spec"), parse(path.read_text(), path.name)


def _records_index(records: list[tuple[str, Spec]]) -> str:
    names = sorted(spec.name for _, spec in records)
    lines = ['"""Metadata and control records, written by `heirlog.protocol.generator` from specs/records."""\n']
    lines += ["# fmt: off", "", "from __future__ import annotations\n"]
    lines.append("from heirlog.protocol.primitives import Message")
    lines += [f"from heirlog.protocol.records.{file} import {spec.name}" for file, spec in records]
    for table, kind in (("METADATA_RECORDS", "record"), ("CONTROL_RECORDS", "control")):
        lines += ["", f"{table}: dict[int, type[Message]] = {{"]
        chosen = sorted((spec.key, spec.name) for _, spec in records if spec.kind == kind)
        lines += [f"    {key}: {name}," for key, name in chosen]
        lines.append("}")
    exported = sorted([*names, "METADATA_RECORDS", "CONTROL_RECORDS"], key=lambda n: (not n.isupper(), n))
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in exported), "]", ""]
    return "\n".join(lines)


def _api_table(apis: list[tuple[str, Spec]]) -> str:
    lines = [HEADER.format(source="specs/messages"), "# fmt: off", "", "from __future__ import annotations\n"]
    lines.append("# key: (name, first version, last version, first flexible version, module)")
    lines.append("TABLE: dict[int, tuple[str, int, int, int, str]] = {")
    for file, spec in sorted(apis, key=lambda item: item[1].key):
        flexible = 32767 if spec.flexible is None else spec.flexible
        lines.append(
            f'    {spec.key}: ("{spec.name}", {spec.versions.first}, {spec.versions.last}, {flexible}, "{file}"),'
        )
    lines += ["}", ""]
    return "\n".join(lines)


class Module:
    """One generated file."""

    def __init__(self, spec: Spec, source: str) -> None:
        self.spec = spec
        self.source = source
        self.shapes: set[str] = set()

    def text(self) -> str:
        chunks: list[str] = []
        for block, struct in self.spec.blocks.items():
            if self.spec.kind == "api":
                top, prefix = self.spec.name + block.capitalize(), f"_{block}"
            else:
                top, prefix = self.spec.name, ""
            chunks.append(Codec(self.spec, self.shapes, struct, top, prefix).text())
        body = "\n\n".join(chunks)
        text = "\n".join([FUTURE, self._imports(body), "", "", body])
        header = HEADER.format(source=self.source)
        return "\n".join([header, "# fmt: off", *_exempt(header + text), "", text])

    def _imports(self, body: str) -> str:
        lines = []
        if "Sequence[" in body:
            lines.append("from collections.abc import Sequence")
        if self.shapes:
            lines.append("from struct import Struct as _Shape")
        if ": Final" in body:
            lines.append("from typing import Final")
        lines += ["", "from heirlog.protocol import primitives as p"]
        names = [
            n
            for n in ("BYTE", "EMPTY", "Message", "Out", "Records", "Struct", "ZERO_UUID", "new")
            if re.search(rf"(?<![\w.]){n}\b", body)
        ]
        order = sorted(names, key=lambda n: (not n.isupper(), n[0].islower(), n))
        lines.append(f"from heirlog.protocol.primitives import {', '.join(order)}")
        if self.shapes:
            lines.append("")
        for shape in sorted(self.shapes):
            name = shape_name(shape)
            if f"_unpack_{name}(" in body:
                lines.append(f'_unpack_{name} = _Shape(">{shape}").unpack_from')
            if f"_pack_{name}(" in body:
                lines.append(f'_pack_{name} = _Shape(">{shape}").pack')
        return "\n".join(lines).lstrip("\n")


def _exempt(text: str) -> list[str]:
    """The line that excuses what a generated file breaks, if it does."""
    codes = []
    if any(len(line) > 120 for line in text.splitlines()):
        codes.append("E501")
    slots = [re.findall(r'"(\w+)"', block) for block in re.findall(r"__slots__ = \((.*?)\n *\)", text, re.DOTALL)]
    if any(names != sorted(names) for names in slots):
        codes.append("RUF023")
    return [f"# ruff: noqa: {', '.join(codes)}"] if codes else []


def main() -> int:
    """Write the files below the installed package; the number of files that changed goes to standard output."""
    package = importlib.resources.files("heirlog.protocol")
    base = str(package)
    changed = 0
    for path, text in generate(package / "specs").items():
        target = f"{base}/{path}"
        try:
            with open(target, encoding="utf-8") as file:
                old = file.read()
        except FileNotFoundError:
            old = ""
        if old != text:
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
            changed += 1
    print(f"{changed} files written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
