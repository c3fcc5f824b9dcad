"""Requests and responses by name: `from heirlog.protocol.messages import VoteRequest, VoteResponse`.

The module of an API is imported when one of its two classes is first asked for, so that a process never pays for an
API that it does not use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from heirlog.protocol._generated.api_table import TABLE

MODULES = {f"{name}{suffix}": module for name, *_, module in TABLE.values() for suffix in ("Request", "Response")}

if TYPE_CHECKING:
    from heirlog.protocol._generated.messages import *  # noqa: F403
else:

    def __getattr__(name: str) -> type:
        module = MODULES.get(name)
        if module is None:
            raise AttributeError(f"there is no request or response named {name}")
        found = getattr(importlib.import_module(f"heirlog.protocol._generated.messages.{module}"), name)
        globals()[name] = found
        return found
