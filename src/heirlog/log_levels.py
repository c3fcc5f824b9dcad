"""Which events are worth a line: one level for everything, and levels of their own for packages.

    an event of heirlog.broker.cleaner:   heirlog.broker.cleaner? --> heirlog.broker? --> root

`log.level` sets the root, in server.properties or by a change of the broker's configuration, which is kept. The
resource BROKER_LOGGER sets any logger of one process and is forgotten when that ends; what it says about the root holds
until `log.level` changes. Levels and the name "root" are Kafka's; events know four of the levels.

Source: KIP-412.
"""

from __future__ import annotations

from typing import Final

ROOT: Final = "root"
LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
LOGGERS: Final = (
    "heirlog.broker",
    "heirlog.broker.groups",
    "heirlog.controller",
    "heirlog.node",
    "heirlog.node.audit",
    "heirlog.raft",
    "heirlog.server",
    ROOT,
)
"""Every package that says something."""
_OF_EVENTS: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}


class LogLevels:
    """Of one process. Levels are written in any case."""

    def __init__(self, configured: str = "INFO") -> None:
        self._configured = configured.upper()
        self._own: dict[str, str] = {}

    def configure(self, level: str) -> None:
        """The value of `log.level` is this one; nothing happens while it stays the same."""
        level = level.upper()
        if level != self._configured:
            self._configured = level
            self._own.pop(ROOT, None)

    def set(self, logger: str, level: str | None) -> None:
        """None: as its parent again. The logger is one of LOGGERS, the level one of LEVELS."""
        if level is None:
            self._own.pop(logger, None)
        else:
            self._own[logger] = level.upper()

    def level_of(self, logger: str) -> str:
        """Of a logger or a module below it."""
        while logger:
            if logger in self._own:
                return self._own[logger]
            logger = logger.rpartition(".")[0]
        return self._own.get(ROOT, self._configured)

    def shows(self, level: str, module: str) -> bool:
        """Is an event of this level (as `env.Log` has them) of this module to be printed?"""
        return LEVELS.index(_OF_EVENTS[level]) >= LEVELS.index(self.level_of(module))
