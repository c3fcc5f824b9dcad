"""Files that are whole or not there, and places that one process has."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.spark.pipeline.files import locked, read_json, replacing, unfinished, write_json
from heirlog.spark.pipeline.spec import PipelineError


def test_two_runs_on_one_place_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "not there yet" / "lake"
    with locked(place), pytest.raises(PipelineError, match="another run or compaction"), locked(place):
        pass
    with locked(place):
        pass


def test_a_file_keeps_its_content_until_the_new_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    assert read_json(file) == {}
    write_json(file, {"n": 1})
    with pytest.raises(OSError, match="cut"), replacing(file) as handle:
        handle.write(b"{")
        raise OSError("cut")
    assert read_json(file) == {"n": 1} and unfinished(file).exists()
    write_json(file, {"n": 2})
    assert read_json(file) == {"n": 2} and not unfinished(file).exists()
