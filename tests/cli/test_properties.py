"""server.properties is Java's format."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.cli import properties
from heirlog.cli.errors import CommandError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 \n", {"a": "1"}),
        ("a: 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a  =  1 2", {"a": "1 2"}),
        ("# a=1\n! b=2\n\nc=3", {"c": "3"}),
        ("listeners=PLAINTEXT://127.0.0.1:9092", {"listeners": "PLAINTEXT://127.0.0.1:9092"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1,\\\n   2", {"a": "1,2"}),
        ("empty=", {"empty": ""}),
        ("alone", {"alone": ""}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert properties.parse(text) == expected


def test_what_is_rendered_is_read_back() -> None:
    given = {"node.id": "1", "listeners": "PLAINTEXT://127.0.0.1:9092"}
    assert properties.parse(properties.render(given, "two\nlines")) == given


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"there is no configuration file .*gone\.properties"):
        properties.read(tmp_path / "gone.properties")
