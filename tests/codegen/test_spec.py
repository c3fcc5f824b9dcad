from __future__ import annotations

import pytest

from codegen.spec import ALWAYS, NEVER, BadSpec, Versions, parse

HEAD = "record Thing\nkey 7\nversions 0-2\nflexible 1+\n\nfields\n"


def test_a_field_says_what_differs_from_the_usual() -> None:
    spec = parse(HEAD + "  Names []string 1-2 nullable=2 tag=3 default=null\n  Id int32 default=-1  # why\n", "f")
    names, number = spec.blocks["fields"].fields
    assert (spec.kind, spec.name, spec.key, spec.versions, spec.flexible) == ("record", "Thing", 7, Versions(0, 2), 1)
    assert (names.type, names.is_array, names.versions, names.nullable) == (
        "string",
        True,
        Versions(1, 2),
        Versions(2, 2),
    )
    assert (names.tag, names.default) == (3, "null")
    assert (number.versions, number.nullable, number.tag, number.default) == (ALWAYS, NEVER, None, "-1")


def test_deeper_lines_are_the_fields_of_a_struct_and_a_second_use_shares_it() -> None:
    spec = parse(HEAD + "  Voters []Voter\n    Id int32\n    Hosts []string\n  Granting []Voter\n  End int8\n", "f")
    voters, granting, end = spec.blocks["fields"].fields
    assert voters.struct is granting.struct
    assert voters.struct is not None
    assert [field.name for field in voters.struct.fields] == ["Id", "Hosts"]
    assert end.type == "int8"


@pytest.mark.parametrize(
    ("text", "reason"),
    [(HEAD + "  Id int32 7x\n", "f:7: '7x' is no range"), (HEAD + "  Id\n", "f:7"), ("key 7\n", "begins with none of")],
)
def test_a_bad_spec_names_file_and_line(text: str, reason: str) -> None:
    with pytest.raises(BadSpec, match=reason):
        parse(text, "f")
