"""Requests and responses by name: `from heirlog.protocol.messages import VoteRequest, VoteResponse`.

The module of an API is imported when one of its two classes is first asked for, so that a process never pays for an
API that it does not use. So is a module that reads and writes the usual messages of an API in a shorter way.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from heirlog.protocol._generated.api_table import TABLE

MODULES = {f"{name}{suffix}": module for name, *_, module in TABLE.values() for suffix in ("Request", "Response")}

SHORT_WAYS = {"fetch": "one_partition_fetch", "produce": "one_partition_produce"}
"""By the module of the API."""

if TYPE_CHECKING:
    from heirlog.protocol._generated.messages import *  # noqa: F403
else:

    def __getattr__(name: str) -> type:
        module = MODULES.get(name)
        if module is None:
            raise AttributeError(f"there is no request or response named {name}")
        found = getattr(importlib.import_module(f"heirlog.protocol._generated.messages.{module}"), name)
        if module in SHORT_WAYS:
            importlib.import_module(f"heirlog.protocol.{SHORT_WAYS[module]}")
        globals()[name] = found
        return found
