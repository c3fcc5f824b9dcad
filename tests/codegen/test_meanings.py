from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.meanings import Meanings
from codegen.spec import BadSpec, parse
from heirlog.protocol import messages, records
from heirlog.protocol.messages import VoteRequest
from heirlog.protocol.primitives import Struct

SPEC = """
api Move
key 1
versions 0-0
flexible 0+

request
  Epoch int32
  Pieces []Piece
    Epoch int32
    Side string       # Side of the board.
"""


def meanings(text: str, folder: Path) -> Meanings:
    file = folder / "fields.txt"
    file.write_text(text)
    return Meanings(file)


def test_the_last_line_that_matches_the_holder_counts(tmp_path: Path) -> None:
    found = meanings("Epoch: Of a request.\nEpoch @ */Piece, */Other: Of a piece.\n", tmp_path)
    move = parse(SPEC, "move.spec").blocks["request"]
    pieces = move.fields[1].struct
    assert pieces is not None
    assert found.of(move.fields[0], "MoveRequest") == "Of a request."
    assert found.of(pieces.fields[0], "MoveRequest/Piece") == "Of a piece."


def test_a_comment_on_the_line_of_a_field_is_its_meaning(tmp_path: Path) -> None:
    pieces = parse(SPEC, "move.spec").blocks["request"].fields[1].struct
    assert pieces is not None
    assert meanings("Side: Another.\n", tmp_path).of(pieces.fields[1], "MoveRequest/Piece") == "Side of the board."


def test_a_field_without_a_meaning_is_refused(tmp_path: Path) -> None:
    move = parse(SPEC, "move.spec").blocks["request"]
    with pytest.raises(BadSpec, match=r"MoveRequest\.Epoch: say in specs/fields\.txt"):
        meanings("Epoch @ */Piece: Of a piece.\n", tmp_path).of(move.fields[0], "MoveRequest")


def test_a_line_that_no_field_needs_is_found(tmp_path: Path) -> None:
    move = parse(SPEC, "move.spec").blocks["request"]
    found = meanings("Epoch: Of a request.\nRound: Number of the round.\n", tmp_path)
    found.of(move.fields[0], "MoveRequest")
    assert found.unused() == ["Round: Number of the round."]


def test_a_line_without_a_meaning_is_named_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match=r"fields.txt:2: not of the form"):
        meanings("# head\nEpoch\n", tmp_path)


def structs_of(cls: type[Struct]) -> Iterator[type[Struct]]:
    yield cls
    for name, nested in vars(cls).items():
        if name != "KIND" and inspect.isclass(nested) and issubclass(nested, Struct):
            yield from structs_of(nested)


def test_every_field_of_every_message_and_record_has_a_docstring() -> None:
    classes = [getattr(messages, name) for name in messages.MODULES]
    classes += [found for found in vars(records).values() if inspect.isclass(found) and issubclass(found, Struct)]
    structs = [struct for cls in classes for struct in structs_of(cls)]
    assert not [(cls, name) for cls in structs for name in cls.FIELDS if not inspect.getdoc(getattr(cls, name))]
    assert inspect.getdoc(VoteRequest.cluster_id) == "Id of the cluster."
