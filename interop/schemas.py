"""Our specs against the JSON schemas in Apache Kafka's jars, field by field: `python interop/schemas.py JARS`.

Every API, metadata record, control record and group record that we have a spec for is looked up in the jars by its
name. Compared are the key, the versions, the first flexible version, and of each field the versions, the type, nullable
versions, tag and default, structs and arrays of them included; of the untagged fields of each version also the order.
The classes that read and write are generated from the same specs, so what holds here holds for them.

Differences that are meant, and nothing else is:

* tagged fields from 10000 on are ours, and so are API keys from 10000 on;
* `OURS` names versions of Kafka's APIs that only heirlog has;
* `NARROWER` names schemas with versions that we do not serve (a line that is no longer true fails too);
* an untagged nullable string, bytes or records without a default in Kafka's schema begins as null here and as empty
  there: what an object holds before it is filled, never bytes on the wire;
* keys of records of classic groups and transactions have one spec with Kafka's record types as versions, as these types
  were called until 4.0.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parent.parent / "tools"
sys.path.insert(0, str(TOOLS))

from codegen.codec import snake  # noqa: E402
from codegen.generator import SPECS  # noqa: E402
from codegen.spec import FieldSpec, Spec, StructSpec, Versions, parse, parse_versions  # noqa: E402

__all__ = ["FieldSpec", "Spec", "StructSpec", "compare", "known_to_kafka", "our_specs", "snake"]

OURS_FROM = 10000
"""Tags and API keys."""
NARROWER: dict[str, str] = {}
OURS = {"ElectLeaders": 3}
"""KIP-966 gave ElectLeaders a version 3 that was never shipped."""
NEVER = Versions(1, 0)

Schema = dict[str, Any]


def schemas_in(jars: Path) -> dict[str, Schema]:
    """Every message schema of Kafka's jars, by its name."""
    found: dict[str, Schema] = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                    schema = json.loads(re.sub(r"(?m)^\s*//.*$", "", archive.read(name).decode()))
                    found[schema["name"]] = schema
    return found


def our_specs() -> list[Spec]:
    return [parse(path.read_text(), path.name) for path in sorted(SPECS.glob("*/*.spec"))]


def known_to_kafka(spec: Spec) -> range:
    """The versions of a message or record that are not ours alone."""
    if spec.kind == "api" and spec.key >= OURS_FROM:
        return range(0)
    return range(spec.versions.first, OURS.get(spec.name, spec.versions.last + 1))


def versions_of(text: str | None) -> Versions:
    return NEVER if text in (None, "none") else parse_versions(str(text))


def capital(name: str) -> str:
    """Kafka spells the fields of some records with a small first letter; the bytes do not care."""
    return name[:1].upper() + name[1:]


def our_default(field: FieldSpec) -> str:
    """The default of a field of ours in the spelling that Kafka's schemas have."""
    return kind_default(field.type, field.is_array) if field.default is None else field.default


def kind_default(kind: str, is_array: bool) -> str:
    if is_array:
        return ""
    if kind == "bool":
        return "false"
    return "0" if kind.startswith(("int", "uint")) else ""


def their_default(field: Schema) -> str:
    default = field.get("default")
    if default is None and "default" in field:
        return "null"
    if default is None:
        return kind_default(field["type"], field["type"].startswith("[]"))
    text = str(default).lower()
    return str(int(text, 16)) if text.startswith("0x") else text


class Comparison:
    """Of one block of a spec with one schema; `differences` says in words what is not equal."""

    def __init__(self, spec: Spec, block: str, schema: Schema) -> None:
        self.name = schema["name"]
        self.structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
        self.fields = 0
        self.differences: list[str] = []
        known = known_to_kafka(spec)
        self.versions = Versions(known[0], known[-1])
        self._header(spec, schema)
        versions = range(self.versions.first, self.versions.last + 1)
        self._block(spec.blocks[block].fields, schema["fields"], versions, self.name)

    def _say(self, where: str, what: str, ours: object, theirs: object) -> None:
        self.differences.append(f"{where}: {what} is {ours!r} here and {theirs!r} in Kafka")

    def _header(self, spec: Spec, schema: Schema) -> None:
        if "apiKey" in schema and schema["apiKey"] != spec.key:
            self._say(self.name, "key", spec.key, schema["apiKey"])
        theirs = versions_of(schema["validVersions"])
        if self.versions.first < theirs.first or self.versions.last > theirs.last:
            self._say(self.name, "range of versions", self.versions, theirs)
        elif self.versions != theirs and NARROWER.get(self.name) != schema["validVersions"]:
            self._say(self.name, "range of versions (unlisted)", self.versions, schema["validVersions"])
        elif self.versions == theirs and self.name in NARROWER:
            self._say(self.name, "listed as narrower", self.versions, theirs)
        flexible = versions_of(schema["flexibleVersions"])
        for version in range(self.versions.first, self.versions.last + 1):
            ours = spec.flexible is not None and version >= spec.flexible
            if ours != (version in flexible):
                self._say(f"{self.name} v{version}", "flexible", ours, not ours)

    def _block(self, ours: list[FieldSpec], theirs: list[Schema], versions: range, where: str) -> None:
        by_name = {capital(field["name"]): field for field in theirs}
        kafkas = [field for field in ours if (field.tag or 0) < OURS_FROM]
        for version in versions:
            mine = [capital(field.name) for field in kafkas if version in field.versions]
            # a field that is always tagged may leave the other versions out
            expected = [
                name
                for name, field in by_name.items()
                if version in versions_of(field.get("versions", field.get("taggedVersions")))
            ]
            tagged = {n for n in expected if version in versions_of(by_name[n].get("taggedVersions"))}
            if sorted(mine) != sorted(expected):
                self._say(f"{where} v{version}", "fields", sorted(mine), sorted(expected))
                continue
            if [n for n in mine if n not in tagged] != [n for n in expected if n not in tagged]:
                self._say(f"{where} v{version}", "order of the fields", mine, expected)
        for field in kafkas:
            other = by_name.get(capital(field.name))
            if other is not None:
                self._field(field, other, versions, f"{where}.{field.name}")

    def _field(self, ours: FieldSpec, theirs: Schema, versions: range, where: str) -> None:
        self.fields += 1
        present = [version for version in versions if version in ours.versions]
        kind = ("[]" if ours.is_array else "") + ours.type
        if kind != theirs["type"]:
            self._say(where, "type", kind, theirs["type"])
        tagged = versions_of(theirs.get("taggedVersions"))
        for version in present:
            if (ours.tag is not None) != (version in tagged):
                self._say(f"{where} v{version}", "tagged", ours.tag is not None, version in tagged)
            nullable = version in versions_of(theirs.get("nullableVersions"))
            if (version in ours.nullable) != nullable:
                self._say(f"{where} v{version}", "nullable", not nullable, nullable)
        if ours.tag is not None and ours.tag != theirs.get("tag"):
            self._say(where, "tag", ours.tag, theirs.get("tag"))
        if our_default(ours) != their_default(theirs):
            self._say(where, "default", our_default(ours), their_default(theirs))
        if ours.tag is not None and ours.nullable != NEVER and "default" not in theirs:
            self._say(where, "default of a tagged nullable field", "null", "not given")
        if ours.struct is not None:
            fields = theirs.get("fields") or self.structs[theirs["type"].removeprefix("[]")]
            self._block(ours.struct.fields, fields, range(present[0], present[-1] + 1) if present else range(0), where)


def compare(jars: Path) -> tuple[int, int, list[str]]:
    """How many messages and fields were compared, and what differs."""
    schemas = schemas_in(jars)
    messages = fields = 0
    differences: list[str] = []
    for name, spec, block in named_blocks():
        is_of_types = name.endswith("Key") and spec.versions != Versions(0, 0)
        schema = coordinator_key(schemas, spec) if is_of_types else schemas.get(name)
        if schema is None:
            differences.append(f"{name}: Kafka has no schema of that name")
            continue
        comparison = Comparison(spec, block, schema)
        messages += 1
        fields += comparison.fields
        differences += comparison.differences
    return messages, fields, differences


def coordinator_key(schemas: dict[str, Schema], spec: Spec) -> Schema | None:
    """Kafka's schemas of the record types that are the versions of a key of ours, as one schema with those versions."""
    first, last = spec.versions.first, spec.versions.last
    # of the topic's own coordinator: LegacyOffsetCommitKey beside OffsetCommitKey
    named = [schema for name, schema in sorted(schemas.items()) if name.endswith(spec.name)]
    chosen = [schema for schema in named if first <= schema["apiKey"] <= last]
    fields = [[(field["name"], field["type"], field["versions"]) for field in schema["fields"]] for schema in chosen]
    if len(chosen) != last - first + 1 or any(other != fields[0] for other in fields):
        return None
    renumbered = [{**field, "versions": "0+"} for field in chosen[-1]["fields"]]
    return {**chosen[-1], "apiKey": spec.key, "validVersions": f"{first}-{last}", "fields": renumbered}


def named_blocks() -> Iterator[tuple[str, Spec, str]]:
    for spec in our_specs():
        if spec.kind == "api" and spec.key >= OURS_FROM:
            continue
        for block in spec.blocks:
            yield spec.name + (block.capitalize() if spec.kind == "api" else ""), spec, block


def main() -> int:
    messages, fields, differences = compare(Path(sys.argv[1]))
    for line in differences:
        print(f"  {line}")
    print(f"schemas: {messages} messages and records, {fields} fields, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
