"""CRC-32C (Castagnoli), computed by the extension module of the package `crc32c`.

The package itself is passed by: it asks importlib.metadata for its own version when it is imported, which loads email,
urllib and zipfile. That is a sixth of the CPU of a node's start and 4 MiB of its memory. Where the extension module is
not where it has always been, the package is imported as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heirlog.env import Buffer

EXTENSION = "crc32c._crc32c"


def _extension() -> Any:
    """The extension module, None if it cannot be found without importing the package."""
    package = find_spec("crc32c")
    locations = None if package is None else package.submodule_search_locations
    found = None if locations is None else PathFinder.find_spec(EXTENSION, list(locations))
    if found is None or found.loader is None:
        return None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _load() -> Callable[[Buffer], int]:
    module = _extension()
    if not hasattr(module, "crc32c"):
        import crc32c as module
    function: Callable[[Buffer], int] = module.crc32c
    return function


crc32c = _load()
