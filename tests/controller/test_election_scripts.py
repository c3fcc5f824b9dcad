"""Elections as text that a reader who knows Kafka and no Python can judge: tests/controller/elections.

make test ARGS="tests/controller/test_election_scripts.py --rewrite"    writes what comes out into the files
"""

from __future__ import annotations

from pathlib import Path

import pytest
from controller.scripted import Script
from textscript import ScriptError, play, played

SCRIPTS = sorted((Path(__file__).parent / "elections").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_controller_does_what_the_script_says(script: Path, request: pytest.FixtureRequest) -> None:
    expected, actual = play(script, Script, rewrite=request.config.getoption("--rewrite"))
    assert actual == expected


def test_a_line_that_is_no_command_is_refused_by_name() -> None:
    with pytest.raises(ScriptError, match="there is no command fnce"):
        played("topic replicas 1 2 3\nfnce 2\n", Script())


def test_a_wrong_result_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "wrong.txt"
    script.write_text("topic replicas 1 2 3\n    leader 2  isr 1 2 3  epoch 0/0\n")
    expected, actual = play(script, Script, rewrite=False)
    assert expected != actual == "topic replicas 1 2 3\n    leader 1  isr 1 2 3  epoch 0/0\n"
    assert play(script, Script, rewrite=True) == (actual, actual) and script.read_text() == actual
