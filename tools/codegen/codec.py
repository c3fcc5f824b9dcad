"""The code of one message: its classes, and how each version of it is read and written.

A class has the fields of all versions; what differs between versions lives in the read and write functions, one pair
per struct. Such a function handles a whole array (a single struct is an array of one), so that the question which
layout the version has is asked once and not per element:

    def _read_request_fetch_partition(buf, pos, count, version):
        if version >= 18:
            for _ in range(count):      straight-line code for exactly this layout
        elif version >= 17:
            ...

Versions with equal layouts share a branch. Within one, neighbours of fixed width become one `struct` call, and the
byte that says "no tagged fields" at the end of a struct is part of that call.

Field names are Kafka's in snake case. Nullable strings and bytes without a default of their own are null until set
(Kafka: empty), because an error message that nobody wrote is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from codegen.meanings import Meanings
from codegen.spec import FieldSpec, Spec, StructSpec

FIXED = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "bytes",
    "records": "Records",
}
ZEROS = {
    "bool": "False",
    "float64": "0.0",
    "string": '""',
    "bytes": 'b""',
    "uuid": "ZERO_UUID",
    "records": 'b""',
}
ARRAYS = {"int8": "int8s", "int32": "int32s", "int64": "int64s", "uuid": "uuids", "string": "strings"}


def snake(name: str) -> str:
    """`KRaftVersion` is `k_raft_version`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def shape_name(shape: str) -> str:
    return shape.replace("16s", "u").replace("?", "o")


class Codec:
    """The class and the functions of one message."""

    def __init__(
        self, spec: Spec, meanings: Meanings, shapes: set[str], struct: StructSpec, top: str, prefix: str
    ) -> None:
        """`shapes` collects the formats of the `struct` calls that the code makes."""
        self.spec = spec
        self.meanings = meanings
        self.shapes = shapes
        self.top = top
        self.prefix = prefix
        self.root = struct
        self.structs: list[StructSpec] = []
        self._collect(struct)
        self.defaults = [
            s
            for s in self.structs
            if any(
                f.struct is s and f.tag is not None and not f.is_array and not self.can_be_null(f)
                for parent in (struct, *self.structs)
                for f in parent.fields
            )
        ]

    def _collect(self, struct: StructSpec) -> None:
        for field in struct.fields:
            if field.struct is not None and field.struct not in self.structs:
                self.structs.append(field.struct)
                self._collect(field.struct)

    # ---------------------------------------------------------------------------------------------- names

    def attribute(self, field: FieldSpec) -> str:
        return snake(field.name)

    def function(self, struct: StructSpec) -> str:
        return self.prefix if struct is self.root else f"{self.prefix}_{snake(struct.name)}"

    def class_name(self, struct: StructSpec) -> str:
        return self.top if struct is self.root else f"{self.top}.{struct.name}"

    def default_name(self, struct: StructSpec) -> str:
        return f"_DEFAULT{self.prefix.upper()}_{snake(struct.name).upper()}"

    def item_type(self, field: FieldSpec) -> str:
        if field.struct is not None:
            return self.class_name(field.struct)
        return PYTHON_TYPES.get(field.type, "int")

    def annotation(self, field: FieldSpec) -> str:
        text = f"list[{self.item_type(field)}]" if field.is_array else self.item_type(field)
        return f"{text} | None" if self.can_be_null(field) else text

    def can_be_null(self, field: FieldSpec) -> bool:
        return field.nullable.first <= field.nullable.last

    def default(self, field: FieldSpec) -> str:
        """The expression of a parameter's default."""
        if field.default == "null":
            return "None"
        if field.is_array:
            return "EMPTY"
        if field.struct is not None:
            return "None"
        if field.default is None:
            if self.can_be_null(field):
                return "None"
            return ZEROS.get(field.type, "0")
        if field.type == "bool":
            return field.default.capitalize()
        return repr(field.default) if field.type == "string" else field.default

    def value_of_absent(self, field: FieldSpec) -> str:
        """What reading stores if the version or the message has no such field."""
        if field.struct is not None and not field.is_array and not self.can_be_null(field):
            if field.struct in self.defaults and field.tag is not None:
                return self.default_name(field.struct)
            return f"{self.class_name(field.struct)}()"
        default = self.default(field)
        return "[]" if default == "EMPTY" else default

    # -------------------------------------------------------------------------------------------- classes

    def text(self) -> str:
        lines = [*self._class(self.root, "")]
        lines += ["", ""]
        for struct in self.defaults:
            lines.append(f"{self.default_name(struct)}: Final = p.frozen_default({self.class_name(struct)})")
        if self.defaults:
            lines += ["", ""]
        for struct in [*reversed(self.structs), self.root]:
            lines += [*self._reader(struct), "", "", *self._writer(struct), "", ""]
        lines += [
            f"{self.top}.READ = _read{self.function(self.root)}",
            f"{self.top}.WRITE = _write{self.function(self.root)}",
            "",
        ]
        return "\n".join(lines)

    def _class(self, struct: StructSpec, indent: str) -> Iterator[str]:
        inner = indent + "    "
        is_top = struct is self.root
        yield f"{indent}class {self.top if is_top else struct.name}({'Message' if is_top else 'Struct'}):"
        holder = self.top if is_top else f"{self.top}/{struct.name}"
        if struct.fields:
            # a dictionary here gives each attribute its docstring: help(VoteRequest.voter_id)
            yield f"{inner}__slots__ = {{"
            for field in struct.fields:
                yield f'{inner}    "{self.attribute(field)}": {json.dumps(self.meanings.of(field, holder))},'
            yield f"{inner}}}"
        else:
            yield f"{inner}__slots__ = ()"
        if is_top:
            flexible = "p.NEVER_FLEXIBLE" if self.spec.flexible is None else self.spec.flexible
            yield f"{inner}API_KEY = {self.spec.key}"
            yield f"{inner}MIN_VERSION = {self.spec.versions.first}"
            yield f"{inner}MAX_VERSION = {self.spec.versions.last}"
            yield f"{inner}FLEXIBLE_VERSION = {flexible}"
            for nested in self.structs:
                yield ""
                yield from self._class(nested, inner)
        if struct.fields:
            yield ""
            yield f"{inner}def __init__("
            yield f"{inner}    self,"
            yield f"{inner}    *,"
            for field in struct.fields:
                yield f"{inner}    {self.attribute(field)}: {self._parameter_type(field)} = {self.default(field)},"
            yield f"{inner}) -> None:"
            for field in struct.fields:
                yield f"{inner}    {self._assignment(field)}"

    def _parameter_type(self, field: FieldSpec) -> str:
        text = self.annotation(field)
        if field.struct is not None and not field.is_array and not text.endswith("None"):
            text += " | None"
        return text

    def _assignment(self, field: FieldSpec) -> str:
        name = self.attribute(field)
        target = f"self.{name}: {self.annotation(field)} ="
        if self.default(field) == "EMPTY":
            return f"{target} [] if {name} is EMPTY else {name}"
        if field.struct is not None and not field.is_array and not self.can_be_null(field):
            return f"{target} {self.value_of_absent(field)} if {name} is None else {name}"
        return f"{target} {name}"

    # ------------------------------------------------------------------------------------------- layouts

    def _branches(self, struct: StructSpec, body: Callable[[StructSpec, int], list[str]]) -> Iterator[str]:
        """`body` for each group of versions with an equal layout, newest first, as an if chain."""
        groups: list[tuple[int, list[str]]] = []
        lowest, highest = self._use(struct)
        for version in range(highest, lowest - 1, -1):
            lines = body(struct, version)
            if groups and groups[-1][1] == lines:
                groups[-1] = (version, lines)
            else:
                groups.append((version, lines))
        if len(groups) == 1:
            yield from groups[0][1]
            return
        for index, (first, lines) in enumerate(groups):
            last = index == len(groups) - 1
            yield "else:" if last else f"{'elif' if index else 'if'} version >= {first}:"
            yield from (f"    {line}" for line in lines)

    def _use(self, struct: StructSpec) -> tuple[int, int]:
        """The versions in which a struct occurs."""
        versions = self.spec.versions
        if struct is self.root:
            return versions.first, versions.last
        found = [
            v
            for parent in (self.root, *self.structs)
            for f in parent.fields
            if f.struct is struct
            for low, high in [self._use(parent)]
            for v in range(low, high + 1)
            if v in f.versions
        ]
        return min(found), max(found)

    def _flexible(self, version: int) -> bool:
        return self.spec.flexible is not None and version >= self.spec.flexible

    def _split(self, struct: StructSpec, version: int) -> tuple[list[FieldSpec], list[FieldSpec]]:
        """Plain fields and tagged ones of a version."""
        present = [f for f in struct.fields if version in f.versions]
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
        return [f for f in present if f.tag is None], tagged

    def _shape(self, shape: str) -> str:
        self.shapes.add(shape)
        return shape_name(shape)

    # -------------------------------------------------------------------------------------------- reading

    def _reader(self, struct: StructSpec) -> Iterator[str]:
        cls = self.class_name(struct)
        parameters = "buf: memoryview, pos: int, count: int, version: int"
        yield f"def _read{self.function(struct)}({parameters}) -> tuple[list[{cls}], int]:"
        yield f"    items: list[{cls}] = []"
        if self.function(struct).startswith("_request_"):
            # an item that stands alone is free: it can only triple what was counted
            yield "    if count > 1:"
            yield "        p.spend(count)"
        yield from (f"    {line}" for line in self._branches(struct, self._read_body))
        yield "    return items, pos"

    def _read_body(self, struct: StructSpec, version: int) -> list[str]:
        lines = ["for _ in range(count):", f"    x = new({self.class_name(struct)})"]
        lines += [f"    {line}" for line in self._read_fields(struct, version)]
        lines.append("    items.append(x)")
        return lines

    def _read_fields(self, struct: StructSpec, version: int) -> Iterator[str]:
        plain, tagged = self._split(struct, version)
        for field in struct.fields:
            if field not in plain:
                yield f"x.{self.attribute(field)} = {self.value_of_absent(field)}"
        run: list[tuple[str, str]] = []
        for field in plain:
            if field.type in FIXED and not field.is_array:
                run.append((FIXED[field.type][0], f"x.{self.attribute(field)}"))
                continue
            yield from self._read_run(run)
            yield from self._read_field(field, version, f"x.{self.attribute(field)}")
        if self._flexible(version):
            run.append(("B", "tags"))
        yield from self._read_run(run)
        if self._flexible(version):
            yield "if tags:"
            if tagged:
                yield from (f"    {line}" for line in self._read_tagged(tagged, version))
            else:
                yield "    pos = p.skip_tags(buf, pos, tags)"

    def _read_run(self, run: list[tuple[str, str]]) -> Iterator[str]:
        if not run:
            return
        if run == [("B", "tags")]:
            yield "tags = buf[pos]"
            yield "pos += 1"
        else:
            shape = "".join(code for code, _ in run)
            targets = ", ".join(target for _, target in run)
            size = sum(dict(FIXED.values()).get(code, 1) for code, _ in run)
            yield f"({targets}{',' if len(run) == 1 else ''}) = _unpack_{self._shape(shape)}(buf, pos)"
            yield f"pos += {size}"
        run.clear()

    def _read_tagged(self, tagged: list[FieldSpec], version: int) -> Iterator[str]:
        yield "if tags >= 128:"
        yield "    tags, pos = p.more_uvarint(buf, pos, tags)"
        yield "for _ in range(tags):"
        yield "    tag, pos, end = p.read_tag(buf, pos)"
        for index, field in enumerate(tagged):
            yield f"    {'elif' if index else 'if'} tag == {field.tag}:"
            target = f"x.{self.attribute(field)}"
            if field.type in FIXED and not field.is_array:
                yield from (f"        {line}" for line in self._read_run([(FIXED[field.type][0], target)]))
            else:
                yield from (f"        {line}" for line in self._read_field(field, version, target))
            yield "        if pos != end:"
            yield f'            raise p.bad_tag("{field.name}")'
        yield "    else:"
        yield "        pos = end"

    def _read_field(self, field: FieldSpec, version: int, target: str) -> Iterator[str]:
        nullable = version in field.nullable
        compact = "compact_" if self._flexible(version) else ""
        if field.is_array:
            yield from self._read_array(field, version, target, nullable)
        elif field.struct is not None:
            yield from self._read_struct(field, target, nullable)
        elif field.type == "records":
            name = target if nullable else "view"
            yield f"{name}, pos = p.read_{compact}nullable_records(buf, pos)"
            if not nullable:
                yield "if view is None:"
                yield f'    raise p.null("{field.name}")'
                yield f"{target} = view"
        else:
            null = "nullable_" if nullable else ""
            yield f"{target}, pos = p.read_{compact}{null}{field.type}(buf, pos)"

    def _read_struct(self, field: FieldSpec, target: str, nullable: bool) -> Iterator[str]:
        assert field.struct is not None
        read = f"_read{self.function(field.struct)}(buf, pos, 1, version)"
        if not nullable:
            yield f"(({target},), pos) = {read}"
            return
        yield f"(present,) = _unpack_{self._shape('b')}(buf, pos)"
        yield "pos += 1"
        # a tagged struct begins with an unsigned number, any other one with a signed byte
        yield f"if present {'<' if field.tag is None else '<='} 0:"
        yield f"    {target} = None"
        yield "else:"
        yield f"    (({target},), pos) = {read}"

    def _read_array(self, field: FieldSpec, version: int, target: str, nullable: bool) -> Iterator[str]:
        if self._flexible(version):
            yield "n = buf[pos] - 1"
            yield "pos += 1"
            yield "if n >= 127:"
            yield "    n, pos = p.read_compact_length(buf, pos - 1)"
        else:
            yield "n, pos = p.read_length(buf, pos)"
        yield "if n < 0:"
        yield f"    {target} = None" if nullable else f'    raise p.null("{field.name}")'
        indent = ""
        if nullable:
            yield "else:"
            indent = "    "
        if field.struct is not None:
            yield f"{indent}{target}, pos = _read{self.function(field.struct)}(buf, pos, n, version)"
        else:
            compact = "compact_" if self._flexible(version) and field.type == "string" else ""
            yield f"{indent}{target}, pos = p.read_{compact}{ARRAYS[field.type]}(buf, pos, n)"

    # -------------------------------------------------------------------------------------------- writing

    def _writer(self, struct: StructSpec) -> Iterator[str]:
        items = f"items: Sequence[{self.class_name(struct)}]"
        yield f"def _write{self.function(struct)}(out: Out, {items}, version: int) -> None:"
        body = list(self._branches(struct, self._write_body))
        if any(" w(" in line or line.startswith("w(") for line in body):
            yield "    w = out.small.append"
        if any("tagged.append" in line for line in body):
            yield "    tagged: list[tuple[int, Out]]"
        yield from (f"    {line}" for line in body)

    def _write_body(self, struct: StructSpec, version: int) -> list[str]:
        lines = list(self._write_fields(struct, version))
        if not lines:
            return ["pass"]
        variable = "x" if any("x." in line for line in lines) else "_"
        return [f"for {variable} in items:", *(f"    {line}" for line in lines)]

    def _write_fields(self, struct: StructSpec, version: int) -> Iterator[str]:
        plain, tagged = self._split(struct, version)
        run: list[tuple[str, str]] = []
        for field in plain:
            value = f"x.{self.attribute(field)}"
            if field.type in FIXED and not field.is_array:
                run.append((FIXED[field.type][0], value))
                continue
            yield from self._write_run(run, "w")
            yield from self._write_field(field, version, value, "out", "w")
        if self._flexible(version) and not tagged:
            run.append(("x", ""))
        yield from self._write_run(run, "w")
        if tagged:
            yield from self._write_tagged(tagged, version)

    def _write_run(self, run: list[tuple[str, str]], w: str) -> Iterator[str]:
        if not run:
            return
        if run == [("x", "")]:
            yield f'{w}(b"\\0")'
        else:
            shape = "".join(code for code, _ in run)
            yield f"{w}(_pack_{self._shape(shape)}({', '.join(value for _, value in run if value)}))"
        run.clear()

    def _write_tagged(self, tagged: list[FieldSpec], version: int) -> Iterator[str]:
        yield "tagged = []"
        for field in tagged:
            value = f"x.{self.attribute(field)}"
            lines: list[str]
            if field.type in FIXED and not field.is_array:
                lines = list(self._write_run([(FIXED[field.type][0], value)], "inner.small.append"))
            else:
                lines = list(self._write_field(field, version, value, "inner", "inner.small.append"))
            if field.writes_null:
                yield "inner = Out()"
                yield f"if {value} is None:"
                yield '    inner.small.append(b"\\0")'
                yield "else:"
                yield from (f"    {line}" for line in lines)
                yield f"tagged.append(({field.tag}, inner))"
                continue
            yield f"if {self._differs(field, value)}:"
            yield "    inner = Out()"
            yield from (f"    {line}" for line in lines)
            yield f"    tagged.append(({field.tag}, inner))"
        yield "if tagged:"
        yield "    p.write_tags(out, tagged)"
        yield "else:"
        yield '    w(b"\\0")'

    def _differs(self, field: FieldSpec, value: str) -> str:
        """Whether a tagged field must be written."""
        if self.default(field) == "None" and self.can_be_null(field):
            return f"{value} is not None"
        if field.is_array:
            return value
        if field.struct is not None:
            name = self.default_name(field.struct)
            return f"{value} is not {name} and {value} != {name}"
        default = self.default(field)
        if field.type == "bool":
            return f"not {value}" if default == "True" else value
        return f"{value} != {default}"

    def _write_field(self, field: FieldSpec, version: int, value: str, out: str, w: str) -> Iterator[str]:
        nullable = version in field.nullable
        compact = "compact_" if self._flexible(version) else ""
        if field.tag is not None and self.can_be_null(field):
            nullable = False  # null is written by leaving the field out
        elif self.can_be_null(field) and not nullable:
            name = f"{self.attribute(field)}_"
            yield f'{name} = p.require({value}, "{field.name}")'
            value = name
        if field.is_array:
            yield from self._write_array(field, version, value, nullable, out, w)
        elif field.struct is not None:
            write = f"_write{self.function(field.struct)}({out}, ({value},), version)"
            if field.tag is not None and self.can_be_null(field):
                yield f'{w}(b"\\1")'
                yield write
            elif nullable:
                yield f"if {value} is None:"
                yield f'    {w}(b"\\xff")'
                yield "else:"
                yield f'    {w}(b"\\1")'
                yield f"    {write}"
            else:
                yield write
        elif field.type == "records":
            yield f"p.write_{compact}nullable_records({out}, {value})"
        else:
            null = "nullable_" if nullable else ""
            name = "byte_field" if field.type == "bytes" else field.type
            yield f"{w}(p.{compact}{null}{name}({value}))"

    def _write_array(
        self, field: FieldSpec, version: int, value: str, nullable: bool, out: str, w: str
    ) -> Iterator[str]:
        flexible = self._flexible(version)
        indent = ""
        name = self.attribute(field)
        yield f"{name} = {value}"
        if nullable:
            yield f"if {name} is None:"
            yield f'    {w}(b"\\0")' if flexible else f'    {w}(b"\\xff\\xff\\xff\\xff")'
            yield "else:"
            indent = "    "
        if flexible:
            yield f"{indent}n = len({name}) + 1"
            yield f"{indent}{w}(BYTE[n] if n < 128 else p.uvarint(n))"
        else:
            yield f"{indent}{w}(_pack_{self._shape('i')}(len({name})))"
        yield f"{indent}if {name}:"
        if field.struct is not None:
            yield f"{indent}    _write{self.function(field.struct)}({out}, {name}, version)"
        else:
            compact = "compact_" if flexible and field.type == "string" else ""
            yield f"{indent}    {w}(p.{compact}{ARRAYS[field.type]}({name}))"
