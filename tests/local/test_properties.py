"""server.properties is Java's format."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.local import properties
from heirlog.local.errors import LocalError


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
        ("a=b\\  ", {"a": "b "}),
        ("folder=C:\\\\data\\\\1", {"folder": "C:\\data\\1"}),
        ("a=\\u00e9\\t\\q\\#", {"a": "\u00e9\tq#"}),
        ("a\\ b\\=c\\:=1", {"a b=c:": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\\\\\n2", {"a": "1\\2"}),
        ("a=1,\\\n# no comment", {"a": "1,# no comment"}),
        ("a=\\  two blanks", {"a": "  two blanks"}),
        ("a=ends with a backslash\\", {"a": "ends with a backslash"}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert properties.parse(text) == expected


@pytest.mark.parametrize(
    "value",
    ["PLAINTEXT://127.0.0.1:9092", "C:\\new\\", "  b", "a\nb\r\t\f", "", "#=:! é", " ", "  ", "b ", "b\\ ", "\\u0041"],
)
def test_what_is_rendered_is_read_back(value: str) -> None:
    given = {"node.id": "1", "listeners": value, "last": "x"}
    assert properties.parse(properties.render(given, "two\nlines")) == given


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"there is no configuration file .*gone\.properties"):
        properties.read(tmp_path / "gone.properties")


@pytest.mark.parametrize("value", ["true", "false"])
def test_older_metadata_are_accepted_by_the_flag_of_one_start_and_never_by_a_file(tmp_path: Path, value: str) -> None:
    name = "heirlog.accept.older.metadata"
    path = tmp_path / "server.properties"
    given = {"node.id": "1", "process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"}
    given |= {"controller.listener.names": "CONTROLLER", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    given["log.dirs"] = str(tmp_path)
    path.write_text(properties.render(given, "a broker"))
    assert properties.read_static(path, {name: "true"})[name]
    path.write_text(properties.render({**given, name: value}, "a broker"))
    with pytest.raises(LocalError, match=rf"{name} is for one start only.*--accept-older-metadata"):
        properties.read_static(path)
