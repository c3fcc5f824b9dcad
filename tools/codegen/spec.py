"""Reads our spec files: what a message looks like in each of its versions.

A spec is a header and one or two blocks of fields; a deeper indented block holds the fields of a struct:

    api Vote                                    or `record TopicRecord`, `control VotersRecord`, `data OffsetCommitKey`
    key 52
    versions 0-2
    flexible 0+                                 or `none`
    ours 3+                                     versions that Apache Kafka does not have; seldom there

    request                                     an api has `request` and `response`, a record has `fields`
      ClusterId string nullable default=null
      VoterId int32 1+ default=-1
      Topics []TopicData
        TopicName string

A field line is a name in Kafka's spelling, a type, and what differs from the usual:

    1+, 0-4, 2         versions that have the field (else all versions that have its struct)
    nullable           may be null in all of them; `nullable=7+` in some
    tag=0              is a tagged field; tags from 10000 on are ours
    default=-1         else zero, false, "", an empty array, zeros; null for nullable strings and bytes
    null=written       of a tagged struct: null is written, too; what is left out is an empty struct for Kafka
    # text             what the field means; without it, `fields.txt` says it by the name of the field

A struct that is used twice is written out at its first use. Types: bool, int8, int16, uint16, int32, int64, float64,
string, bytes, records, uuid, the name of a struct, and `[]` before any of them for an array.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NEWEST = 32766
"""Upper end of an open range."""


class BadSpec(ValueError):
    """A spec file that cannot be read; says file, line and why."""


@dataclass(frozen=True, slots=True)
class Versions:
    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


ALWAYS = Versions(0, NEWEST)
NEVER = Versions(1, 0)


@dataclass(slots=True)
class FieldSpec:
    name: str
    type: str
    """Without `[]`."""
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: str | None
    """As written in the spec; None if it has none."""
    meaning: str | None = None
    """The comment on the field's line."""
    struct: StructSpec | None = None
    writes_null: bool = False


@dataclass(slots=True)
class StructSpec:
    name: str
    fields: list[FieldSpec] = field(default_factory=list)


@dataclass(slots=True)
class Spec:
    kind: str
    """api, record, control or data."""
    name: str
    key: int
    versions: Versions
    flexible: int | None
    ours: int | None
    """The first version that Apache Kafka does not have; None: all are Kafka's."""
    blocks: dict[str, StructSpec]


def parse_versions(text: str) -> Versions:
    match = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
    if match is None:
        raise ValueError(f"{text!r} is no range of versions")
    first = int(match[1])
    if match[2] is None:
        return Versions(first, first)
    return Versions(first, int(match[3]) if match[3] else NEWEST)


def parse(text: str, file: str) -> Spec:
    """Raises BadSpec."""
    header: dict[str, str] = {}
    blocks: dict[str, StructSpec] = {}
    stack: list[tuple[int, StructSpec]] = []
    known: dict[str, StructSpec] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content, _, comment = (part.rstrip() for part in line.partition("#"))
        if not content:
            continue
        indent = len(content) - len(content.lstrip())
        words = content.split()
        try:
            if indent == 0 and len(words) == 2:
                header[words[0]] = words[1]
            elif indent == 0:
                known = {}
                blocks[words[0]] = StructSpec(words[0])
                stack = [(0, blocks[words[0]])]
            else:
                _parse_field(words, comment.strip() or None, indent, stack, known)
        except (ValueError, IndexError) as error:
            raise BadSpec(f"{file}:{number}: {error}") from error
    kind = next(iter(header), "")
    if kind not in ("api", "record", "control", "data") or not blocks:
        raise BadSpec(f"{file}: begins with none of api, record, control, data, or has no fields block")
    flexible = header["flexible"]
    return Spec(
        kind=kind,
        name=header[kind],
        key=int(header["key"]),
        versions=parse_versions(header["versions"]),
        flexible=None if flexible == "none" else parse_versions(flexible).first,
        ours=parse_versions(header["ours"]).first if "ours" in header else None,
        blocks=blocks,
    )


def _parse_field(
    words: list[str],
    meaning: str | None,
    indent: int,
    stack: list[tuple[int, StructSpec]],
    known: dict[str, StructSpec],
) -> None:
    while stack[-1][0] >= indent:
        stack.pop()
    name, type_text, *rest = words
    versions, nullable, tag, default, writes_null = ALWAYS, NEVER, None, None, False
    for word in rest:
        key, _, value = word.partition("=")
        if key == "nullable":
            nullable = parse_versions(value) if value else ALWAYS
        elif key == "tag":
            tag = int(value)
        elif key == "default":
            default = value
        elif word == "null=written":
            writes_null = True
        else:
            versions = parse_versions(word)
    item_type = type_text.removeprefix("[]")
    spec = FieldSpec(name, item_type, item_type != type_text, versions, nullable, tag, default, meaning)
    spec.writes_null = writes_null
    if item_type[0].isupper():
        if item_type not in known:
            known[item_type] = StructSpec(item_type)
        spec.struct = known[item_type]
        # the fields of a second use are already there: nothing deeper follows it
        stack[-1][1].fields.append(spec)
        stack.append((indent, spec.struct))
    else:
        stack[-1][1].fields.append(spec)
