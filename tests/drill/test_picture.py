"""A drill that cannot go on leaves a picture of how far it came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heirlog.drill.observe import DrillFailure
from heirlog.drill.picture import RecordedCluster, Recording


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("led", "unled"):
        (tmp_path / name).mkdir()
    return tmp_path


def failed(recording: Recording, cluster: RecordedCluster, why: str) -> str:
    with pytest.raises(DrillFailure) as raised, recording.of_failures(cluster):
        recording.progress.step("the script began")
        raise DrillFailure(why)
    return str(raised.value)


def test_a_state_that_is_not_reached_is_drawn_with_leaders_or_without_a_controller(folders: Path) -> None:
    with RecordedCluster(nodes=1, controllers=1) as cluster:
        cluster.create_topic("drilled", partitions=1)
        recording = Recording("rack", folders / "led")
        assert failed(recording, cluster, "waited 60 s") == f"waited 60 s; picture: {folders / 'led' / 'timeline.svg'}"
        picture = (folders / "led" / "timeline.svg").read_text()
        assert "Drill rack: FAILED" in picture and "waited 60 s" in picture and "the script began" in picture
        assert ">drilled-0<" in picture
        verdict = json.loads((folders / "led" / "verdict.json").read_text())
        assert verdict == {"drill": "rack", "passed": False, "failure": "waited 60 s"}
        cluster.kill(cluster.controllers[0])
        failed(Recording("rack", folders / "unled"), cluster, "no controller")
        picture = (folders / "unled" / "timeline.svg").read_text()
        assert "no controller could be asked" in picture and ">drilled-0<" not in picture and ">broker 1<" in picture


def test_other_errors_are_not_taken_for_the_end_of_a_drill(tmp_path: Path) -> None:
    recording = Recording("rack", tmp_path)
    with pytest.raises(ZeroDivisionError), recording.of_failures(RecordedCluster(nodes=1)):
        1 / 0  # noqa: B018
    assert not list(tmp_path.iterdir())
