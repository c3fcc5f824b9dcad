"""Small nodes with the face of the product's: they answer, or stay silent, and remember what they saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.types import Endpoint
from heirlog.sim.connection import SimConnection
from heirlog.sim.env import SimEnv
from heirlog.sim.machines import Machines
from heirlog.sim.network import Network
from heirlog.sim.world import Process, World

SERVER = Endpoint("server", 9092)


class Echo:
    """Answers each request at once with its number, unless `silent`."""

    def __init__(self, env: SimEnv) -> None:
        self.env = env
        self.seen: list[Any] = []
        self.versions: list[int] = []
        self.closed = 0
        self.silent = False
        self.answer: Callable[[Any], Any] = lambda request: MetadataResponse(controller_id=len(self.seen))

    def start(self) -> None:
        pass

    def connected(self, transport: SimConnection) -> EchoConnection:
        return EchoConnection(self, transport)


class EchoConnection:
    def __init__(self, node: Echo, transport: SimConnection) -> None:
        self.node = node
        self.transport = transport
        self.paused = False

    def received(self, header: RequestHeader, request: Any, size: int = 0) -> None:
        self.node.seen.append(request)
        self.node.versions.append(header.api_version)
        if not self.node.silent:
            self.transport.send(header, self.node.answer(request))

    def closed(self) -> None:
        self.node.closed += 1


class Caller:
    def __init__(self, env: SimEnv) -> None:
        self.env = env
        self.results: list[Any] = []

    def start(self) -> None:
        pass

    def ask(self, request: Any = None, channel: str = "main", timeout_ms: int = 1000) -> None:
        self.env.send(SERVER, channel, request or MetadataRequest(topics=[]), self.results.append, timeout_ms)


class Pair:
    """A server and a client on two machines."""

    def __init__(self, seed: int = 1, *, wire: bool = False) -> None:
        self.world = World(seed)
        self.network = Network(self.world, wire=wire)
        self.machines = Machines(self.world, self.network)
        self.server = self.start_server()
        env = self.machines.boot("client")
        self.caller = Caller(env)
        self.client_process = self.machines.launch(env, self.caller)
        self.world.run_for(1)

    def start_server(self) -> Echo:
        env = self.machines.boot("server")
        echo = Echo(env)
        self.server_process: Process = self.machines.launch(env, echo, [("PLAINTEXT", SERVER)], echo.connected)
        return echo
