"""scripts/prose.py finds what it is for. `make lint` runs it on what users read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import prose
from prose import Text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the client is told the leader", "is told"),
        ("the client is\ntold the leader", "is told"),
        ("Nothing comes back by itself: repair it", "nothing comes back by itself"),
        ("an ACL is somebody's", "somebody"),
        ("was not asked: the time is over", "the time is over"),
        ("It goes on with the others.", "goes on"),
        ("run again to go on", "go on"),
        ("the index is made again", "is made again"),
        ("User:alice is no principal", "is no principal"),
    ],
)
def test_a_phrase_that_slows_the_reader_is_found(text: str, found: str) -> None:
    assert found in [finding.found for finding in prose.phrases_in(Text("page.md", 1, text))]


@pytest.mark.parametrize(
    "text", ["there is no topic orders", "stood out", "depending on what goes on disk", "overlies"]
)
def test_plain_words_are_left_as_they_are(text: str) -> None:
    assert list(prose.phrases_in(Text("page.md", 1, text))) == []


def test_a_finding_names_its_line() -> None:
    (finding,) = prose.phrases_in(Text("page.md", 10, "one\ntwo\nand nobody else"))
    assert (finding.where, finding.line) == ("page.md", 12)


def test_code_is_not_prose() -> None:
    page = "before\n```sh\necho nobody\n```\n`nobody` after\n"
    assert list(prose.phrases_in(Text("page.md", 1, prose.prose_of(page)))) == []
    assert prose.prose_of(page).count("\n") == page.count("\n")


def test_a_cell_of_more_than_300_characters_is_found_unless_it_lists_tests() -> None:
    tests = ", ".join(["`tests/broker/test_partition.py::test_a_name`"] * 10)
    table = f"| a | b |\n|---|---|\n| {'word ' * 61} | x |\n| short | {tests} |\n"
    assert [finding.line for finding in prose.long_cells_in(Text("page.md", 1, table))] == [3]


def test_a_code_needs_an_explanation_or_a_link() -> None:
    assert [finding.found for finding in prose.codes_in(Text("page.md", 1, "plays U11 without guard 8"))] == [
        "U11",
        "guard 8",
    ]
    linked = "plays U11 ([Simulation](../internals/simulation.md))"
    assert list(prose.codes_in(Text("page.md", 1, linked))) == []


def test_messages_and_the_help_of_commands_are_read_and_other_docstrings_are_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Module of nobody."""\n'
        '@app.command("up")\n'
        "def up():\n"
        '    """Start it, nobody knows why."""\n'
        '    raise Error(f"{x} nobody leads")\n'
        "def other():\n"
        '    """Not read."""\n'
    )
    read = [text.text for text in prose.messages(module, tmp_path)]
    assert read == ["Start it, nobody knows why.", "X nobody leads"]


def test_docstrings_and_comments_of_plain_packages_are_read(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Module of nobody."""\n'
        "# a block that is\n"
        "# told over two lines\n"
        "name = 'nobody'  # beside code\n"
        '"""Attribute."""\n'
    )
    texts = list(prose.docstrings_and_comments(module, tmp_path))
    assert texts == [
        ("module.py", 1, "Module of nobody."),
        ("module.py", 5, "Attribute."),
        ("module.py", 2, "a block that is\ntold over two lines"),
        ("module.py", 4, "beside code"),
    ]
    assert [finding.line for text in texts for finding in prose.phrases_in(text)] == [1, 2, 4]


def test_every_plain_package_exists() -> None:
    assert [name for name in prose.PLAIN if not (prose.ROOT / "src" / "heirlog" / name).is_dir()] == []


def test_an_exception_without_a_finding_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prose, "ALLOWED", tmp_path / "allowed.txt")
    monkeypatch.setattr(prose, "findings", lambda: prose.phrases_in(Text("page.md", 1, "nobody")))
    prose.ALLOWED.write_text("# file | phrase | why\npage.md | nobody | a name\n")
    assert prose.main() == 0
    prose.ALLOWED.write_text("page.md | nobody | a name\nother.md | nobody | a name\n")
    assert prose.main() == 1
    assert "other.md has no 'nobody' any more" in capsys.readouterr().out
