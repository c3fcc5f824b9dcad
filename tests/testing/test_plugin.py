"""The pytest plug-in, as a project that uses it sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import pytest
from heirlog.testing import Cluster

@pytest.fixture(scope="session")
def heirlog_shared_arguments():
    return {"nodes": 1, "combined": True}

@pytest.fixture(scope="module")
def own():
    with Cluster(nodes=1, combined=True) as cluster:
        yield cluster
"""
TESTS = """
def test_shares(heirlog_shared_cluster):
    heirlog_shared_cluster.create_topic("t")

def test_shares_the_same(heirlog_shared_cluster):
    assert heirlog_shared_cluster.brokers == [1]
    heirlog_shared_cluster.create_topic("t")

def test_fails_with_a_fixture_of_its_own(own):
    assert False, "wrong"

def test_fails_with_a_closed_one(own):
    own.close()
    assert False, "closed"

def test_fails_without_a_cluster():
    assert False, "none"
"""


def run(folder: Path, *arguments: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    base = ("-p", "no:cacheprovider", "--basetemp", str(folder / "base"))
    command = [sys.executable, "-m", "pytest", *base, *arguments, "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@pytest.mark.parametrize("asked", [False, True])
def test_a_failed_test_names_the_files_with_what_its_nodes_printed(tmp_path: Path, asked: bool) -> None:
    said = run(tmp_path, *(["--heirlog-logs"] if asked else []))
    assert "4 failed, 1 passed" in said
    assert "ClusterError: a topic cannot be created: Topic 't' already exists" in said, "the cluster is the same one"
    copied = sorted(folder.name for folder in (tmp_path / "base").glob("heirlog-logs-*0"))
    assert copied == [
        "heirlog-logs-test_it-py-test_fails_with_a_fixture_of_its_own-own0",
        "heirlog-logs-test_it-py-test_shares_the_same-heirlog_shared_cluster0",
    ]
    assert [line for folder in copied for line in said.splitlines() if folder in line]
    assert all((tmp_path / "base" / folder / "node-1.log").read_text().startswith("{") for folder in copied)
    assert ("output of node 1 of own" in said) == asked
    assert ('"event":' in said) == asked, "JSON only on request"


def test_a_wrong_marker_is_answered_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
import pytest

@pytest.mark.heirlog(node=1)
def test_misspelt(heirlog_cluster):
    pass

@pytest.mark.heirlog(nodes=1, config={"num.partition": 3})
def test_misspelt_configuration(heirlog_cluster):
    pass

@pytest.mark.heirlog(nodes=1)
def test_without_effect():
    pass
"""
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "base")]
    said = subprocess.run([*command, "test_it.py"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert "1 passed" in said and "2 errors" in said, said
    assert "@pytest.mark.heirlog has no argument node; did you mean nodes?" in said
    assert "did you mean num.partitions?" in said
    assert "During handling" not in said, "each sentence once"
    assert "@pytest.mark.heirlog has no effect" in said
    assert "plugin.py:" not in said and "def __init__" not in said, "no source of heirlog"
