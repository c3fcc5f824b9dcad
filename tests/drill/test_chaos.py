"""A few seconds of the chaos drill, as a person calls it. A minute of it, and one without the ELR, are in `.ci/run`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from cli.json_shapes import mistakes

from heirlog.drill.chaos_plan import LAST_REPLICA_STANDING, faults

SEED = 7
"""last-replica-standing begins within five seconds."""
MINUTES = 0.1


# in the clear, a minute of it is in .ci/run
DOORS = ["--secure"] if sys.platform == "linux" else []


def test_seconds_of_chaos_lose_nothing_and_leave_a_picture(tmp_path: Path) -> None:
    assert LAST_REPLICA_STANDING in [fault.kind for fault in faults(SEED, 60 * MINUTES)]
    command = [sys.executable, "-m", "heirlog", "drill", "chaos", "--json"]
    options = ["--minutes", str(MINUTES), "--seed", str(SEED), "--out", str(tmp_path), "--controllers", "1", *DOORS]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["passed"] and verdict["findings"] == []
    assert not mistakes(command[3:], done.stdout)
    assert verdict["acknowledged"] > 100 and verdict["faults"][LAST_REPLICA_STANDING] == 3
    assert verdict["elections"]["elr"] > 0
    assert verdict["transactions"]["committed"] > 10 and verdict["copied"] > 100
    assert json.loads((tmp_path / "verdict.json").read_text()) == verdict
    assert verdict["timeline"] == str(tmp_path / "timeline.svg")
    picture = ElementTree.parse(tmp_path / "timeline.svg").getroot()
    texts = {one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"chaos-kept-0", "chaos-aiokafka-2", "__consumer_offsets-1", "broker 3", "operator"} <= texts
