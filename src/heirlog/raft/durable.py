"""A small file replaced as a whole, so that a crash leaves the old one or the new one, never half of either.

    write NAME.suffix -> flush it -> rename to NAME -> sync the directory -> done

The order is the point: a rename that reaches the disk before the bytes would leave an empty file under the final name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heirlog.env import Buffer, Files

OnDone = Callable[[OSError | None], None]


def replace_file(
    files: Files, directory: str, name: str, data: Iterable[Buffer], on_done: OnDone, suffix: str = ".tmp"
) -> None:
    """Write `data` as directory/name through directory/name+suffix; `on_done` when it would survive a power cut.

    Raises OSError if writing fails; what fails later goes to `on_done`, and the file under `name` is the old one.
    """
    temporary = f"{directory}/{name}{suffix}"
    if files.exists(temporary):
        files.unlink(temporary)
    file = files.open(temporary, create=True)
    for piece in data:
        file.append(piece)

    def flushed(error: OSError | None) -> None:
        file.close()
        if error is not None:
            on_done(error)
            return
        try:
            files.rename(temporary, f"{directory}/{name}")
        except OSError as failure:
            on_done(failure)
            return
        files.sync_dir(directory, on_done)

    files.flush(file, flushed)
