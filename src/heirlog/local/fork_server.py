r"""Starts nodes by forking one process that has imported everything a node needs, instead of one interpreter each.

    this process                         fork server                          node
        |---- starts it, once ----------->| imports, part by part
        |-- arguments, stdin, output ---->|-- fork ----------------------------->| runs as `python -m ...` does
        |<-- its id, and a descriptor ----|                                      |
        |== signals, by the descriptor =========================================>|
        |-- "how did it end?" ----------->|-- waits for it, as its parent
        |<-- status ----------------------|

A node that is forked starts in a third of the time, and shares the pages of what was imported with the others. The
server has one thread, and once everything is imported it does nothing between two requests. It ends when this process
has ended or closes its socket; the nodes notice that by themselves, by their standard input.

The first controller of a program is forked before the modules of brokers are imported (`PARTS`), and starts meanwhile.
Whatever a node finds missing it imports itself, as a node that is not forked does.

A process id may belong to another process once its own has been waited for. So a node is signalled through its
descriptor (pidfd), and the server waits for a node only when it is asked, after the descriptor has told its end.

Only on Linux: macOS has no such descriptors, and its libraries do not survive a fork. There `started` gives a plain
child, as it does where the server cannot be had. A node has the environment, the folder, the umask and the limit of
open files that this process has when it starts the node; other limits, and the priority, are those of the server.
"""

from __future__ import annotations

import errno
import gc
import importlib
import json
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final, Protocol

from heirlog import version

ROOM = 1_000
"""Bytes for the command line of a node, as `ps` shows it."""
REQUEST_LIMIT = 1 << 17
"""Bytes; an environment is most of a request."""
ANSWER_TIMEOUT_S = 60.0
"""Also for what it imports first, on a machine that is very busy."""
BEFORE_MAIN = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_", "LC_", "LANG")
"""Prefixes of variables that work when an interpreter starts, not later: another value needs another server."""
OF_THE_ASKER = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""May be sent to all processes of a service at once. The server ends with the process that asks, which ends the nodes
first and wants to know how they ended."""
LOST = int(-signal.SIGKILL)
"""The status of a node whose server is gone, and with it the knowledge."""

EVERY_NODE: Final = "every node"
CONTROLLERS: Final = "controllers"
BROKERS: Final = "brokers"
PARTS: Final = {
    EVERY_NODE: (
        "encodings.idna",  # of the names of hosts
        "heirlog.apis.api_versions",
        "heirlog.cli.main",
        "heirlog.local.node_command",
        "heirlog.local.node_log",
        "heirlog.local.properties",
        "heirlog.node.client_quotas",
        "heirlog.node.request_metrics",
        "heirlog.server.ledger_files",
        "heirlog.server.main",
    ),
    CONTROLLERS: (
        "heirlog.apis.broker_heartbeat",
        "heirlog.apis.broker_registration",
        "heirlog.apis.controller_registration",
        "heirlog.apis.fetch",
        "heirlog.controller.controller",
        "heirlog.controller.controller_registration_manager",
    ),
    BROKERS: ("heirlog.apis.describe_cluster", "heirlog.broker.broker"),
}
"""What nodes import until they serve, in this order: a cluster starts its controllers first."""


class Child(Protocol):
    """What `subprocess.Popen` and `ForkedChild` have in common."""

    pid: int
    stdin: Any
    """Its end ends the node."""

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


def started(
    arguments: Sequence[str], output: BinaryIO, environment: Mapping[str, str], part: str = EVERY_NODE
) -> Child:
    """A process that does what `python -P -m ARGUMENTS` does, in a session of its own.

    Its standard input is a pipe, `output` takes its standard output and error. part: of `PARTS`: it is forked when this
    one and those before it are imported. Raises OSError if it cannot be started.
    """
    server = prepare(environment)
    if server is not None:
        with suppress(ServerGone):
            return server.fork(arguments, output, environment, part)
    # -P: a file in the working directory must not pass for a module of the standard library
    return subprocess.Popen(
        [sys.executable, "-P", "-m", *arguments],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env=environment,
    )


class ServerGone(Exception):
    """Something ended the fork server, or it cannot take this request."""


class ForkedChild:
    """A node whose parent is the fork server; used by one thread at a time, as is a Popen."""

    def __init__(self, server: ForkServer, pid: int, descriptor: int, stdin: int) -> None:
        self.pid = pid
        self.stdin = open(stdin, "wb", buffering=0)  # noqa: SIM115
        self.returncode: int | None = None
        self._server = server
        self._descriptor = descriptor

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0):
            self.returncode = self._server.status(self.pid)
            os.close(self._descriptor)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        code = self.poll()
        assert code is not None, "it has ended"
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, sig)

    def _has_ended(self, timeout_s: float | None) -> bool:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        return bool(waiting.poll(None if timeout_s is None else max(0, round(timeout_s * 1000))))

    def __del__(self) -> None:
        if self.returncode is None:
            os.close(self._descriptor)


class ForkServer:
    def __init__(self, environment: Mapping[str, str]) -> None:
        """Raises OSError if it cannot be started, or the system has no pidfd."""
        os.close(os.pidfd_open(os.getpid()))
        self.code = _code(environment)
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._asked = 0
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, " " * ROOM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
        self._end = weakref.finalize(self, _end, self._socket, process, self.owner)

    @property
    def is_usable(self) -> bool:
        return self._end.alive and self.owner == os.getpid()

    def fork(
        self, arguments: Sequence[str], output: BinaryIO, environment: Mapping[str, str], part: str = EVERY_NODE
    ) -> ForkedChild:
        """Raises ServerGone, or OSError if there is no room for a further process."""
        theirs, ours = os.pipe()
        try:
            request = request_for(arguments, environment, part)
            answer, descriptors = self._ask(request, [theirs, output.fileno()])
            if not descriptors:
                number = answer.get("errno", errno.EMFILE)
                raise OSError(number, os.strerror(number))
        except BaseException:
            # a node that was forked all the same ends with it
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return ForkedChild(self, answer["pid"], descriptors[0], ours)

    def status(self, pid: int) -> int:
        """How a node that has ended did so, as `subprocess` says it."""
        try:
            answer, _ = self._ask({"ended": pid}, [])
        except ServerGone:
            return LOST
        return answer["status"]

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> tuple[dict[str, int], list[int]]:
        with self._lock:
            self._asked = number = self._asked + 1
            message = json.dumps({**request, "number": number}).encode()
            if len(message) > REQUEST_LIMIT:
                raise ServerGone
            try:
                socket.send_fds(self._socket, [message], descriptors)
                while True:
                    answer, received, _, _ = socket.recv_fds(self._socket, REQUEST_LIMIT, 1)
                    for descriptor in received:
                        os.set_inheritable(descriptor, False)
                    if not answer:
                        raise EOFError
                    if (found := json.loads(answer))["number"] == number:
                        return found, received
                    # to a question whose asker was interrupted
                    for descriptor in received:
                        os.close(descriptor)
            except (OSError, EOFError) as error:
                self._end()
                raise ServerGone from error


def request_for(arguments: Sequence[str], environment: Mapping[str, str], part: str = EVERY_NODE) -> dict[str, Any]:
    return {
        "arguments": list(arguments),
        "part": part,
        "environment": dict(environment),
        "folder": _folder(),
        "umask": _umask(),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    }


def _end(control: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    control.close()
    # a process that was forked from ours has a copy of both
    if owner == os.getpid():
        # it may still be importing; its nodes are not concerned
        process.kill()
        process.wait()


_lock = threading.Lock()
_current: ForkServer | None = None


def prepare(environment: Mapping[str, str]) -> ForkServer | None:
    """The server of this process, begun on the first call, before the first node is needed; None without one."""
    global _current
    # an interpreter that was built for an older kernel lacks them
    if sys.platform != "linux" or not (hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")):
        return None
    with _lock:
        if _current is None or not _current.is_usable or _current.code != _code(environment):
            _current = None
            with suppress(OSError):
                _current = ForkServer(environment)
        return _current


def _forget() -> None:
    """In a process that was forked from ours: the server answers us."""
    global _lock, _current
    _lock, _current = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)


def _code(environment: Mapping[str, str]) -> object:
    """What has to be as it was when the server began: heirlog may have been upgraded since then."""
    installed = os.stat(version.__file__)
    return (
        installed.st_ino,
        installed.st_mtime_ns,
        {name: value for name, value in environment.items() if name.startswith(BEFORE_MAIN)},
    )


def _umask() -> int:
    """It cannot be asked for without being changed, which other threads would notice."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return int(next(line for line in file if line.startswith("Umask:")).split()[1], 8)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"  # it was removed


def main() -> None:
    gc.disable()  # what is imported stays, and pages that nothing touches stay shared
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in OF_THE_ASKER]
    # the kernel reaps them itself where it is ignored
    before.append((signal.SIGCHLD, signal.signal(signal.SIGCHLD, signal.SIG_DFL)))
    command_line = CommandLine()
    sys.argv = serve(Imports())
    for number, handler in before:
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_ASKER)
    gc.enable()
    command_line.show([sys.executable, "-P", "-m", *sys.argv])
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


class Imports:
    """What nodes need, part by part."""

    def __init__(self) -> None:
        self._missing = list(PARTS)

    @property
    def is_complete(self) -> bool:
        return not self._missing

    def next_part(self) -> None:
        part = self._missing.pop(0)
        for name in PARTS[part]:
            importlib.import_module(name)
        # without a collection, for which a node would wait: little of what was made is garbage
        gc.freeze()

    def up_to(self, part: str) -> None:
        while part in self._missing:
            self.next_part()


def serve(imports: Imports) -> list[str]:
    """Returns in each node, with its arguments. The server does not return: it ends with the process that asks."""
    control = socket.socket(fileno=sys.stdin.fileno())
    asked = select.poll()
    asked.register(control, select.POLLIN)
    statuses: dict[int, int] = {}
    """Of nodes that have ended: who asked may have been interrupted, and ask again."""
    while True:
        while not imports.is_complete and not asked.poll(0):
            imports.next_part()
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST_LIMIT, 2)
        if not message:
            os._exit(0)
        request = json.loads(message)
        answer = partial(_answer, control, request["number"])
        if "ended" in request:
            pid = request["ended"]
            if pid not in statuses:
                statuses[pid] = _status(pid)
            answer({"status": statuses[pid]})
            continue
        imports.up_to(request["part"])
        # a signal to the node waits until the node has its handlers
        signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_ASKER)
        try:
            if len(descriptors) < 2:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            pid = os.fork()
            if pid == 0:
                control.detach()
                return _become_node(request, *descriptors)
            statuses.pop(pid, None)
            child = _descriptor(pid)
        except OSError as error:
            answer({"errno": error.errno})
        else:
            answer({"pid": pid}, child)
            os.close(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_ASKER)
        for descriptor in descriptors:
            os.close(descriptor)


def _status(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return LOST


def _descriptor(pid: int) -> int:
    """Raises OSError, and the child is gone, if there is no room for it."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _answer(control: socket.socket, number: int, said: Mapping[str, Any], *descriptors: int) -> None:
    socket.send_fds(control, [json.dumps({**said, "number": number}).encode()], descriptors)


def _become_node(request: Mapping[str, Any], stdin: int, output: int) -> list[str]:
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(stdin)
    os.close(output)
    os.umask(request["umask"])
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, request["files"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    with suppress(OSError):  # as for a child that is started there
        os.chdir(request["folder"])
    return list(request["arguments"])


class CommandLine:
    """What `ps` shows of this process: it is in the memory of each, at the place where the kernel put it."""

    def __init__(self) -> None:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            # after the name, which may contain anything, the third field and those that follow
            fields = file.read().rpartition(")")[2].split()
        self._begin, self._end = int(fields[45]), int(fields[46])

    def show(self, arguments: Sequence[str]) -> None:
        """As much of them as there is room for. Where the system does not allow it, the old ones stay."""
        room = self._end - self._begin
        shown = os.fsencode("\0".join(arguments))[: room - 1]
        with suppress(OSError), open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(self._begin)
            memory.write(shown.ljust(room, b"\0"))


if __name__ == "__main__":
    main()
