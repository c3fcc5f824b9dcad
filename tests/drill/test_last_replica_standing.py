"""The drill on real processes, as a test calls it and as a person does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest
from cli.json_shapes import mistakes_of
from confluent_kafka import Consumer, TopicPartition
from patience import eventually
from processes.observing import alive

from heirlog.drill.last_replica_standing import TOPIC, A, B, C, Verdict, run, write_acknowledged
from heirlog.drill.observe import View
from heirlog.drill.partition_drill import QUICK_STOPS
from heirlog.drill.workload import Acknowledged
from heirlog.testing.cluster import Cluster

Played = tuple[Verdict, list[Acknowledged]]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def with_elr() -> Played:
    with Cluster(nodes=3, config=QUICK_STOPS) as cluster:
        return run(cluster)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drill") / "new" / "folder"


@pytest.fixture(scope="module")
def without_elr(out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heirlog", "drill", "last-replica-standing", "--elr", "off", "--secure", "--json"]
    command += ["--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def views(verdict: Verdict, moment: str) -> list[View]:
    return [entry.view for entry in verdict.timeline if entry.event.startswith(moment)]


def test_with_the_elr_no_acknowledged_record_is_lost(with_elr: Played) -> None:
    verdict, records = with_elr
    assert verdict.passed
    assert (verdict.lost, verdict.changed_values, verdict.readable) == (0, 0, verdict.acknowledged)
    assert verdict.acknowledged == len(records) > 4_000
    assert verdict.acknowledged_acks_1 > 0


def test_with_the_elr_the_watermark_is_never_seen_going_back(with_elr: Played) -> None:
    verdict, _ = with_elr
    assert verdict.watermark_went_back == []
    seen = [entry.high_watermark for entry in verdict.timeline if entry.high_watermark >= 0]
    assert len(seen) >= 5 and seen == sorted(seen)


def test_the_timeline_shows_isr_and_elr_as_the_kip_says(with_elr: Played) -> None:
    verdict, _ = with_elr
    (t0,), (t1,), (t2,) = (views(verdict, moment) for moment in ("T0", "T1", "T2"))
    assert (set(t0.isr), t0.elr) == ({B, C}, ())
    assert (t1.isr, t1.elr, t1.leader) == ((C,), (B,), C)
    assert (t2.isr, set(t2.elr), t2.leader) == ((), {B, C}, -1)
    elected, caught_up = views(verdict, "T3")
    assert elected.leader == B and A not in elected.elr
    assert set(caught_up.isr) == {A, B}
    returned, everybody = views(verdict, "T4")
    assert C not in returned.elr
    assert (set(everybody.isr), everybody.elr) == ({A, B, C}, ())


def test_c_leads_never_before_it_has_caught_up(with_elr: Played) -> None:
    verdict, _ = with_elr
    assert not verdict.elected_before_caught_up
    assert all(view.leader == B for view in views(verdict, "T3") + views(verdict, "T4"))


def test_leader_epochs_never_go_back(with_elr: Played) -> None:
    verdict, _ = with_elr
    epochs = [entry.view.leader_epoch for entry in verdict.timeline]
    assert epochs == sorted(epochs) and epochs[0] < epochs[-1]


def test_without_the_elr_the_same_script_loses_acknowledged_records(
    without_elr: subprocess.CompletedProcess[str],
) -> None:
    result = json.loads(without_elr.stdout)
    assert not result["passed"]
    assert result["lost"] > 0
    assert result["readable"] == result["acknowledged"] - result["lost"]
    assert result["watermark_went_back"]


def test_without_the_elr_the_command_fails_with_one_sentence(without_elr: subprocess.CompletedProcess[str]) -> None:
    assert without_elr.returncode == 1
    (sentence,) = without_elr.stderr.splitlines()
    assert sentence.startswith("heirlog: the drill failed: lost: ")


def test_without_the_elr_c_keeps_its_seat_and_leads_with_what_its_disk_kept(
    without_elr: subprocess.CompletedProcess[str],
) -> None:
    timeline = json.loads(without_elr.stdout)["timeline"]
    seen = [(moment["event"][:2], moment["isr"], moment["elr"], moment["leader"]) for moment in timeline]
    assert ("T2", [C], [], -1) in seen
    assert [leader for moment, _, _, leader in seen if moment == "T3"] == [-1]
    assert {leader for moment, _, _, leader in seen if moment == "T4"} == {C}


def test_the_picture_shows_leaders_isr_elr_clients_and_faults(
    without_elr: subprocess.CompletedProcess[str], out: Path
) -> None:
    result = json.loads(without_elr.stdout)
    assert result["picture"] == str(out / "timeline.svg")
    assert not mistakes_of("drill last-replica-standing", result)
    written = json.loads((out / "verdict.json").read_text())
    assert (written["lost"], written["timeline"]) == (result["lost"], result["timeline"])
    picture = ElementTree.parse(out / "timeline.svg").getroot()
    texts = {one.text for one in picture.iter(f"{SVG}text")}
    assert {"Drill last-replica-standing: FAILED", f"{TOPIC}-0", "broker 3", "controller 100"} <= texts
    assert {"high watermark", "read", "acknowledged, acks=all", "acknowledged, acks=1", "in the ISR"} <= texts
    assert "in the ELR" not in texts
    shown = [one.text or "" for one in picture.iter(f"{SVG}title")]
    steps = [moment["event"] for moment in result["timeline"]]
    assert [step for step in shown if step in steps] == steps
    assert sum(text.startswith("killed, and its unflushed bytes lost") for text in shown) == 1
    assert sum(text.startswith("stopped") for text in shown) == 2
    assert any(text.startswith("leader none") for text in shown)


def test_a_folder_that_cannot_be_made_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "heirlog", "drill", "rack", "--out", str(tmp_path / "file" / "folder")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert f"{tmp_path / 'file'}/folder cannot be created (Not a directory)" in sentence and "--out" in sentence


def test_each_acknowledged_record_is_one_json_line(with_elr: Played, tmp_path: Path) -> None:
    _, records = with_elr
    write_acknowledged(tmp_path / "acknowledged", records)
    lines = (tmp_path / "acknowledged").read_text().splitlines()
    assert len(lines) == len(records)
    first = json.loads(lines[0])
    assert set(first) == {"topic", "partition", "offset", "crc"}
    assert (first["topic"], first["partition"]) == (TOPIC, 0)


def test_on_hold_a_strangers_client_can_check_every_acknowledged_record(tmp_path: Path) -> None:
    written = tmp_path / "acknowledged"
    command = [sys.executable, "-m", "heirlog", "drill", "last-replica-standing", "--json", "--hold", "--seed", "5"]
    command += ["--out", str(tmp_path / "out")]
    drill = subprocess.Popen([*command, "--acknowledged", str(written)], stdout=subprocess.PIPE, text=True)
    try:
        result = first_object(drill)
        assert {"acknowledged", "readable", "lost", "timeline", "bootstrap_servers"} <= set(result)
        assert (result["lost"], result["passed"]) == (0, True)
        expected = [json.loads(line) for line in written.read_text().splitlines()]
        assert len(expected) == result["acknowledged"] == result["readable"]
        found = values_at(result["bootstrap_servers"], TOPIC, 1 + max(line["offset"] for line in expected))
        assert all(zlib.crc32(found[line["offset"]]) == line["crc"] for line in expected)
        started = psutil.Process(drill.pid).children(recursive=True)
        assert len([child for child in started if "node" in child.cmdline()]) == 4
        drill.send_signal(signal.SIGINT)
        rest, _ = drill.communicate(timeout=120)
        assert (drill.returncode, rest.strip()) == (0, "")
        eventually(lambda: not any(alive(child.pid) for child in started), "all that it started to end")
    finally:
        if drill.poll() is None:
            drill.terminate()
            drill.communicate(timeout=120)


def first_object(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The JSON object that a process prints while it goes on running."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.rstrip() == "}" or text.count("{") == text.count("}"):
            break
    result: dict[str, Any] = json.loads(text)
    return result


def values_at(bootstrap: str, topic: str, end: int) -> dict[int, bytes]:
    # nothing is committed: without a group coordinator librdkafka would wait a session timeout for one when it closes
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "stranger", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[int, bytes] = {}

    def more() -> bool:
        for message in consumer.consume(5_000, timeout=0.2):
            assert message.error() is None, message.error()
            found[message.offset()] = message.value()
        return bool(found) and max(found) + 1 >= end

    try:
        eventually(more, f"offset {end}")
    finally:
        consumer.close()
    return found
