"""Connections of this process to clusters, kept from task to task.

A Spark worker runs many short tasks in one process; connecting and authenticating for each task would often cost more
than its reads. One reader at a time uses a client, because a generator that its consumer has abandoned may still hold a
client. A client that was unused for a minute is closed. A forked process does not use its parent's clients.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from heirlog.blocking import Client, Security, security_from_properties
from heirlog.client.cluster import parse_bootstrap
from heirlog.spark.option_values import OptionError

IDLE_S = 60.0
DEFAULT_TIMEOUT_MS = 60_000
"""Kafka's default.api.timeout.ms."""
REFUSED_S = 5.0
"""How long every address must refuse a first connection. A broker that starts again mostly listens by then."""
PAUSE_S = 0.2
CONNECT_S = 1.0
"""Limit of a connection that only shows whether something listens."""
_log = logging.getLogger("heirlog.spark")

_Key = tuple[int, str, Security, str, float]
_idle: dict[_Key, list[tuple[float, Client]]] = {}


@contextmanager
def lend(properties: Mapping[str, str]) -> Iterator[Client]:
    """A client as Kafka's client properties describe it. Raises OptionError, SecurityError."""
    with _lent(_key(properties)) as client:
        yield client


@contextmanager
def lend_at_start(properties: Mapping[str, str]) -> Iterator[Client]:
    """`lend` for what a person has just started, with addresses that may be wrong. Also raises ConnectionRefusedError:
    nothing listens at any of them. An address that does not answer at all is waited for as ever."""
    key = _key(properties)
    if not _idle.get(key):
        _refuse_where_nothing_listens(key)
    with _lent(key) as client:
        yield client


@contextmanager
def _lent(key: _Key) -> Iterator[Client]:
    _close_idle()
    kept = _idle.get(key)
    client = kept.pop()[1] if kept else _connect(key)
    try:
        yield client
    except BaseException:
        # in the middle of an answer, perhaps
        client.close()
        raise
    _idle.setdefault(key, []).append((time.monotonic(), client))


def connect(properties: Mapping[str, str], timeout_s: float) -> Client:
    """A new client for the caller alone, for requests from outside Spark. Raises as `lend` does."""
    return _connect((*_key(properties)[:-1], timeout_s))


def _timeout_s(properties: Mapping[str, str]) -> float:
    text = properties.get("default.api.timeout.ms", str(DEFAULT_TIMEOUT_MS)).strip()
    if not text.isdecimal() or not int(text):
        raise OptionError(f"kafka.default.api.timeout.ms is '{text}'; it must be a positive number")
    return int(text) / 1000


def _key(properties: Mapping[str, str]) -> _Key:
    timeout_s = _timeout_s(properties)
    security = security_from_properties(properties)
    client_id = properties.get("client.id", "heirlog-spark")
    return os.getpid(), properties["bootstrap.servers"], security, client_id, timeout_s


def _connect(key: _Key) -> Client:
    _, bootstrap, security, client_id, timeout_s = key
    return Client(bootstrap, security=security, client_id=client_id, timeout_s=timeout_s)


def _refuse_where_nothing_listens(key: _Key) -> None:
    servers, timeout_s = parse_bootstrap(key[1]), key[-1]
    end = time.monotonic() + min(REFUSED_S, timeout_s)
    while all(_refuses(endpoint.host, endpoint.port, timeout_s) for endpoint in servers):
        if time.monotonic() > end:
            raise ConnectionRefusedError(
                f"cannot connect to {', '.join(map(str, servers))}: Connection refused; no broker answers: start the "
                "cluster, or give the address of a running broker with kafka.bootstrap.servers"
            )
        time.sleep(PAUSE_S)


def _refuses(host: str, port: int, timeout_s: float) -> bool:
    try:
        socket.create_connection((host, port), min(REFUSED_S, timeout_s)).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def warn_where_nothing_listens(properties: Mapping[str, str]) -> None:
    """Of a write, which waits: a broker may be starting again. Raises OptionError, ValueError."""
    servers, timeout_s = parse_bootstrap(properties["bootstrap.servers"]), _timeout_s(properties)
    if all(_refuses(each.host, each.port, CONNECT_S) for each in servers):
        _log.warning(
            "no broker listens at %s: the write waits for one, for at most %g s (kafka.default.api.timeout.ms)",
            ", ".join(map(str, servers)),
            timeout_s,
        )


def _close_idle() -> None:
    now = time.monotonic()
    for key, kept in list(_idle.items()):
        if key[0] != os.getpid():
            # the parent's sockets: the broker does not see that our copies close, but would see a TLS close message
            del _idle[key]
            continue
        while kept and now - kept[0][0] > IDLE_S:
            kept.pop(0)[1].close()


def close() -> None:
    """Close clients that are not in use."""
    for key, kept in list(_idle.items()):
        del _idle[key]
        if key[0] == os.getpid():
            for _, client in kept:
                client.close()
