"""Logs that were moved aside and that the metadata assigns to this broker again: each is checked before it comes back.

    registered, caught up --> read each of them in slices --> finish, flush, close --> take over all logs, serve
                              heartbeats continue, fenced

The state of such a log is unknown: the broker may have crashed while it moved the log aside, or an operator may have
put a copy there. So the whole log is read, which takes minutes for a large one. In one step that would last longer than
the broker's session, and no request would be answered meanwhile. Until all logs are checked, clients' requests wait as
they do at every start.

A stop leaves unfinished logs under their names, and the next start reads them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heirlog.broker.log_directories import LogDirectories
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory
from heirlog.storage.recovery import Slices
from heirlog.storage.removed_logs import Stray

CHECKED_AT_ONCE = 4
"""Logs checked at the same time: others are read while one is flushed."""


@dataclass(frozen=True, slots=True)
class _Check:
    directory: LogDirectory
    stray: Stray
    slices: Slices[Log]


class StrayLogChecker:
    def __init__(self, env: Env, directories: LogDirectories, is_stopping: Callable[[], bool]) -> None:
        self._env = env
        self._directories = directories
        self._is_stopping = is_stopping
        self._left: list[tuple[LogDirectory, Stray]] = []
        self._under_way = 0

    def check(self, image: Image, config_of: Callable[[str], LogConfig], on_done: Callable[[], None]) -> None:
        """`LogDirectories.take_over` takes the checked logs back once `on_done` is called. Not called after a stop."""
        self._left = list(self._directories.assigned_strays(image))

        def start_checks() -> None:
            while self._left and self._under_way < CHECKED_AT_ONCE and not self._is_stopping():
                directory, stray = self._left.pop()
                if directory not in self._directories.online:
                    continue
                topic = image.topics[stray.topic_id].name
                path = f"{directory.path}/{stray.name}"
                self._env.log("info", "stray-log-check", topic=topic, partition=stray.partition, path=path)
                slices = directory.check_stray(stray, topic, config_of(topic), self._env.wall_ms())
                self._under_way += 1
                self._proceed(_Check(directory, stray, slices), ended)
            if not self._left and not self._under_way and not self._is_stopping():
                on_done()

        def ended() -> None:
            self._under_way -= 1
            start_checks()

        start_checks()

    def _proceed(self, check: _Check, ended: Callable[[], None]) -> None:
        if self._is_stopping():
            return
        try:
            next(check.slices)
        except StopIteration as end:
            self._finish(check, end.value, ended)
        except OSError as error:
            self._failed(check, error, ended)
        else:
            self._env.call_later(0, lambda: self._proceed(check, ended))

    def _finish(self, check: _Check, log: Log, ended: Callable[[], None]) -> None:
        def finished(error: OSError | None) -> None:
            log.close()
            if error is not None:
                self._directories.failed(check.directory, error)
            else:
                check.directory.removed.checked.append(check.stray)
            ended()

        try:
            log.finish(finished)
        except OSError as error:
            self._failed(check, error, ended)

    def _failed(self, check: _Check, error: OSError, ended: Callable[[], None]) -> None:
        self._directories.failed(check.directory, error)
        # later, so that many of them in a row do not nest calls
        self._env.call_later(0, ended)
