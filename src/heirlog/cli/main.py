"""Entry of every command.

`heirlog node` takes a short way past typer and rich: they cost more time and memory than a node may take to start. The
short way understands exactly what a node is started with; anything else (--help, a wrong option) goes the long way.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from heirlog.cli.node import run_node, understood


def main() -> NoReturn:
    arguments = sys.argv[1:]
    if arguments[:1] == ["node"]:
        options = understood(arguments[1:])
        if options is not None:
            sys.exit(run_node(options))
    # the long way: typer and rich only from here on
    from heirlog.cli.app import run

    sys.exit(run(arguments))
