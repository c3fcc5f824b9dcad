"""Which cluster a command talks to, and how it logs in: the first of these that is given.

    --bootstrap-server     the addresses alone. It goes with a context that is named, and with --command-config
    --context              a context (`cluster_options.py`)
    $HEIRLOG_BOOTSTRAP     as --bootstrap-server
    $HEIRLOG_CONTEXT       a context
    the default context    `heirlog context use`; not with --bootstrap-server
    localhost:9092

A command for the quorum may talk to its controllers instead (`--bootstrap-controller`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.waiting import SAID_EVERY_S, Saying, UnansweredCall
from heirlog.local import contexts, properties
from heirlog.local.errors import LocalError
from heirlog.local.similar_names import check_client_properties

if TYPE_CHECKING:
    from heirlog.blocking import Client

BOOTSTRAP_VARIABLE = "HEIRLOG_BOOTSTRAP"
COMMAND_CONFIG: Final = "--command-config"
COMMAND_CONFIG_VARIABLE: Final = "HEIRLOG_COMMAND_CONFIG"
DEFAULT_PORT = 9092
LOCALHOST = f"localhost:{DEFAULT_PORT}"
BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar=BOOTSTRAP_VARIABLE,
        help="host:port of a broker (a host alone: port 9092), several separated by commas.",
        show_default=f"the default context, else {LOCALHOST}",
    ),
]
DEFAULT_BOOTSTRAP = ""
"""None given: as the module says."""
CONTROLLERS = 2
"""Endpoint type of DescribeCluster (KIP-919)."""
_HOST = re.compile(r"[A-Za-z0-9._-]*[A-Za-z._-][A-Za-z0-9._-]*|\d+(\.\d+){3}|\[[0-9A-Fa-f:.]+\]")
"""A name, which has a letter, an IPv4 address, or an IPv6 address in brackets. A number alone is a forgotten host."""
_TIMED_OUT = (
    "that broker does not run (heirlog broker list shows which do), hangs, for example on a disk that is full (its own "
    "output says so), or waits for the active controller: heirlog quorum describe --bootstrap-controller ADDRESS asks "
    "the controllers themselves"
)
"""A broker holds what it forwards until a controller is active, as Kafka's does: the client gives up first, and would
name the broker alone."""
_NONE_ACTIVE = (
    "no controller is active: start a majority of the controllers that vote, and try again. If a majority is lost for "
    "good, heirlog recover controller --help says how to continue with one"
)
REQUEST_TIMEOUT_S = 30.0
DIAGNOSIS_TIMEOUT_S = 12.0
"""A broker tells after ten seconds without an active controller."""
REACH_TIMEOUT_S = 3.0
"""Limit until any broker answers; a request may take longer (an election, a leader that returns)."""


@contextmanager
def connected(
    bootstrap_servers: str, timeout_s: float = REQUEST_TIMEOUT_S, *, says_waiting: bool = True
) -> Iterator[Client]:
    """A client of a cluster that answers; closed afterwards. Its own errors (OSError, KafkaError) are sentences.

    timeout_s: limit of each request; until any broker answers, it is REACH_TIMEOUT_S at most. says_waiting: on stderr,
    of each request without an answer for five seconds; False where the command itself says what it waits for.

    Raises CommandError if no broker answers, or one that is asked later does not answer in time.
    """
    from heirlog.blocking import Client
    from heirlog.client.errors import ClosedUnanswered, Unsupported
    from heirlog.client.security import security_from_properties

    given, where, context = _login(bootstrap_servers)
    servers = _with_ports(bootstrap_servers or given.get(contexts.SERVERS, LOCALHOST))
    try:
        client = Client(servers, security=security_from_properties(given), timeout_s=timeout_s)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    try:
        try:
            client.metadata([], timeout_s=min(timeout_s, REACH_TIMEOUT_S))
        except Unsupported as error:
            raise CommandError(
                f"{error}: perhaps it is a controller; give the address of a broker with --bootstrap-server"
            ) from error
        except OSError as error:
            asked = "" if context is None else f" (context {context}; heirlog context list shows others)"
            if isinstance(error, ClosedUnanswered) and not given.get("security.protocol"):
                raise CommandError(f"{error}; {_how_to_log_in(servers)}") from error
            if isinstance(error, ClosedUnanswered):
                protocol, source = given["security.protocol"], where.removeprefix("--bootstrap-server, ")
                raise CommandError(
                    f"{error}; {source} has security.protocol={protocol}, and this port seems to want another one: "
                    "give the port of another listener, or change the property"
                ) from error
            raise CommandError(
                f"{error}; no broker answers{asked}: start the cluster, or give the address of a running broker with "
                "--bootstrap-server (heirlog up starts a new cluster on this machine)"
            ) from error
        try:
            waits = f"no answer for {SAID_EVERY_S:.0f} s: waiting for at most {timeout_s:.0f} s"
            with Saying(UnansweredCall(client, waits).said) if says_waiting else nullcontext():
                yield client
        except TimeoutError as error:
            raise CommandError(_no_active_controller(client) or f"{error}; {_TIMED_OUT}") from error
    finally:
        client.close()


def _no_active_controller(client: Client) -> str | None:
    """What the brokers say about it; None where there is one, or where they do not tell."""
    from heirlog.client.recovery import describe_recovery
    from heirlog.protocol.errors import ErrorCode, KafkaError

    try:
        client.run(describe_recovery({}), timeout_s=DIAGNOSIS_TIMEOUT_S)
    except KafkaError as error:
        return error.message if error.code is ErrorCode.REQUEST_TIMED_OUT else None
    except OSError:
        return None
    return None


class Login(NamedTuple):
    properties: Mapping[str, str]
    where: str
    """What named them, for an error."""
    context: str | None


def _login(addresses: str) -> Login:
    """Raises LocalError."""
    path = os.environ.get(COMMAND_CONFIG_VARIABLE)
    if path:
        found = properties.read(path)
        check_client_properties(path, found)
        return Login(found, f"--bootstrap-server, {COMMAND_CONFIG}", None)
    context = contexts.current() if contexts.named() or not addresses else None
    if context is None:
        return Login({}, "--bootstrap-server", None)
    return Login(context.properties, str(contexts.path_of(context.name)), context.name)


def _how_to_log_in(servers: str) -> str:
    """A context may have one of these addresses, and the password."""
    for name in contexts.names():
        with suppress(LocalError):  # a file that is no context
            context = contexts.read(name)
            if "security.protocol" in context.properties and not {*servers.split(",")}.isdisjoint(
                context.bootstrap_servers.split(",")
            ):
                return f"context {name} has this address and how to log in: give --context {name}"
    return f"if it wants TLS or a password, give {COMMAND_CONFIG} FILE with the client properties"


def _with_ports(servers: str) -> str:
    """A host alone is at Kafka's port, as kcat and rpk take it, and an empty part is none."""
    parts = (part.strip() for part in servers.split(","))
    return ",".join(f"{part}:{DEFAULT_PORT}" if _HOST.fullmatch(part) else part for part in parts if part)


@contextmanager
def connected_to_active_controller(bootstrap_controllers: str) -> Iterator[tuple[Client, str]]:
    """A client of the active controller, which any controller names (KIP-919), and the cluster's id.

    Raises CommandError if no controller answers, or none is active.
    """
    from heirlog.blocking import Client
    from heirlog.client.errors import Unsupported
    from heirlog.client.security import security_from_properties
    from heirlog.protocol.errors import error_code
    from heirlog.protocol.messages import DescribeClusterRequest

    try:
        # the default context is for brokers
        security = security_from_properties(_login(bootstrap_controllers).properties)
        any_controller = Client(bootstrap_controllers, security=security, timeout_s=REACH_TIMEOUT_S)
    except ValueError as error:
        raise UsageError(f"--bootstrap-controller: {error}") from error
    with any_controller:
        try:
            described = any_controller.send_to_any(DescribeClusterRequest(endpoint_type=CONTROLLERS))
        except Unsupported:
            raise
        except OSError as error:
            raise CommandError(
                f"{error}; no controller answers: start the controllers, or give the address of a running one with "
                "--bootstrap-controller (the listener that controller.listener.names names)"
            ) from error
    if described.error_code:
        raise CommandError(
            f"{bootstrap_controllers}: {described.error_message or error_code(described.error_code).name}; give the "
            "address of a controller, or that of a broker with --bootstrap-server"
        )
    active = next((one for one in described.brokers if one.broker_id == described.controller_id), None)
    if active is None:
        raise CommandError(_NONE_ACTIVE)
    host = f"[{active.host}]" if ":" in active.host else active.host
    with Client([f"{host}:{active.port}"], security=security) as client:
        try:
            client.send_to_any(DescribeClusterRequest(endpoint_type=CONTROLLERS), timeout_s=REACH_TIMEOUT_S)
        except OSError as error:
            raise CommandError(
                f"controller {active.broker_id}, the last active one, does not answer ({error}): {_NONE_ACTIVE}"
            ) from error
        yield client, described.cluster_id
