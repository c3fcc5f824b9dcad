"""The clusters that this user works with: a file of Kafka's client properties for each, and which is the default.

    <folder>/local.properties       written by `heirlog up`, with the addresses of all its brokers and its data folder
    <folder>/prod.properties        made with `heirlog context create`, or by hand; `security.protocol` and so on too
    <folder>/current                the name of the default

The folder is $XDG_CONFIG_HOME/heirlog/contexts, or ~/.config/heirlog/contexts. Without a file `current`, the default is
the context `local`, if there is one. $HEIRLOG_CONTEXT names another default, for one terminal or one command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heirlog.local import properties
from heirlog.local.errors import LocalError

VARIABLE = "HEIRLOG_CONTEXT"
LOCAL = "local"
SERVERS = "bootstrap.servers"
DATA = "heirlog.data.folder"
"""Of the cluster on this machine that the context is for; clients ignore it."""
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_SUFFIX = ".properties"


@dataclass(frozen=True, slots=True)
class ClientContext:
    name: str
    properties: Mapping[str, str]

    @property
    def bootstrap_servers(self) -> str:
        return self.properties[SERVERS]

    @property
    def is_left_over(self) -> bool:
        """Its cluster was one of `heirlog up`, and its data folder is gone."""
        return DATA in self.properties and not Path(self.properties[DATA]).is_dir()


def folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "heirlog" / "contexts"


def path_of(name: str) -> Path:
    """Raises LocalError for what cannot be a name."""
    if not _NAME.fullmatch(name):
        raise LocalError(f"{name!r} cannot be the name of a context: use letters, digits, dots, dashes, underscores")
    return folder() / f"{name}{_SUFFIX}"


def names() -> list[str]:
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder().glob(f"*{_SUFFIX}"))


def read(name: str) -> ClientContext:
    """Raises LocalError: there is none, or its file is wrong."""
    path = path_of(name)
    if not path.exists():
        raise LocalError(f"there is no context {name}; heirlog context list shows what there is")
    found = properties.read(path)
    if not found.get(SERVERS):
        raise LocalError(f"{path} has no {SERVERS}; add the line {SERVERS}=HOST:PORT")
    return ClientContext(name, found)


def named() -> str | None:
    """By $HEIRLOG_CONTEXT; None without it."""
    return os.environ.get(VARIABLE) or None


def current_name() -> str | None:
    """Of the default; None without one."""
    return named() or selected_name()


def selected_name() -> str | None:
    """The default of every terminal: the one that `use` chose, or `local`; None without one."""
    try:
        return (folder() / "current").read_text(encoding="utf-8").strip()
    except OSError:
        return LOCAL if path_of(LOCAL).exists() else None


def current() -> ClientContext | None:
    """Raises LocalError if it is gone, or its file is wrong."""
    name = current_name()
    return None if name is None else read(name)


def use(name: str) -> None:
    """Make it the default. Raises LocalError."""
    read(name)
    _write(folder() / "current", f"{name}\n")


def write(name: str, given: Mapping[str, str], comment: str) -> Path:
    """Raises LocalError."""
    path = path_of(name)
    _write(path, properties.render(given, comment))
    return path


def delete_left_over() -> list[str]:
    """The names of the contexts that were removed, because their clusters are gone. Raises LocalError."""
    gone = []
    for name in names():
        try:
            context = read(name)
        except LocalError:
            # written by hand, and wrong: its owner will see that
            continue
        if context.is_left_over:
            delete(name)
            gone.append(name)
    return gone


def delete(name: str) -> None:
    """Raises LocalError if there is none."""
    read(name)
    path_of(name).unlink()
    if selected_name() == name:
        (folder() / "current").unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """A reader finds the old text or the new one, and no other user finds a password."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as output:
            output.write(text)
        os.replace(new, path)
    except OSError as error:
        raise LocalError(
            f"cannot write {path}: {error.strerror}; set XDG_CONFIG_HOME to a folder that can be written, or give each "
            "command --bootstrap-server"
        ) from error
