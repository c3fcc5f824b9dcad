r"""Node processes of a local cluster, as children of this one, or of the fork server that it has (`fork_server`).

    new --start--> running --stop (SIGTERM)--> ended
                      |  \--kill (SIGKILL)---> ended
                      |--ends by itself------> ended   (exit_code tells)
                      +--pause (SIGSTOP)-----> paused --resume (SIGCONT)--> running

Each child has a session of its own, so that Ctrl-C reaches only the parent, which stops brokers first and controllers
last. Each child has the read end of a pipe as standard input, so that it stops on its own when the parent dies without
any clean-up. A paused child cannot do that: for each one a shell waits at the end of such a pipe and resumes it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import heirlog
from heirlog.local.errors import LocalError
from heirlog.local.fork_server import BROKERS, CONTROLLERS, Child, started
from heirlog.local.layout import HOST, NodeLayout

STOP_TIMEOUT_S = 30.0
LOG_STOP_S = 0.03
"""More for each partition: a clean stop flushes its files, if it has changed."""
LAST_OUTPUT_BYTES = 2_000
SHOWN = 300
"""Characters of a line that is no sentence."""
FULL_DISK = "no space left on device"
FULL_BELOW_BYTES = 64 * 1024
"""Less than a node writes until it is ready."""
SENTENCE = "heirlog: "
"""How a command begins the line on stderr that says why it ended; other lines of a node are its log."""
POLL_S = 0.01
FIRST_POLL_S = 0.002
"""A node may start in 50 ms; each further pause is longer, up to `POLL_S`."""
WAIT_SAID_S = 1.0
CONNECT_TIMEOUT_S = 1.0
SAID_TIMEOUT_S = 5.0
"""A node says where its metrics are after it has loaded its logs."""


class NodeProcess:
    """module: run instead of `heirlog node`, with the same options; that of a drill has disks that fail on demand."""

    def __init__(
        self, layout: NodeLayout, *, ledger: bool = False, reuse_port: bool = False, module: str | None = None
    ) -> None:
        self.layout = layout
        self._entry = ["heirlog", "node"] if module is None else [module]
        self._ledger = ledger
        self._reuse_port = reuse_port
        self._process: Child | None = None
        self._printed_before = 0
        self._asked = False
        self._waker: subprocess.Popen[bytes] | None = None

    @property
    def node_id(self) -> int:
        return self.layout.node_id

    @property
    def pid(self) -> int | None:
        """None unless it is running."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def paused(self) -> bool:
        return self._waker is not None

    @property
    def exit_code(self) -> int | None:
        """None before the first start and while it runs; negative: the signal that ended it."""
        return self._process.poll() if self._process is not None else None

    @property
    def failed(self) -> bool:
        """It ended unasked: neither a stop nor a kill came from here."""
        return self._process is not None and not self.running and not self._asked

    def start(self, *, accept_older_metadata: bool = False) -> None:
        """Returns at once; the node is ready when it answers."""
        assert not self.running, f"{self.layout.name} is running"
        # it may have been killed from outside while it was paused
        self.resume()
        self._asked = False
        arguments = [*self._entry, "--config", str(self.layout.properties_path)]
        arguments += ["--output", str(self.layout.output_path)]
        if self._ledger:
            arguments += ["--ledger", str(self.layout.ledger_path)]
        if self._reuse_port:
            arguments.append("--reuse-port")
        if accept_older_metadata:
            arguments.append("--accept-older-metadata")
        arguments.append("--stop-with-stdin")
        with self.layout.output_path.open("ab") as output:
            self._printed_before = output.tell()
            part = CONTROLLERS if self.layout.is_only_controller else BROKERS
            self._process = started(arguments, output, child_environment(), part)

    def pause(self) -> None:
        """Its sockets stay open, and nothing of it runs until `resume`, or until this process has died."""
        assert self._process is not None and self.running and not self.paused, f"{self.layout.name} cannot be paused"
        self._waker = run_when_we_end('kill -CONT "$0"', str(self._process.pid))
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """If it is paused."""
        if self._waker is not None:
            # before the node is gone: its number may soon be another's
            cancel_run(self._waker)
            self._waker = None
            self._signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """Ask the node to stop; a paused one is resumed first."""
        self.resume()
        self._asked = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, and it is gone when this returns."""
        self._asked = True
        self._signal(signal.SIGKILL)
        self.resume()
        self.wait(STOP_TIMEOUT_S)

    def stop_timeout_s(self, base_s: float) -> float:
        """How long a clean stop may take: killed in the middle of it, the node would have stopped uncleanly."""
        try:
            return base_s + LOG_STOP_S * len(os.listdir(self.layout.log_dir))
        except OSError:
            return base_s

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended (or never ran) within the time."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        if self._process.stdin is not None:
            self._process.stdin.close()
        return True

    def listens(self) -> bool:
        """Whether a process accepts connections at its first listener."""
        try:
            socket.create_connection((HOST, self.layout.ports()[0]), CONNECT_TIMEOUT_S).close()
        except OSError:
            return False
        return True

    def metrics_address(self) -> str | None:
        """host:port of its /metrics; None where it serves none."""
        endpoint = self.layout.metrics_endpoint()
        if endpoint is None or endpoint.port:
            return None if endpoint is None else str(endpoint)
        deadline = time.monotonic() + SAID_TIMEOUT_S
        while self.running and time.monotonic() < deadline:
            if found := self._said_metrics_address():
                return found
            time.sleep(POLL_S)
        return None

    def _said_metrics_address(self) -> str | None:
        """As its log says since this start."""
        with self.layout.output_path.open("rb") as output:
            output.seek(self._start_of(output))
            for line in output:
                if b'"metrics-listening"' in line:
                    said = json.loads(line)
                    return f"{said['host']}:{said['port']}"
        return None

    def end_sentence(self) -> str:
        """How it ended and why, in one line: its own sentence or, without one, the last line that is not of its log."""
        code = self.exit_code or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = self._printed().rpartition("\n")[2][:SHOWN]
        why = self.why_it_ended() or ("" if last.startswith("{") else last)
        if code > 0 and FULL_DISK not in why.lower() and _is_full(self.layout.directory):
            # the reason itself may be what could not be written
            why = f"{why}; {FULL_DISK}" if why else f"{FULL_DISK} for {self.layout.directory}"
        return f"{self.layout.name} {how}" + (f": {why}" if why else "")

    def last_output(self) -> str:
        """Why it ended, in its own sentence, or the end of what it has printed since its start."""
        printed = self._printed()
        return _sentence(printed) or printed

    def why_it_ended(self) -> str:
        """Its own sentence; empty if it printed none, as after a SIGKILL."""
        return _sentence(self._printed())

    def _printed(self) -> str:
        """The end of it, since its start."""
        try:
            with self.layout.output_path.open("rb") as output:
                start = self._start_of(output)
                output.seek(max(start, output.seek(0, os.SEEK_END) - LAST_OUTPUT_BYTES))
                return output.read().decode(errors="replace").strip()
        except OSError:
            return ""

    def _start_of(self, output: BinaryIO) -> int:
        """Where the output since this start begins: all of a file that replaced the one of then."""
        return self._printed_before if output.seek(0, os.SEEK_END) >= self._printed_before else 0

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < FULL_BELOW_BYTES
    except OSError:
        return False


def _sentence(printed: str) -> str:
    sentences = [line for line in printed.splitlines() if line.startswith(SENTENCE)]
    return sentences[-1].removeprefix(SENTENCE) if sentences else ""


def run_when_we_end(script: str, argument: str) -> subprocess.Popen[bytes]:
    """A shell that runs `script`, with `argument` as its $0, once this process has ended, in whatever way."""
    return subprocess.Popen(
        ["/bin/sh", "-c", f"read -r _; {script}", argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def cancel_run(shell: subprocess.Popen[bytes]) -> None:
    """`run_when_we_end` will do nothing."""
    shell.kill()
    shell.communicate()


def child_environment() -> dict[str, str]:
    """The child imports this very heirlog, also if it was never installed, and keeps what it compiled.

    Compiling all modules takes longer than everything else in a node's start, and nodes start often.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    here = str(Path(heirlog.__file__).parent.parent)
    inherited = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = f"{here}{os.pathsep}{inherited}" if inherited else here
    return environment


def stop_all(
    brokers: Sequence[NodeProcess],
    controllers: Sequence[NodeProcess],
    timeout_s: float,
    on_wait: Callable[[str], None] = lambda sentence: None,
) -> list[NodeProcess]:
    """Brokers together, then controllers: a broker's clean stop needs one. Returns those that had to be killed.

    timeout_s: for nodes with few partitions. on_wait: called each second with what is waited for.
    """
    killed = []
    for group in (brokers, controllers):
        for process in group:
            process.ask_to_stop()
        longest_s = max((process.stop_timeout_s(timeout_s) for process in group), default=timeout_s)
        deadline = time.monotonic() + longest_s
        for process in group:
            while not process.wait(min(WAIT_SAID_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    process.kill()
                    killed.append(process)
                    break
                running = [process for process in group if process.running]
                on_wait(f"waiting until {_named(running)} {'has' if len(running) == 1 else 'have'} stopped")
    return killed


def wait_until_ready(
    brokers: Sequence[NodeProcess],
    others: Sequence[NodeProcess],
    timeout_s: float,
    on_wait: Callable[[str], None] = lambda sentence: None,
) -> None:
    """Until each of `brokers` knows that all of them are unfenced, and `others` listen.

    on_wait: called again and again with what is waited for.
    Raises LocalError: a node died (with its last output), or timed out (with what is missing).
    """
    from heirlog.local.ready import known_brokers

    wanted = {broker.node_id for broker in brokers}
    waiting = {broker: set[int]() for broker in brokers}
    silent = list(others)
    pause_s = FIRST_POLL_S
    deadline = time.monotonic() + timeout_s
    while waiting or silent:
        for process in (*brokers, *others):
            if not process.running:
                raise LocalError(
                    f"while it started, {process.end_sentence()}; its output: {process.layout.output_path}"
                )
        if time.monotonic() > deadline:
            if not waiting:
                raise LocalError(f"not ready after {timeout_s:g} s: {silent[0].layout.name} does not listen")
            broker, known = next(iter(waiting.items()))
            raise LocalError(
                f"not ready after {timeout_s:g} s: {broker.layout.name} knows brokers {sorted(known)} of "
                f"{sorted(wanted)}; see {broker.layout.output_path}"
            )
        # a client backs off longer and longer from a port at which no node listens yet
        listening = [broker for broker in waiting if broker.listens()]
        for broker in listening:
            waiting[broker] = known_brokers(broker.layout.client_address(), broker.layout.client_security())
            if wanted <= waiting[broker]:
                del waiting[broker]
        silent = [process for process in silent if not process.listens()]
        if waiting or silent:
            mute = [*silent, *(broker for broker in waiting if broker not in listening)]
            fenced = wanted.difference(*waiting.values())
            on_wait(_waited_for(mute, [broker for broker in brokers if broker.node_id in fenced] or list(waiting)))
            time.sleep(pause_s)
            pause_s = min(1.1 * pause_s, POLL_S)


def _waited_for(mute: Sequence[NodeProcess], fenced: Sequence[NodeProcess]) -> str:
    if mute:
        return f"waiting until {_named(mute)} listen{'s' if len(mute) == 1 else ''}"
    return f"waiting until the controllers admit {_named(fenced)}, which may have to check logs first"


def _named(processes: Sequence[NodeProcess]) -> str:
    return ", ".join(process.layout.name for process in processes)
