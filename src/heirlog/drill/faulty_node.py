"""A node as `heirlog node` starts it, on disks that the drill makes full or slow (`heirlog.drill.disk_faults`).

Takes the options of `heirlog node`; `--ledger` is required. The disk's switch is next to the ledger. Where listeners
are closed, the node connects to others from an address of its own, by which the proxy between nodes knows it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from heirlog.drill.disk_faults import NAME, DiskSwitch, FaultyFiles
from heirlog.drill.link_proxy import address_of
from heirlog.local import properties
from heirlog.local.node_command import parse_plain, run_node_on


def main(arguments: list[str]) -> int:
    options = parse_plain(arguments)
    if options is None or options.ledger is None:
        print("heirlog: this module is started by `heirlog drill chaos` only", file=sys.stderr)
        return 2
    ledger = options.ledger
    switch = DiskSwitch(Path(ledger).with_name(NAME))
    return run_node_on(lambda deliver: FaultyFiles(deliver, ledger, switch), options, _source(options.config))


def _source(path: str) -> str:
    """Empty: the proxy reads who it is."""
    given = properties.read(Path(path))
    return address_of(int(given["node.id"])) if "super.users" in given else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
