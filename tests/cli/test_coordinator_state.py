"""A group whose coordinator cannot write: what is missing is named, and what ends by itself ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cli.conftest import Heirlog
from patience import eventually

from heirlog.blocking import Client
from heirlog.cli import coordinator_state, group_reader, waiting
from heirlog.cli.coordinator_state import explaining, why_unavailable
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, config={"min.insync.replicas": 2}) as running:
        yield running


def test_a_member_says_which_brokers_are_missing_and_gives_up_with_until_end(
    heirlog: Heirlog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("t")
    assert heirlog("consume", "t", "-e", "-g", "g").code == 0
    with Client(cluster.bootstrap_servers) as client:
        assert why_unavailable(client, "g") is None
        cluster.kill(1)
        # a partition without a leader comes first, and then its ISR is too small
        is_below = "-[0-9]+, where its state is, is below min ISR, so nothing can be written: start the brokers 1"
        eventually(lambda: "is below min ISR" in (why_unavailable(client, "g") or ""), "the other broker leads")
    monkeypatch.setattr(waiting, "SAID_EVERY_S", 0.1)
    monkeypatch.setattr(group_reader, "LOST_S", 2.0)
    ended = heirlog("consume", "t", "-e", "-g", "g")
    assert ended.code == 1 and ended.out == ""
    *said, last = ended.err.splitlines()
    assert len(said) == 1, "once"
    for line, begin in (
        (said[0], "waiting for the coordinator of group g"),
        (last, "heirlog: group g had no coordinat"),
    ):
        assert line.startswith(begin)
        assert re.search(f"__consumer_offsets{is_below}", line), line
    cluster.start(1)
    cluster.wait_until_ready()
    eventually(lambda: explaining(cluster.bootstrap_servers)("g") is None, "the ISR has grown")
    assert heirlog("consume", "t", "-e", "-g", "g").code == 0


def test_without_a_broker_nothing_is_found() -> None:
    assert coordinator_state.explaining("127.0.0.1:1")("g") is None
