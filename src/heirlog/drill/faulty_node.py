"""A node as `heirlog node` starts it, on disks that the drill makes full or slow (`heirlog.drill.disk_faults`).

Takes the options of `heirlog node`; `--ledger` is required. The disk's switch is next to the ledger.
"""

from __future__ import annotations

import sys
from pathlib import Path

from heirlog.drill.disk_faults import NAME, DiskSwitch, FaultyFiles
from heirlog.local.node_command import parse_plain, run_node_on


def main(arguments: list[str]) -> int:
    options = parse_plain(arguments)
    if options is None or options.ledger is None:
        print("heirlog: this module is started by `heirlog drill chaos` only", file=sys.stderr)
        return 2
    ledger = options.ledger
    switch = DiskSwitch(Path(ledger).with_name(NAME))
    return run_node_on(lambda deliver: FaultyFiles(deliver, ledger, switch), options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
