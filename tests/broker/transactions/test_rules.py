"""The rules of a transactional id as text: tests/broker/transactions/scripts.

make test ARGS="tests/broker/transactions/test_rules.py --rewrite"    writes what comes out into the files
"""

from __future__ import annotations

from pathlib import Path

import pytest
from textscript import play

from .scripted import Script

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_coordinator_decides_what_the_script_says(script: Path, request: pytest.FixtureRequest) -> None:
    expected, actual = play(script, Script, rewrite=request.config.getoption("--rewrite"))
    assert actual == expected
