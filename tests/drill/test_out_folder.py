"""The folder of a drill is there before the drill begins, and holds no file of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.drill.observe import DrillFailure
from heirlog.drill.out_folder import VERDICT, created, has_verdict, remove_if_empty


def test_without_a_name_each_drill_gets_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [created("drill-rack", None).name for _ in range(3)] == ["drill-rack", "drill-rack-2", "drill-rack-3"]
    (tmp_path / "drill-rack-2" / VERDICT).touch()
    for name in ("drill-rack", "drill-rack-2"):
        remove_if_empty(tmp_path / name)
    assert created("drill-rack", None) == tmp_path / "drill-rack"
    assert has_verdict(tmp_path / "drill-rack-2")


def test_a_folder_of_an_earlier_drill_is_emptied_and_another_one_refused(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    assert created("", out) == out and out.is_dir()
    (out / "notes.txt").touch()
    with pytest.raises(DrillFailure, match="out holds files that are not of a drill: name a new folder with --out"):
        created("", out)
    for name in (VERDICT, "timeline.svg", "faults.json", "node-1.log"):
        (out / name).touch()
    (out / "metadata-100").mkdir()
    assert created("", out) == out
    assert [path.name for path in out.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_created_is_refused_before_the_drill(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DrillFailure, match=f"{name} cannot be created .*: name another folder with --out"):
        created("", tmp_path / name)


def test_a_folder_in_proc_is_refused_for_root_too() -> None:
    with pytest.raises(DrillFailure, match="/proc/heirlog cannot be created"):
        created("", Path("/proc/heirlog"))
