"""Entry of every command.

`heirlog node` takes a short way past typer and rich: they cost more time and memory than a node may take to start. The
short way understands exactly what a node is started with; anything else (--help, a wrong option) goes the long way.

Ctrl-C ends a command in one of these ways, never with a traceback:

    while it imports               at once: nothing is begun, and a KeyboardInterrupt inside an import may be lost
    while it works                 KeyboardInterrupt, for the command to clean up; `app.run` makes an exit code of it
    once it has said everything    at once
    while the interpreter ends     it has no effect: Python has restored the default by then, which would make a command
                                   that has done its work look as if a signal had ended it
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from typing import NoReturn

from heirlog.cli.errors import EXIT_INTERRUPTED


def main() -> NoReturn:
    _open_what_is_closed()
    # it is not, where a shell started this command in the background: such a command ignores Ctrl-C
    is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_interruptible:
        signal.signal(signal.SIGINT, _leave)
        # registered first, so it runs last; what is ignored stays ignored when Python restores its signals
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from heirlog.local.node_command import parse_plain, run_node

    arguments = sys.argv[1:]
    options = parse_plain(arguments[1:]) if arguments[:1] == ["node"] else None
    if options is not None:
        sys.exit(run_node(options))
    # the long way: typer and rich only from here on
    from heirlog.cli.app import run, tree

    tree(arguments)  # imports what it will run
    if is_interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run(arguments)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    if is_interruptible:
        signal.signal(signal.SIGINT, _leave)
    sys.exit(code)


def _open_what_is_closed() -> None:
    """A shell may start a command without a standard stream (`>&-`): what is printed there then goes nowhere.

    Without this the next file or socket that is opened would get its number, and what is printed.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _leave(*_: object) -> None:
    os._exit(EXIT_INTERRUPTED)
