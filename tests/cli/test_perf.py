"""Figures of throughput and latency: true ones, of records that were acknowledged."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from cli.conftest import Heirlog, rows
from cli.test_consume import reading
from hypothesis import given
from hypothesis import strategies as st
from patience import eventually

from heirlog.blocking import Client
from heirlog.cli import perf, waiting
from heirlog.cli.perf import Came, Latencies, Load
from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        yield running


@given(st.lists(st.floats(min_value=0.001, max_value=1e6), min_size=1), st.sampled_from([1, 50, 95, 99.9, 100]))
def test_a_percentile_is_at_most_one_percent_above_a_true_one(values: list[float], percent: float) -> None:
    latencies = Latencies()
    for value in values:
        latencies.add(value, 1)
    true = sorted(values)[max(0, -int(-len(values) * percent // 100) - 1)]
    assert true * 0.999 <= latencies.percentile_ms(percent) <= true * 1.011
    assert latencies.longest_ms == max(values)
    assert latencies.mean_ms == pytest.approx(sum(values) / len(values))


def test_without_records_there_is_no_latency() -> None:
    assert (Latencies().mean_ms, Latencies().percentile_ms(99)) == (0.0, 0.0)


@pytest.mark.usefixtures("default_cluster")
def test_what_was_produced_is_in_the_topic_and_is_consumed(heirlog: Heirlog, cluster: Cluster) -> None:
    cluster.create_topic("perf", partitions=3)
    empty = heirlog("perf", "consume", "perf")
    assert (empty.code, "heirlog perf produce perf" in empty.err) == (1, True)
    wrote = heirlog("perf", "produce", "perf", "--num-records", "1000", "--record-size", "100", "--json")
    found = json.loads(wrote.out)
    assert (found["records"], found["bytes"]) == (1000, 100_000)
    latency = found["latency_ms"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]
    offsets = [row["offsets"] for row in rows(heirlog, "offsets", "perf")]
    assert sum(offsets) == 1000 and min(offsets) > 0
    assert json.loads(heirlog("perf", "consume", "perf", "--json").out)["records"] == 1000
    some = json.loads(heirlog("perf", "consume", "perf", "--num-records", "1", "--json").out)["records"]
    assert 1 <= some <= 1000
    assert heirlog("perf", "consume", "--topic", "perf", "--num-records", "1").code == 0
    assert "name one topic" in heirlog("perf", "consume", "perf", "--topic", "perf").err
    cluster.create_topic("compressed")
    wrote = heirlog(
        *("perf", "produce", "--topic", "compressed", "--num-records", "50", "--record-size", "1000"),
        *("--acks", "-1", "--compression", "zstd"),
    )
    assert wrote.out.startswith("50 records sent, ") and "ms 99.9th." in wrote.out
    assert "MB are those of the values, before compression" in wrote.err
    assert "MB are those of the batches as they are stored, compressed" in heirlog("perf", "consume", "compressed").err
    stored = json.loads(heirlog("perf", "consume", "compressed", "--json").out)["bytes"]
    assert stored > 50_000, "each value is another one: the same one would be a fraction"


def test_an_outage_is_named_while_it_lasts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "SAID_EVERY_S", 0.2)
    cluster.create_topic("outage")
    said = ""

    def is_said(what: str) -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return what in said

    with Client(cluster.bootstrap_servers) as client:
        load = Load(client, perf.ALL, "outage", 1, 100, 0)
        thread = threading.Thread(target=load.run, args=(500, 100.0))
        thread.start()
        eventually(lambda: load.latencies.count > 0 and is_said("of 500 acknowledged"))
        cluster.kill(cluster.brokers[0])
        eventually(lambda: is_said(" of 500 acknowledged, none in the last "))
        cluster.start(cluster.brokers[0])
        thread.join(60)
    assert load.latencies.count == 500


@pytest.mark.usefixtures("default_cluster")
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_what_was_measured_until_ctrl_c_is_shown(heirlog: Heirlog, cluster: Cluster, option: list[str]) -> None:
    topic = f"cut{len(option)}"
    cluster.create_topic(topic)
    command = [sys.executable, "-m", "heirlog", "perf", "produce", topic, *option]
    with reading([*command, "--num-records", "1000000", "--throughput", "300"]) as process:
        eventually(lambda: sum(row["offsets"] for row in rows(heirlog, "offsets", topic)) > 0)
        process.send_signal(signal.SIGINT)
        out, err = (printed.decode() for printed in process.communicate(timeout=60))
    assert process.returncode == 130
    (acknowledged,) = re.findall(r"^interrupted: (\d+) of 1000000 acknowledged$", err, re.M)
    shown = json.loads(out)["records"] if option else int(out.partition(" records sent, ")[0])
    assert shown == int(acknowledged) <= sum(row["offsets"] for row in rows(heirlog, "offsets", topic))


def test_a_read_that_does_not_go_on_is_named() -> None:
    came = Came("t", records=1, size=10)
    assert [came.said(), came.said()] == [None, "nothing of t came in the last 5 s: waiting"]


@pytest.mark.usefixtures("default_cluster")
def test_a_rate_is_kept(heirlog: Heirlog, cluster: Cluster) -> None:
    cluster.create_topic("slow")
    found = json.loads(heirlog("perf", "produce", "slow", "--num-records", "100", "--throughput", "500", "--json").out)
    # never faster; how much slower is the machine's affair
    assert found["seconds"] >= 0.19 and found["records"] == 100


@pytest.mark.usefixtures("default_cluster")
def test_a_client_that_is_the_limit_says_so(
    heirlog: Heirlog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("busy")

    def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
        """In a process of its own: threads that earlier tests have left behind in this one are busy too."""
        command = [sys.executable, "-m", "heirlog", "perf", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert alone("produce", "busy", "--num-records", "20", "--throughput", "20").stderr == ""
    monkeypatch.setattr(perf, "BUSY_PERCENT", 0)
    for command in ("produce", "consume"):
        outcome = heirlog("perf", command, "busy", "--num-records", "20")
        assert outcome.err.count("this client was busy for ") == 1 and " % of the time" in outcome.err
    found = json.loads(alone("consume", "busy", "--json").stdout)
    assert 0 <= found["client_cpu_percent"] <= 110
