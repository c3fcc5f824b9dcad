"""Lines in transactions: which are committed at each end of the input, and what the command says of the others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from cli.conftest import stderr
from patience import eventually

from heirlog.blocking import LATEST, Client
from heirlog.blocking.transactions import TransactionalBatchProducer
from heirlog.cli.app import run
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, config={"auto.create.topics.enable": False}) as running:
        yield running


def heirlog(cluster: Cluster, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heirlog", *arguments, "-b", cluster.bootstrap_servers]
    return subprocess.run(command, input=text, text=True, capture_output=True, timeout=60, check=False)


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = request.node.name.partition("[")[0][-60:]
    heirlog(cluster, "topics", "create", name, "--config", "max.message.bytes=300")
    return name


def end_offset(cluster: Cluster, topic: str) -> int:
    with Client(cluster.bootstrap_servers) as client:
        return client.list_offsets({(topic, 0): LATEST})[topic, 0].offset


def committed(cluster: Cluster, topic: str, count: int) -> list[str]:
    """The first lines that a consumer of committed records prints, behind which a last one was committed."""
    heirlog(cluster, "produce", topic, "--transactional-id", f"last-{topic}", text="last\n")
    read = ["consume", topic, "--from-beginning", "--isolation-level", "read_committed", "--max", str(count + 1)]
    lines = heirlog(cluster, *read).stdout.splitlines()
    assert lines.pop() == "last"
    return lines


def test_all_lines_are_one_transaction(cluster: Cluster, topic: str) -> None:
    done = heirlog(cluster, "produce", topic, "--transactional-id", "all", text="one\ntwo\nthree")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{topic}: 3 records committed in 1 transaction\n"
    assert committed(cluster, topic, 3) == ["one", "two", "three"]


def test_transactions_of_a_size_commit_what_is_left_at_the_end(cluster: Cluster, topic: str) -> None:
    options = ["--transactional-id", "two", "--transaction-size", "2", "--json"]
    done = heirlog(cluster, "produce", topic, *options, text="1\n2\n3\n4\n5\n")
    assert json.loads(done.stdout) == {
        "topic": topic,
        "transactional_id": "two",
        "transactions": 3,
        "records": 5,
        "not_committed": 0,
        "may_be_committed": 0,
    }
    assert committed(cluster, topic, 5) == ["1", "2", "3", "4", "5"]


def test_no_line_is_no_transaction(cluster: Cluster, topic: str) -> None:
    done = heirlog(cluster, "produce", topic, "--transactional-id", "none")
    assert (done.returncode, done.stderr) == (0, f"{topic}: 0 records committed in 0 transactions\n")


def test_a_refused_line_aborts_its_transaction_and_not_those_before(cluster: Cluster, topic: str) -> None:
    options = ["--transactional-id", "bad", "--transaction-size", "2"]
    done = heirlog(cluster, "produce", topic, *options, text="1\n2\n3\n" + "x" * 400 + "\n5\n")
    said, failure = done.stderr.splitlines()
    assert done.returncode == 1
    assert said == f"{topic}: 2 records committed in 1 transaction, 3 not committed"
    assert "MESSAGE_TOO_LARGE" in failure
    assert committed(cluster, topic, 2) == ["1", "2"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_aborts_the_open_transaction(cluster: Cluster, topic: str, number: signal.Signals) -> None:
    name = f"{topic}-{number.name}"
    heirlog(cluster, "topics", "create", name)
    command = [sys.executable, "-m", "heirlog", "produce", name, "-b", cluster.bootstrap_servers, "--json"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options = ["--transactional-id", name, "--transaction-size", "2"]
    process = subprocess.Popen([*command, *options], text=True, **pipes)
    assert process.stdin is not None
    process.stdin.write("1\n2\n3\n")
    process.stdin.flush()
    # two records, their marker, and the third
    eventually(lambda: end_offset(cluster, name) == 4)
    process.send_signal(number)
    assert process.wait(60) == 130
    out, err = process.communicate()
    assert (json.loads(out)["records"], json.loads(out)["not_committed"], err) == (2, 1, "")
    assert committed(cluster, name, 2) == ["1", "2"]


def test_a_commit_without_an_answer_may_be_committed(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from heirlog.client import transactions

    original = transactions.ProducerTransactions._end

    def lost(self: Any, commit: bool) -> Any:
        yield from original(self, commit)
        self.state = transactions.TransactionStage.COMMITTING
        raise TimeoutError("the answer is lost")

    monkeypatch.setattr(transactions.ProducerTransactions, "_end", lost)
    lines = iter([b"one\ntwo\n", b""])
    monkeypatch.setattr("heirlog.cli.input_lines.os.read", lambda *_: next(lines))
    code = run(["produce", topic, "--transactional-id", "lost", "-b", cluster.bootstrap_servers])
    # (before it, on a busy machine, what it waits for)
    (said,) = (line for line in stderr(capfd).splitlines() if line.startswith(f"{topic}: "))
    assert code == 1
    assert said == (
        f"{topic}: 0 records committed in 0 transactions, 2 not committed (the commit of 2 of them had no answer: they "
        f"may be committed)"
    )


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        ("initialize", "slow has no producer id yet: waiting for its coordinator"),
        ("flush", "records of {topic} are not stored yet: waiting for their leaders"),
        ("commit", "slow has not committed yet: waiting for its coordinator"),
    ],
)
def test_it_says_what_it_waits_for(
    cluster: Cluster, topic: str, call: str, waits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    has_said = Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        has_said.set()

    original = getattr(TransactionalBatchProducer, call)

    def slow(self: TransactionalBatchProducer) -> None:
        assert has_said.wait(60)
        original(self)

    monkeypatch.setattr(TransactionalBatchProducer, call, slow)
    monkeypatch.setattr("heirlog.cli.waiting.say", say)
    monkeypatch.setattr("heirlog.cli.produce_transactions.SAID_AFTER_S", 0.1)
    monkeypatch.setattr("heirlog.cli.produce.LOOKED_EVERY_S", 0.1)
    lines = iter([b"one\n", b""])
    monkeypatch.setattr("heirlog.cli.input_lines.os.read", lambda *_: next(lines))
    assert run(["produce", topic, "--transactional-id", "slow", "-b", cluster.bootstrap_servers]) == 0
    assert said and said[0].startswith(waits.format(topic=topic))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--transaction-size", "2"], "--transaction-size needs --transactional-id"),
        (["--transactional-id", "x", "--acks", "1"], "transactions need --acks all"),
        (["--transactional-id", ""], "--transactional-id must not be empty"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["produce", "t", *options]) == 2
    assert said in capfd.readouterr().err


def test_only_a_consumer_of_all_records_sees_aborted_ones(cluster: Cluster, topic: str) -> None:
    with Client(cluster.bootstrap_servers) as client, client.transactional_producer("seen") as producer:
        producer.begin()
        producer.send(topic, 0, encode_batch([(None, b"aborted", (), 0)]))
        producer.flush()
        producer.abort()
    assert committed(cluster, topic, 0) == []
    everything = heirlog(cluster, "consume", topic, "--from-beginning", "--max", "2")
    assert everything.stdout.splitlines() == ["aborted", "last"]
