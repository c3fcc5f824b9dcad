"""The proxy between nodes, from the side of the drill: starts its process and sends it commands."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from heirlog.drill.observe import DrillFailure
from heirlog.local.processes import child_environment

END_S = 10.0


class Links:
    """`heirlog.drill.link_proxy` in a process. A link is a pair (from, to) of node ids."""

    def __init__(self) -> None:
        # a session of its own: Ctrl-C reaches only the drill, which closes the pipe
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "heirlog.drill.link_proxy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=child_environment(),
        )
        self._lock = threading.Lock()

    def listen(self, node: int, port: int) -> int:
        """The proxy's port for a listener of this node. Raises DrillFailure, as all commands do."""
        answer = self._command({"do": "listen", "node": node, "port": port})
        return int(answer["port"])

    def hold(self, links: Iterable[tuple[int, int]]) -> None:
        self._command({"do": "hold", "links": list(links)})

    def delay(self, links: Iterable[tuple[int, int]], delay_ms: int) -> None:
        self._command({"do": "delay", "links": list(links), "delay_ms": delay_ms})

    def cut(self, links: Iterable[tuple[int, int]]) -> None:
        self._command({"do": "cut", "links": list(links)})

    def reset(self, links: Iterable[tuple[int, int]]) -> None:
        self._command({"do": "reset", "links": list(links)})

    def half_close(self, links: Iterable[tuple[int, int]]) -> None:
        self._command({"do": "half-close", "links": list(links)})

    def heal(self, links: Iterable[tuple[int, int]]) -> None:
        self._command({"do": "heal", "links": list(links)})

    def close(self) -> None:
        """End the proxy, and with it every connection."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _command(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(command) + "\n")
                self._process.stdin.flush()
            except OSError as error:
                raise DrillFailure(f"the proxy between the nodes ended by itself ({error})") from error
            answer = self._process.stdout.readline()
        if not answer:
            raise DrillFailure("the proxy between the nodes ended by itself; its last lines are on standard error")
        found: dict[str, Any] = json.loads(answer)
        return found
