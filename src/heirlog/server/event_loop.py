"""The event loop of a node: asyncio's, which calls the owner of a ready socket with less in between.

asyncio makes a handle for each ready socket, puts it into a queue, and runs it in the second half of the turn, in a
context of its own. That takes as long as handling a small request. Here the selector calls the owner itself:

    turn    poll --readers and writers called--> asyncio's own sockets --> timers that are due --> what was called soon

So what an owner calls soon runs in the same turn, after all sockets that were ready at its beginning, and without
another poll in between: followers that wait are answered at the end of the turn in which the records came.

Only `add_reader` and `add_writer` take this way. What asyncio watches for itself (connecting, signals, other threads)
goes through its handles as ever. Without epoll (macOS) a node runs on asyncio's own loop.

Trap. An owner may be gone before its turn comes: another one, ready in the same poll, has closed it. So owners are
looked up when they are called, and not when the system names their descriptors. A descriptor that was closed and given
to another socket meanwhile may be called once with nothing to read; all owners bear that.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVarTuple

Called: TypeAlias = Callable[[], object]
Ts = TypeVarTuple("Ts")

EVENTS_PER_POLL = 256
"""The rest is named by the next poll."""

if sys.platform == "linux":
    import select
    import selectors
    from select import EPOLLIN, EPOLLOUT

    class EpollSelector(selectors.BaseSelector):
        """asyncio's selector, which calls those that are registered by `call_when` itself."""

        def __init__(self, on_error: Callable[[Called, BaseException], None]) -> None:
            """on_error: called with an exception of one that was called, and with it."""
            self._on_error = on_error
            self._epoll = select.epoll()
            self._keys: dict[int, selectors.SelectorKey] = {}
            self._readers: dict[int, Called] = {}
            self._writers: dict[int, Called] = {}

        # for owners

        def call_when_readable(self, fd: int, called: Called) -> None:
            self._add(self._readers, fd, called)

        def call_when_writable(self, fd: int, called: Called) -> None:
            self._add(self._writers, fd, called)

        def forget_reader(self, fd: int) -> bool:
            """Whether there was one."""
            if self._readers.pop(fd, None) is None:
                return False
            self._watch(fd)
            return True

        def forget_writer(self, fd: int) -> bool:
            if self._writers.pop(fd, None) is None:
                return False
            self._watch(fd)
            return True

        def _add(self, owners: dict[int, Called], fd: int, called: Called) -> None:
            if fd in self._keys:
                raise ValueError(f"asyncio watches descriptor {fd} for itself")
            before = owners.get(fd)
            owners[fd] = called
            try:
                self._watch(fd)
            except OSError:
                if before is None:
                    del owners[fd]
                raise

        def _watch(self, fd: int) -> None:
            """The system forgets a descriptor that is closed, and its number may be another socket's since: what it
            watches is not remembered, but asked.
            """
            events = (EPOLLIN if fd in self._readers else 0) | (EPOLLOUT if fd in self._writers else 0)
            if not events:
                self._unwatch(fd)
                return
            try:
                self._epoll.modify(fd, events)
            except FileNotFoundError:
                self._epoll.register(fd, events)

        def _unwatch(self, fd: int) -> None:
            with suppress(OSError):  # it is closed
                self._epoll.unregister(fd)

        # for asyncio

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            fd = _fileno(fileobj)
            if fd in self._keys:
                raise KeyError(f"{fileobj!r} is registered already")
            key = selectors.SelectorKey(fileobj, fd, events, data)
            self._epoll.register(fd, _epoll_events(events))
            self._keys[fd] = key
            return key

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            key = self._keys.pop(_fileno(fileobj))
            self._unwatch(key.fd)
            return key

        def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            key = self._keys[_fileno(fileobj)]
            if events != key.events:
                self._epoll.modify(key.fd, _epoll_events(events))
            changed = self._keys[key.fd] = key._replace(events=events, data=data)
            return changed

        def get_map(self) -> Any:
            return self._keys

        def get_key(self, fileobj: Any) -> selectors.SelectorKey:
            return self._keys[_fileno(fileobj)]

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is None:
                timeout = -1
            elif timeout > 0:
                timeout = math.ceil(timeout * 1e3) * 1e-3  # epoll has whole milliseconds: not before it is time
            else:
                timeout = 0
            others: list[tuple[selectors.SelectorKey, int]] = []
            readers = self._readers
            for fd, events in self._epoll.poll(timeout, EVENTS_PER_POLL):
                reader = readers.get(fd)
                if reader is not None and events & ~EPOLLOUT:
                    self._call(reader)
                elif fd in self._keys:
                    key = self._keys[fd]
                    found = key.events & (
                        (selectors.EVENT_READ if events & ~EPOLLOUT else 0)
                        | (selectors.EVENT_WRITE if events & ~EPOLLIN else 0)
                    )
                    others.append((key, found))
                if events != EPOLLIN and (writer := self._writers.get(fd)) is not None and events & ~EPOLLIN:
                    self._call(writer)
            return others

        def _call(self, called: Called) -> None:
            try:
                called()
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._on_error(called, error)

        def close(self) -> None:
            self._epoll.close()
            self._keys.clear()
            self._readers.clear()
            self._writers.clear()

    def _fileno(fileobj: Any) -> int:
        return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())

    def _epoll_events(events: int) -> int:
        return (EPOLLIN if events & selectors.EVENT_READ else 0) | (EPOLLOUT if events & selectors.EVENT_WRITE else 0)

    class NodeEventLoop(asyncio.SelectorEventLoop):
        """asyncio's loop, whose readers and writers are called by the selector. They are known by their descriptors."""

        def __init__(self) -> None:
            self._direct = EpollSelector(self._owner_failed)
            super().__init__(self._direct)

        def add_reader(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
            self._direct.call_when_readable(_fileno(fd), partial(callback, *args) if args else callback)

        def remove_reader(self, fd: Any) -> bool:
            return self._direct.forget_reader(_fileno(fd)) or super().remove_reader(fd)

        def add_writer(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
            self._direct.call_when_writable(_fileno(fd), partial(callback, *args) if args else callback)

        def remove_writer(self, fd: Any) -> bool:
            return self._direct.forget_writer(_fileno(fd)) or super().remove_writer(fd)

        def _owner_failed(self, called: Called, error: BaseException) -> None:
            self.call_exception_handler({"message": f"Exception in {called!r}", "exception": error, "loop": self})

    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = NodeEventLoop
else:
    new_event_loop = asyncio.new_event_loop
