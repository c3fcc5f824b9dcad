"""Our specs against the schemas that kafka-python carries: the second oracle, which also knows Kafka's own spelling."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from codegen.generator import SPECS as GENERATOR_SPECS
from codegen.spec import FieldSpec, Spec, Versions, parse, parse_versions

RESOURCES = files("kafka.protocol.schemas") / "resources"
SPECS = GENERATOR_SPECS / "messages"


def _both() -> Iterator[tuple[str, Spec, dict[str, Any]]]:
    for path in sorted(SPECS.iterdir(), key=lambda path: path.name):
        spec = parse(path.read_text(), path.name)
        for kind in spec.blocks:
            resource = RESOURCES / f"{spec.name}{kind.capitalize()}.json"
            if resource.is_file():
                yield kind, spec, json.loads(re.sub(r"(?m)^\s*//.*$", "", resource.read_text()))


PAIRS = list(_both())


def _range(text: str | None) -> Versions:
    return Versions(1, 0) if text in (None, "none") else parse_versions(str(text))


def _common(theirs: dict[str, Any]) -> dict[str, Any]:
    return {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}


def _compare(
    ours: list[FieldSpec], theirs: list[dict[str, Any]], common: dict[str, Any], versions: range, where: str
) -> None:
    by_name = {field["name"]: field for field in theirs}
    for version in versions:
        expected = [f["name"] for f in theirs if version in _range(f["versions"])]
        present = [f.name for f in ours if version in f.versions and (f.tag or 0) < 10000]
        assert sorted(present) == sorted(expected), f"{where} v{version}"
        untagged = [n for n in expected if version not in _range(by_name[n].get("taggedVersions"))]
        assert [f.name for f in ours if f.name in untagged and version in f.versions] == untagged, f"{where} v{version}"
    for field in ours:
        if (field.tag or 0) >= 10000 or field.versions.first > versions[-1]:
            continue
        other = by_name[field.name]
        present_in = [v for v in versions if v in field.versions]
        assert field.tag == other.get("tag"), field
        assert ("[]" if field.is_array else "") + field.type == other["type"].replace("[]", "[]"), field
        for version in present_in:
            assert (version in field.nullable) == (version in _range(other.get("nullableVersions"))), (where, field)
        if field.struct is None and not field.is_array:
            _compare_default(field, other)
        if field.struct is not None:
            fields = other.get("fields") or common[field.type]
            used = range(min(present_in), max(present_in) + 1)
            if field.type in common:
                used = range(used.start, used.stop)
            _compare(field.struct.fields, fields, common, used, f"{where}.{field.name}")


def _compare_default(field: FieldSpec, other: dict[str, Any]) -> None:
    theirs = other.get("default")
    if field.type in ("bool", "string", "bytes", "records", "uuid"):
        assert (field.default or "false") == str(theirs or "false").lower(), field
    else:
        assert int(field.default or 0) == int(str(theirs or 0), 0), field


@pytest.mark.parametrize(("kind", "spec", "theirs"), PAIRS, ids=[f"{spec.name}-{kind}" for kind, spec, _ in PAIRS])
def test_a_spec_says_what_kafkas_schema_says(kind: str, spec: Spec, theirs: dict[str, Any]) -> None:
    assert spec.key == theirs["apiKey"]
    known = _range(theirs["validVersions"])
    versions = range(max(spec.versions.first, known.first), min(spec.versions.last, known.last) + 1)
    _compare(spec.blocks[kind].fields, theirs["fields"], _common(theirs), versions, f"{spec.name}{kind}")


def test_most_client_apis_are_compared() -> None:
    assert len(PAIRS) >= 25
