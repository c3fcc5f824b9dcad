"""The clients that tasks share: what is waited for, and what is refused at the start of a read."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from heirlog.spark import clients
from heirlog.spark.options import read_options
from heirlog.spark.resolve import ask
from heirlog.spark.source import HeirlogDataSource


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    """It has a port, and nothing listens there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held


def address(of: socket.socket) -> str:
    return f"127.0.0.1:{of.getsockname()[1]}"


def test_a_read_from_addresses_where_nothing_listens_ends_long_before_its_timeout(
    bound: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "REFUSED_S", 0.1)
    options = read_options({"kafka.bootstrap.servers": address(bound), "subscribe": "t"}, streaming=False)
    with pytest.raises(ConnectionRefusedError, match=f"^cannot connect to {address(bound)}: Conn.* no broker answers"):
        ask(options, lambda client: client.topic_names(), at_start=True)


def test_a_broker_that_listens_or_begins_to_is_waited_for(
    bound: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begins(_: float) -> None:
        bound.listen()

    # nothing answers there, ever: who asks has the whole timeout
    monkeypatch.setattr("heirlog.spark.clients.time.sleep", begins)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        with clients.lend_at_start({"bootstrap.servers": f"{address(other)},{address(bound)}"}) as client:
            monkeypatch.undo()
            with pytest.raises(OSError):
                client.metadata([], timeout_s=0.05)
    clients.close()


def test_a_write_to_addresses_where_nothing_listens_says_that_it_waits(
    bound: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {"bootstrap.servers": address(bound), "default.api.timeout.ms": "2500"}
    clients.warn_where_nothing_listens(properties)
    (said,) = caplog.messages
    assert said.startswith(f"no broker listens at {address(bound)}: the write waits for one, for at most 2.5 s")
    bound.listen()
    clients.warn_where_nothing_listens(properties)
    assert caplog.messages == [said]


def test_both_sinks_warn_where_nothing_listens(bound: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    schema = StructType([StructField("value", StringType())])
    source = HeirlogDataSource({"kafka.bootstrap.servers": address(bound), "topic": "t", "checkpointLocation": "/c"})
    source.writer(schema, overwrite=False)
    source.streamWriter(schema, overwrite=False)
    assert len(caplog.messages) == 2
