"""Each rack of three loses power, on real processes, as a person plays it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cli.json_shapes import mistakes


def test_no_acknowledged_record_is_lost_and_every_partition_is_led_while_a_rack_is_away(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "heirlog", "drill", "rack", "--json", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not mistakes(command[3:], done.stdout)
    assert found["passed"] and not found["failures"]
    assert (found["lost"], found["changed_values"], found["readable"]) == (0, 0, found["acknowledged"])
    assert [outage["brokers"] for outage in found["outages"]] == [[1, 4], [2, 5], [3, 6]]
    assert all(outage["acknowledged"] >= 12 * 100 for outage in found["outages"])
    picture = (tmp_path / "timeline.svg").read_text()
    assert picture.count("killed, and its unflushed bytes lost") == 6 and "acknowledged, acks=all" in picture
    assert all(f">rack-{partition}<" in picture for partition in range(12))
