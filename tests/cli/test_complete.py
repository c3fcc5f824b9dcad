"""Tab, as a shell asks for it: the command runs with the words of the line in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cli.conftest import Heirlog

from heirlog.blocking import Client
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, combined=True, ledger=False) as running:
        running.create_topic("greetings")
        running.create_topic("greens")
        running.create_topic("orders")
        with Client(running.bootstrap_servers) as client, client.transactional_producer("mover-1") as producer:
            producer.begin()
            producer.send("orders", 0, encode_batch([(None, b"v", (), 0)]))
            producer.commit()
        yield running


def offered(line: str, **environment: str) -> list[str]:
    """line: up to the place where Tab was pressed."""
    words = line.split(" ")
    asked = {"_HEIRLOG_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "heirlog"],
        env={**os.environ, **asked, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("heirlog topics describe gre", ["greens", "greetings"]),
        ("heirlog topics describe greens ord", ["orders"]),
        ("heirlog topics describe --topic ord", ["orders"]),
        ("heirlog produce greet", ["greetings"]),
        ("heirlog consume or", ["orders"]),
        ("heirlog offsets none", []),
        ("heirlog elect ord", ["orders"]),
        ("heirlog topics describe __transaction", ["__transaction_state"]),
        ("heirlog transactions describe mov", ["mover-1"]),
    ],
)
def test_names_of_the_cluster_are_offered(line: str, expected: list[str]) -> None:
    assert offered(line) == expected


def test_groups_are_offered(cluster: Cluster, heirlog: Heirlog) -> None:
    reset = heirlog("groups", "reset-offsets", "readers", "--topic", "orders", "--to-earliest", "--execute")
    assert reset.code == 0, reset.err
    assert offered("heirlog groups describe re") == ["readers"]
    assert offered("heirlog groups describe --group re") == ["readers"]


def test_contexts_are_offered(cluster: Cluster, heirlog: Heirlog) -> None:
    assert heirlog("context", "create", "staging", "-b", cluster.bootstrap_servers).code == 0
    assert offered("heirlog context use st") == ["staging"]


def test_the_option_before_it_says_which_cluster(cluster: Cluster) -> None:
    line = f"heirlog topics describe --bootstrap-server {cluster.bootstrap_servers} gre"
    assert offered(line, HEIRLOG_BOOTSTRAP="127.0.0.1:1") == ["greens", "greetings"]


def test_so_does_the_context(cluster: Cluster, heirlog: Heirlog) -> None:
    assert heirlog("context", "create", "here", "-b", cluster.bootstrap_servers).code == 0
    assert offered("heirlog topics describe --context he") == ["here"]
    line = "heirlog topics describe --context here gre"
    assert offered(line, HEIRLOG_BOOTSTRAP="127.0.0.1:1") == ["greens", "greetings"]


def test_without_a_cluster_nothing_is_offered_or_printed() -> None:
    assert offered("heirlog topics describe gre", HEIRLOG_BOOTSTRAP="127.0.0.1:1") == []
