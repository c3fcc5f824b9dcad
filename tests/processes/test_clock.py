"""The wall clock is set back an hour under running nodes.

Each node is a process of its own, and the function of Python's that reads its wall clock is replaced before anything
else runs in it (`sitecustomize`, found through PYTHONPATH): the time of the machine plus what stands in a file that all
processes share. The clock that never jumps stays the machine's. Where HEIRLOG_LIBFAKETIME names that library, as
`make interop` does, the clock is set below Python, for everything in the process.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import pytest
from patience import eventually
from processes.observing import client_of, create, read, records_of, wait_for, write

from heirlog.blocking import LATEST, Client
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from heirlog.testing.cluster import Cluster

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
SITECUSTOMIZE = """
import mmap, time
with open({path!r}, "r+b") as file:
    set_by = mmap.mmap(file.fileno(), 8)
read = time.time_ns
time.time_ns = lambda: read() + int.from_bytes(set_by[:8], "little", signed=True) * 1_000_000
time.time = lambda: time.time_ns() / 1e9
"""
CONFIG = {
    "group.min.session.timeout.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
}


class PythonsClock:
    """Of every node that is started after this was made."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = directory / "offset"
        path.write_bytes(bytes(8))
        (directory / "sitecustomize.py").write_text(SITECUSTOMIZE.format(path=str(path)))
        monkeypatch.setenv("PYTHONPATH", str(directory))
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), 8)

    def set(self, offset_ms: int) -> None:
        self._offset[:8] = offset_ms.to_bytes(8, "little", signed=True)


class FakedClock:
    """The same, by libfaketime."""

    def __init__(self, library: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = directory / "faketime"
        self.set(0)
        monkeypatch.setenv("LD_PRELOAD", library)
        monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(self._file))
        monkeypatch.setenv("FAKETIME_NO_CACHE", "1")
        monkeypatch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")

    def set(self, offset_ms: int) -> None:
        written = self._file.with_suffix(".new")
        written.write_text(f"{offset_ms // 1000:+d}\n")
        written.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PythonsClock | FakedClock:
    library = os.environ.get("HEIRLOG_LIBFAKETIME")
    return FakedClock(library, tmp_path, monkeypatch) if library else PythonsClock(tmp_path, monkeypatch)


def timestamps(cluster: Cluster, topic: str) -> list[int]:
    """In the order of the log."""
    with client_of(cluster) as client:
        end = client.list_offsets({(topic, 0): LATEST})[topic, 0].offset
        found: list[int] = []
        while len(found) < end:
            found += [r.timestamp_ms for r in records_of(client.fetch_at(topic, 0, len(found)).records)]
    return found


def join(client: Client, group: str, session_timeout_ms: int) -> tuple[str, int]:
    """Alone in the group: the member's id and its generation."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = client.send_to_coordinator(group, request, error_code=lambda one: one.error_code)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    request.member_id = answer.member_id
    answer = client.send_to_coordinator(group, request, error_code=lambda one: one.error_code)
    assert answer.error_code == 0, answer
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"")],
    )
    assert client.send_to_coordinator(group, sync, error_code=lambda one: one.error_code).error_code == 0
    return answer.member_id, answer.generation_id


def heartbeat(client: Client, group: str, member: str, generation: int) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    code: int = client.send_to_coordinator(group, request, error_code=lambda one: one.error_code).error_code
    return code


def members(client: Client, group: str) -> list[str]:
    request = DescribeGroupsRequest(groups=[group])
    answer = client.send_to_coordinator(group, request, error_code=lambda one: one.groups[0].error_code)
    return [member.member_id for member in answer.groups[0].members]


def test_an_hour_back_stops_nothing_and_loses_nothing(clock: PythonsClock | FakedClock) -> None:
    told_by_broker = {"message.timestamp.type": "LogAppendTime", "retention.ms": str(2 * HOUR_MS)}
    with Cluster(nodes=3, config=CONFIG, ledger=False) as cluster, client_of(cluster) as client:
        create(cluster, "kept", [1, 2, 3], config=told_by_broker)
        written = [b"before %d" % number for number in range(3)]
        assert write(cluster, "kept", *written).error_code == 0
        member, generation = join(client, "readers", 60_000)
        join(client, "silent", 3_000)
        clock.set(-HOUR_MS)
        for number in range(3):
            written.append(b"after %d" % number)
            assert write(cluster, "kept", written[-1]).error_code == 0
        times = timestamps(cluster, "kept")
        assert times[0] - times[3] > HOUR_MS - MINUTE_MS, "the clock of the broker did not move"
        view = wait_for(cluster, "kept", lambda view: view.leader == 1)
        assert (set(view.isr), view.leader_epoch) == ({1, 2, 3}, 0), "somebody was taken for dead"
        # what waits ends when it should: a fetch that finds nothing, and the session of a member that says nothing
        began = time.monotonic()
        assert not records_of(client.fetch_at("kept", 0, len(written)).records)
        assert time.monotonic() - began < 30
        eventually(lambda: not members(client, "silent"), "the end of a session")
        assert heartbeat(client, "readers", member, generation) == 0
        # the first record at or after a time, in the order of the log
        assert client.list_offsets({("kept", 0): times[3]})["kept", 0].offset == 0
        assert client.list_offsets({("kept", 0): times[0] + MINUTE_MS})["kept", 0].offset == -1
        # who leads is found out by time that goes on, and a log with times of two clocks is opened again
        cluster.kill(1)
        wait_for(cluster, "kept", lambda view: view.leader in (2, 3))
        written.append(b"led by another")
        assert write(cluster, "kept", written[-1]).error_code == 0
        cluster.start(1)
        cluster.wait_until_ready()
        wait_for(cluster, "kept", lambda view: len(view.isr) == 3)
        cluster.kill(100)
        cluster.start(100)
        cluster.wait_until_ready()
        create(cluster, "more", [1, 2, 3])
        clock.set(0)
        written.append(b"set right")
        assert write(cluster, "kept", written[-1]).error_code == 0
        assert read(cluster, "kept") == written
