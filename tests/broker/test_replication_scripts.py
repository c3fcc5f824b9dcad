"""Replication as text that a reader who knows Kafka and no Python can judge: tests/broker/replication.

make test ARGS="tests/broker/test_replication_scripts.py --rewrite"    writes what comes out into the files
"""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.scripted import Script
from textscript import ScriptError, play, played

SCRIPTS = sorted((Path(__file__).parent / "replication").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_broker_does_what_the_script_says(script: Path, request: pytest.FixtureRequest) -> None:
    expected, actual = play(script, Script, rewrite=request.config.getoption("--rewrite"))
    assert actual == expected


def test_a_line_that_is_no_command_is_refused_by_name() -> None:
    with pytest.raises(ScriptError, match="there is no command fech"):
        played("topic replicas 1 2 3\nfech 2 at 0\n", Script())


def test_an_answer_to_a_request_that_was_not_sent_is_refused() -> None:
    with pytest.raises(ScriptError, match="broker 1 asks for no ISR"):
        played("topic replicas 1 2 3\nconfirm\n", Script())


def test_a_wrong_result_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "wrong.txt"
    script.write_text("topic replicas 1 2 3\n    leader epoch 1  isr 1 2 3  hw 1  end 0\n")
    expected, actual = play(script, Script, rewrite=False)
    assert expected != actual == "topic replicas 1 2 3\n    leader epoch 1  isr 1 2 3  hw 0  end 0\n"
