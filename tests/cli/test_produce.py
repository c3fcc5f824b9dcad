"""What happens to lines on their way into records, and what is said of them at every end."""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Iterator
from contextlib import nullcontext
from types import FrameType, SimpleNamespace
from typing import Any

import psutil
import pytest
from cli.conftest import stderr
from client.driving import ONE, World, described
from patience import eventually

from heirlog.blocking import LATEST, Client
from heirlog.cli import connect
from heirlog.cli.app import run
from heirlog.cli.errors import CommandError
from heirlog.cli.input_lines import InputLines
from heirlog.cli.interrupts import SIGNALS, Interrupts
from heirlog.cli.line_records import LineRecord, split_key
from heirlog.cli.places import Places, murmur2
from heirlog.cli.produce import Writer, produce
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import InitProducerIdRequest, InitProducerIdResponse, MetadataRequest, ProduceResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint
from heirlog.testing import Cluster


def test_the_key_stands_before_the_first_separator() -> None:
    assert split_key(b"k:v:w", b":") == (b"k", b"v:w")
    assert split_key(b"none", b":") == (None, b"none")


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # Kafka's own test vectors (UtilsTest.testMurmur2)
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_keys_are_hashed_as_java_clients_hash_them(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, config={"auto.create.topics.enable": False}) as running:
        yield running


def produced(cluster: Cluster, topic: str, *options: str, **kept: Any) -> subprocess.Popen[str]:
    created = ["topics", "create", topic, "--config", "max.message.bytes=300", "-b", cluster.bootstrap_servers]
    subprocess.run([sys.executable, "-m", "heirlog", *created], check=True, capture_output=True)
    command = [sys.executable, "-m", "heirlog", "produce", topic, "-b", cluster.bootstrap_servers, *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kept}
    return subprocess.Popen(command, text=True, **pipes)


def type_in(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def end_offset(cluster: Cluster, topic: str) -> int:
    with Client(cluster.bootstrap_servers) as client:
        return client.list_offsets({(topic, 0): LATEST})[topic, 0].offset


def until_stored(cluster: Cluster, topic: str, count: int) -> None:
    eventually(lambda: end_offset(cluster, topic) == count)


def test_it_says_that_every_record_was_acknowledged(cluster: Cluster) -> None:
    out, err = (process := produced(cluster, "good")).communicate("one\ntwo\n")
    assert (process.returncode, out, err) == (0, "", "good: 2 records acknowledged\n")


def test_a_refused_line_does_not_hide_what_was_acknowledged_before_it(cluster: Cluster) -> None:
    process = produced(cluster, "refused")
    type_in(process, "one\ntwo\n")
    until_stored(cluster, "refused", 2)
    _, err = process.communicate("x" * 400 + "\nthree\n")
    said, failure = err.splitlines()
    assert process.returncode == 1
    assert said == "refused: 2 records acknowledged, 2 not acknowledged"
    assert failure.startswith("heirlog: refused-0 refused a batch of 2 records: MESSAGE_TOO_LARGE")
    assert end_offset(cluster, "refused") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_count_and_no_traceback(cluster: Cluster, number: signal.Signals) -> None:
    topic = f"ended-by-{number.name}"
    process = produced(cluster, topic, "--json")
    type_in(process, "one\ntwo\n")
    until_stored(cluster, topic, 2)
    process.send_signal(number)
    # (communicate would end it by the end of its input)
    assert process.wait(60) == 130
    out, err = process.communicate()
    assert json.loads(out) == {
        "topic": topic,
        "records": 2,
        "not_acknowledged": 0,
        "may_be_stored": 0,
        "partitions": {"0": [0, 1]},
    }
    assert err == ""


def test_records_that_wait_for_their_leader_are_neither_acknowledged_nor_sent(cluster: Cluster) -> None:
    process = produced(cluster, "waiting")
    type_in(process, "one\n")
    until_stored(cluster, "waiting", 1)
    cluster.pause(1)
    try:
        type_in(process, "two\nthree\n")
        # it asks for the leader before it sends, and the broker does not answer
        watched = psutil.Process(process.pid)
        eventually(lambda: unread_bytes(process) == 0 and watched.status() == psutil.STATUS_SLEEPING)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        cluster.resume(1)
    _, err = process.communicate()
    assert err == "waiting: 1 record acknowledged, 2 not acknowledged\n"
    assert end_offset(cluster, "waiting") == 1


def unread_bytes(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    waiting = array("i", [0])
    fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, waiting)
    return waiting[0]


def test_a_broker_that_is_gone_ends_it_with_the_count(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    produced(cluster, "gone").communicate("")
    chunks = iter([b"one\ntwo\n", b"three\n"])

    def read(descriptor: int, size: int) -> bytes:
        chunk = next(chunks)
        if chunk == b"three\n":
            cluster.kill(1)
        return chunk

    monkeypatch.setattr("heirlog.cli.input_lines.os", SimpleNamespace(read=read))
    monkeypatch.setattr(inspect.unwrap(connect.connected), "__defaults__", (3.0,))
    monkeypatch.setattr("heirlog.cli.produce.SAID_AFTER_S", 0.5)
    monkeypatch.setattr("heirlog.cli.produce.LOOKED_EVERY_S", 0.1)
    try:
        code = run(["produce", "gone", "-b", cluster.bootstrap_servers])
    finally:
        cluster.start(1)
        cluster.wait_until_ready()
    *waiting, said, failure = stderr(capfd).splitlines()
    assert code == 1
    assert {*waiting} == {"no leader of gone-0 answers: trying again"}
    assert said == "gone: 2 records acknowledged, 1 not acknowledged", "its leader was not found: it was not sent"
    assert failure.startswith("heirlog: ")


def test_an_input_that_cannot_be_read_is_a_sentence_with_the_count(cluster: Cluster) -> None:
    for_writing = os.open(os.devnull, os.O_WRONLY)
    _, err = (process := produced(cluster, "unreadable", stdin=for_writing)).communicate()
    os.close(for_writing)
    assert process.returncode == 1
    said, failure = err.splitlines()
    assert said == "unreadable: 0 records acknowledged"
    assert failure.startswith("heirlog: standard input cannot be read (Bad file descriptor)")


class Scripted(Client):
    """In virtual time, a leader that answers each try with the next of `answers`: an error code, or no answer."""

    def __init__(self, *answers: ErrorCode | OSError) -> None:
        super().__init__(str(ONE), timeout_s=0.1)
        self._answers = list(answers)
        self._world = World(self._answer)
        self._cluster = self._world.cluster(ONE)
        self._run = self._world.run  # type: ignore[method-assign]

    def _answer(self, _: Endpoint, message: Message) -> Any:
        if isinstance(message, MetadataRequest):
            return described([1])
        if isinstance(message, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=7, producer_epoch=0)
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(given, OSError):
            return given
        answer = ProduceResponse.PartitionProduceResponse(error_code=given, base_offset=-1 if given else 40)
        return ProduceResponse(responses=[ProduceResponse.TopicProduceResponse(partition_responses=[answer])])


def writing_to(client: Client) -> Writer:
    return Writer(client, Interrupts(), Places(client, "t", None), -1, 0)


LOST = ConnectionResetError("the answer is lost")


@pytest.mark.parametrize(
    ("answers", "may_be_stored"),
    [
        ([ErrorCode.MESSAGE_TOO_LARGE], 0),
        ([ErrorCode.TOPIC_AUTHORIZATION_FAILED], 0),
        ([ErrorCode.NOT_ENOUGH_REPLICAS], 0),
        ([ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND], 2),
        ([ErrorCode.REQUEST_TIMED_OUT], 2),
        ([ErrorCode.NOT_LEADER_OR_FOLLOWER], 2),
        ([ErrorCode.KAFKA_STORAGE_ERROR], 2),
        ([ErrorCode.UNKNOWN_SERVER_ERROR], 2),
        ([LOST], 2),
        ([LOST, ErrorCode.NOT_ENOUGH_REPLICAS], 2),
        ([LOST, ErrorCode.TOPIC_AUTHORIZATION_FAILED], 2),
        ([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER], 2),
    ],
)
def test_records_may_be_stored_unless_every_try_was_refused_before_the_log(
    answers: list[ErrorCode | OSError], may_be_stored: int
) -> None:
    writer = writing_to(Scripted(*answers))  # type: ignore[arg-type]
    with pytest.raises((CommandError, OSError)):
        writer.append([LineRecord(None, b"one"), LineRecord(None, b"two")])
    assert (writer.count, writer.may_be_stored) == (0, may_be_stored)


def test_a_repeat_that_the_leader_knows_is_acknowledged() -> None:
    client = Scripted(ErrorCode.NONE, LOST, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    writer = writing_to(client)
    writer.append([LineRecord(None, b"one")])
    writer.append([LineRecord(None, b"two"), LineRecord(None, b"three")])
    assert (writer.count, writer.may_be_stored) == (3, 0)
    assert writer.offsets == {0: [40, 40]}, "the leader names no offset for what it no longer remembers"


class Counted(Client):
    """A leader that keeps every batch; `stored`: records of those."""

    def __init__(self) -> None:
        super().__init__(str(ONE), timeout_s=0.1)
        self.stored = 0

    def metadata(self, topics: Any = None, *, timeout_s: float | None = None) -> Any:
        return described([1])

    def send_to_any(self, message: Message, *, timeout_s: float | None = None) -> Any:
        return InitProducerIdResponse(producer_id=7, producer_epoch=0)

    def produce(self, topic: str, partition: int, records: Any, **options: Any) -> Any:
        options["tries"].append(None)
        count = int.from_bytes(records[57:61], "big")
        self.stored += count
        options["tries"][-1] = 0
        return ProduceResponse.PartitionProduceResponse(base_offset=self.stored - count)


class SignalAt:
    """Ctrl-C at the nth step of the command, where a step is one instruction of Python."""

    _WHERE = ("cli/produce.py", "cli/places.py", "cli/input_lines.py", "cli/interrupts.py", __file__)

    def __init__(self, at: int) -> None:
        self.steps = 0
        self._at = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(self._WHERE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.steps += 1
            if self.steps == self._at:
                signal.raise_signal(signal.SIGINT)
        return self


def test_the_counts_are_right_at_whatever_instruction_a_signal_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    written = b"one\ntwo\nthree\nfour"
    monkeypatch.setattr("heirlog.cli.input_lines.READ_BYTES", 6)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    at, finished, interrupted = 0, False, 0
    while not finished:
        at, client, reports = at + 1, Counted(), []
        read, write = os.pipe()
        os.write(write, written)
        os.close(write)
        monkeypatch.setattr("heirlog.cli.produce.connected", lambda _, says_waiting, known=client: nullcontext(known))
        monkeypatch.setattr("heirlog.cli.produce.InputLines", lambda _, given, fd=read: InputLines(fd, given))
        monkeypatch.setattr("heirlog.cli.produce.show_json", reports.append)
        signals = SignalAt(at)
        sys.settrace(signals)
        try:
            produce("t", as_json=True)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
            for number, handler in before.items():
                signal.signal(number, handler)
        finished = signals.steps < at
        left = os.read(read, 100)
        os.close(read)
        if not reports:
            assert left == written
            continue
        # (a line that was read in part is taken from the input)
        taken = len(written[: len(written) - len(left)].splitlines())
        report = reports[0]
        assert report["records"] <= client.stored <= report["records"] + report["may_be_stored"], at
        assert report["records"] + report["not_acknowledged"] == taken, at
    assert interrupted > 500


def test_on_a_terminal_it_shows_how_many_records_are_acknowledged(cluster: Cluster) -> None:
    """What it shows goes to standard error only, and is gone when the last sentence is printed."""
    cluster.create_topic("shown")
    command = [sys.executable, "-m", "heirlog", "produce", "shown", "-b", cluster.bootstrap_servers]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=theirs, env=environment) as process:
        os.close(theirs)
        assert process.stdin is not None and process.stdout is not None
        seen = b""
        try:
            process.stdin.write(b"a line\n" * 1234)
            process.stdin.flush()
            while b"1234/?" not in seen:
                seen += os.read(ours, 65_536)
            process.stdin.close()
            while b"1234 records acknowledged" not in seen:
                seen += os.read(ours, 65_536)
            assert process.stdout.read() == b"" and process.wait(60) == 0
        finally:
            process.kill()
            os.close(ours)
    assert b"shown: acknowledged" in seen
