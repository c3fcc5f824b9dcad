"""The failure of a log: the first one is final.

    working  --a flush or another write in the background fails-->  failed    reported once; `error` is set, and every
                                                                              later append, roll or flush raises it
    either   --detach-->  detached                                            nothing is reported any more

After a failed flush the kernel may have dropped the pages that it could not write. The next flush would then succeed
without them, and the recovery point would move above records that are not on the disk. So no flush is tried again.

A call that raises OSError does not set `error`, because its caller has the error already.

A log is detached when it is closed, or when its directory is about to be renamed. What its last writes report does not
matter any more: the log that has the directory's name by then may be another one.
"""

from __future__ import annotations

from collections.abc import Callable


class LogFailure:
    __slots__ = ("_on_failure", "error", "is_detached")

    def __init__(self, on_failure: Callable[[OSError], None]) -> None:
        self._on_failure = on_failure
        self.error: OSError | None = None
        self.is_detached = False

    def check(self) -> None:
        """Raises the failure if there is one."""
        if self.error is not None:
            raise self.error

    def background_done(self, error: OSError | None) -> None:
        """The callback of a write that no caller waits for; `error` is None if it succeeded."""
        if error is not None and self.error is None and not self.is_detached:
            self.error = error
            self._on_failure(error)

    def detach(self) -> None:
        self.is_detached = True
