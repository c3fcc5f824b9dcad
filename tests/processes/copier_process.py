"""A copier that is a process, and can be killed: copier_process.py SERVERS NUMBER SOURCE SINK"""

from __future__ import annotations

import sys

from processes.transacting import Copier

if __name__ == "__main__":
    servers, number, source, sink = sys.argv[1:]
    Copier(servers, int(number), source, sink, static=True).join()
