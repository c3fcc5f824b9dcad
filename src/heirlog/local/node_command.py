"""`heirlog node`: one node in the foreground, configured by Kafka's names.

Imported on the short way (see main): nothing here may import typer, rich or pathlib's friends before the node needs
them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heirlog.server.files import OsFiles
    from heirlog.server.flusher import Deliver

STOP_TIMEOUT_S = 15.0
"""How long an orphan may take for its clean stop before it ends itself."""
EXIT_FAILED = 1
"""As of every command."""
CONTROLLER_GRACE_S = 2.0
"""Orphaned brokers and their controller notice at the same time, and brokers need it to stop cleanly."""


@dataclass(slots=True)
class NodeOptions:
    config: str = ""
    ledger: str | None = None
    """File of the flush ledger (`heirlog.server.ledger`); only tests and drills start nodes with one."""
    output: str | None = None
    """File for what the node says, instead of stdout and stderr; renamed when it gets long (`node_log`)."""
    reuse_port: bool = False
    """Listen although the parent holds the port (SO_REUSEPORT)."""
    accept_older_metadata: bool = False
    """Follow a controller whose metadata are older than this node's own copy."""
    stop_with_stdin: bool = False
    """Stop cleanly once standard input ends: its other end belongs to the parent, which may have died."""


VALUES = {"--config": "config", "-c": "config", "--ledger": "ledger", "--output": "output"}
FLAGS = {
    "--reuse-port": "reuse_port",
    "--stop-with-stdin": "stop_with_stdin",
    "--accept-older-metadata": "accept_older_metadata",
}


def parse_plain(arguments: Sequence[str]) -> NodeOptions | None:
    """None for anything but the plain form; the long way then explains what is wrong."""
    options = NodeOptions()
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in FLAGS and not equals:
            setattr(options, FLAGS[name], True)
        elif name in VALUES and (equals or rest):
            setattr(options, VALUES[name], value if equals else rest.pop(0))
        else:
            return None
    return options if options.config else None


def run_node(options: NodeOptions) -> int:
    """Returns the exit code once the node has stopped."""
    return run_node_on(lambda deliver: files_of(options, deliver), options)


def files_of(options: NodeOptions, deliver: Deliver) -> OsFiles:
    """The node's disks. deliver: see `heirlog.server.flusher`."""
    if options.ledger is None:
        from heirlog.server.files import OsFiles

        return OsFiles(deliver)
    from heirlog.server.ledger_files import LedgerFiles  # none of its code runs otherwise

    return LedgerFiles(deliver, options.ledger)


def run_node_on(files: Callable[[Deliver], OsFiles], options: NodeOptions, source: str = "") -> int:
    """`run_node` with disks that the caller makes: those of a drill fail on demand. source: see
    `heirlog.server.main.run_node`."""
    from heirlog.local import properties
    from heirlog.local.errors import LocalError
    from heirlog.server.main import run_node as run_in_loop

    if options.output is not None:
        from heirlog.local.node_log import NodeLog

        with suppress(OSError):  # what it says goes where it went
            sys.stderr = NodeLog(options.output)
    overrides = {"heirlog.accept.older.metadata": "true"} if options.accept_older_metadata else {}
    try:
        config = properties.read_static(options.config, overrides)
        properties.refuse_copied(options.config, config)
    except LocalError as error:
        print(f"heirlog: {error}", file=sys.stderr)
        return EXIT_FAILED
    if options.stop_with_stdin:
        grace_s = CONTROLLER_GRACE_S if config.is_controller else 0.0
        threading.Thread(target=_stop_at_end_of_stdin, args=(grace_s,), name="parent-watch", daemon=True).start()
    return run_in_loop(config, files=files, reuse_port=options.reuse_port, source=source, config_file=options.config)


def _stop_at_end_of_stdin(grace_s: float) -> None:
    while os.read(0, 4096):
        pass
    time.sleep(grace_s)
    os.kill(os.getpid(), signal.SIGTERM)
    # an orphan whose peers are gone may wait for them in vain
    time.sleep(STOP_TIMEOUT_S)
    os.kill(os.getpid(), signal.SIGKILL)
