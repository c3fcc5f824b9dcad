"""What `heirlog audit` refuses, before it starts Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Heirlog

META = "version=1\ncluster.id={}\ndirectory.id=zJUsrF22Sdmon5sPJIFpj{}\nnode.id={}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return formatted(tmp_path / "log", 1)


def formatted(path: Path, node: int, cluster: str = "c", letter: str = "A") -> Path:
    path.mkdir()
    (path / "meta.properties").write_text(META.format(cluster, letter, node))
    return path


def refused(heirlog: Heirlog, *arguments: object) -> str:
    found = heirlog("audit", *map(str, arguments))
    assert (found.code, found.out) == (2, "")
    return found.err


def test_folders_that_cannot_be_audited_are_refused(heirlog: Heirlog, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "there is no directory" in refused(heirlog, tmp_path / "nowhere", "--out", out)
    other = tmp_path / "empty"
    other.mkdir()
    assert "has no meta.properties" in refused(heirlog, other, "--out", out)
    assert "copies of the same log directory of node 1" in refused(
        heirlog, folder, formatted(tmp_path / "copy", 1), "--out", out
    )
    assert "of one cluster" in refused(heirlog, folder, formatted(tmp_path / "foreign", 2, "d", "g"), "--out", out)
    (folder / "meta.properties").write_text("version=7\n")
    assert "is damaged" in refused(heirlog, folder, "--out", out)
    (folder / "meta.properties").write_text(META.format("c", "A", 1))
    assert "no log of a partition" in refused(heirlog, folder, "--out", out)
    assert not out.exists()


def with_a_log(folder: Path) -> Path:
    (folder / "orders-0").mkdir()
    (folder / "orders-0" / f"{0:020d}.log").touch()
    return folder


def test_a_place_for_the_tables_that_holds_something_else_is_refused(
    heirlog: Heirlog, folder: Path, tmp_path: Path
) -> None:
    with_a_log(folder)
    assert "is inside" in refused(heirlog, folder, "--out", folder / "audit")
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert "not of an audit" in refused(heirlog, folder, "--out", out)
    assert "is a file" in refused(heirlog, folder, "--out", out / "thesis.txt")
    assert "NAME=VALUE" in refused(heirlog, folder, "--out", tmp_path / "new", "--conf", "x")
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("lock", ["flock", "lockf"], ids=["heirlog", "Apache Kafka"])
def test_the_directory_of_a_running_node_is_refused(heirlog: Heirlog, folder: Path, tmp_path: Path, lock: str) -> None:
    (with_a_log(folder) / ".lock").touch()
    program = f"""import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.{lock}(file, fcntl.LOCK_EX)
print("locked", flush=True)
input()"""
    command = [sys.executable, "-c", program, str(folder / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None
        node.stdout.readline()
        assert "in use by a running node" in refused(heirlog, folder, "--out", tmp_path / "out")
        node.communicate(b"\n")
