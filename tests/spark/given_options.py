"""Options of a read, with the least that every read needs."""

from __future__ import annotations

from typing import Any

from heirlog.spark.options import read_options

SERVERS = {"kafka.bootstrap.servers": "h:1"}
MINIMAL = {**SERVERS, "subscribe": "t"}


def batch(**options: str) -> Any:
    return read_options({**MINIMAL, **options}, streaming=False)


def stream(**options: str) -> Any:
    return read_options({**MINIMAL, **options}, streaming=True)
