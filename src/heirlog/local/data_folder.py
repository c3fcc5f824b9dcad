"""A data folder is used by one command at a time, and its nodes work on its own files, wherever it was copied or moved.

The nodes' server.properties name their directories by absolute paths, since a node resolves others against its working
directory. So a copy (`cp -r A B`) names the files of A, and a folder that was moved names files that do not exist. What
`taken_in` does about a path outside the folder of its node:

    <A>/broker-1/log, all nodes in the same A   the folder was copied (A has server.properties too) or moved (the path
    and <B>/broker-1/log exists                 does not exist): it is rewritten
    in another place of the data folder         an edit: stays
    anything else                               refused: it could be another cluster's, or a disk that is missing

One node whose path is another's while the rest are at home is an edit as well: a copy has copied all of them.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.local.layout import PROPERTIES, SHARE_STATE_REPLICAS, Layout, NodeLayout, standard_config
from heirlog.local.lock_holders import of_holder
from heirlog.local.secure import follow_folder
from heirlog.server.ledger import forget
from heirlog.storage.identity import META_PROPERTIES

LOCK_NAME = ".lock"
NAME_BYTES_MAX = 255
"""Of file systems in common use."""
PATH_BYTES_MAX = os.pathconf("/", "PC_PATH_MAX") - 512
"""The longest path that the nodes use in it is that of an index of a topic with a long name."""
SHOWN = 60
NAMED_MAX = 3
_OWN = re.compile(r"\..*|lost\+found|(broker|controller)-\d+|security|client\.properties")
PATHS = ("log.dirs", "log.dir", "metadata.log.dir")


class OutsidePath(NamedTuple):
    """A directory that a node's file names and that is not in the node's folder."""

    node: NodeLayout
    name: str
    path: str
    root: str
    """The data folder whose node it would be; empty if the path is not of that form."""
    here: str
    """The same directory in this data folder."""


def hold(data: Path) -> int:
    """A descriptor that keeps other commands out of the folder until it is closed; the folder is made.

    Raises LocalError: another command uses it, it cannot be written, or its name does not fit into a file.
    """
    refuse_name(data)
    lock = -1
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(data / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise LocalError(
            f"another command runs the cluster in {data}{of_holder(data / LOCK_NAME)}; stop that one, or give another "
            "data folder"
        ) from None
    except OSError as error:
        raise LocalError(
            f"cannot use the data folder {data}: {error.strerror}: {error.filename}; give one that can be written"
        ) from error
    return lock


def refuse_running(layout: Layout) -> None:
    """A node that was started on its own, or that still stops. Raises LocalError."""
    for node in layout.nodes:
        try:
            lock = os.open(node.log_dir / LOCK_NAME, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocalError(
                f"{node.name} of the cluster in {layout.data} runs already, without this command"
                f"{of_holder(node.log_dir / LOCK_NAME)}: stop it, or wait until it has ended"
            ) from None
        finally:
            os.close(lock)


def refuse_incomplete(data: Path) -> None:
    """A node whose file is gone would be left out without a word. Raises LocalError."""
    for directory in sorted(data.glob("*-*")):
        kind, _, number = directory.name.rpartition("-")
        if kind not in ("broker", "controller") or not number.isdecimal():
            continue
        if (directory / "log").is_dir() and not (directory / PROPERTIES).exists():
            raise LocalError(
                f"{directory} has the log of a node and no {PROPERTIES}: put the file back, or move the folder away"
            )


def lost_directories(layout: Layout) -> list[tuple[NodeLayout, str]]:
    """Of nodes that have run: log directories that are empty now, or have lost the file that says whose they are.

    Raises LocalError for a file that cannot be read.
    """
    found = []
    for node in layout.nodes:
        if node.output_path.exists():
            config = properties.read_static(node.properties_path)
            directories = dict.fromkeys([config.metadata_log_dir, *config.log_dirs])
            found += [(node, path) for path in directories if not os.path.exists(os.path.join(path, META_PROPERTIES))]
    return found


def refuse_others(data: Path) -> None:
    """A folder without a cluster that holds something else, such as a project's own `data`. Raises LocalError.

    What a start that failed has left behind may stay, and so may hidden files and those of a file system.
    """
    try:
        names = sorted(name for name in os.listdir(data) if not _OWN.fullmatch(name))
    except FileNotFoundError:
        return
    except OSError as error:
        raise LocalError(
            f"cannot use the data folder {data}: {error.strerror}; give one that can be read and written"
        ) from error
    if names:
        shown = ", ".join(names[:NAMED_MAX]) + (" ..." if len(names) > NAMED_MAX else "")
        raise LocalError(
            f"{data} holds other files ({shown}) and no cluster: give an empty folder, or a new one, with --data"
        )


def refuse_name(data: Path) -> None:
    """A path that server.properties cannot hold as it is, or that leads nowhere. Raises LocalError."""
    path = os.path.realpath(data)
    names = path.split(os.sep)
    if len(os.fsencode(path)) > PATH_BYTES_MAX or max(len(os.fsencode(name)) for name in names) > NAME_BYTES_MAX:
        raise LocalError(
            f"the data folder {path[:SHOWN]}… cannot be used: a path may have {PATH_BYTES_MAX} bytes, so that there "
            f"is room for files in it, and a name {NAME_BYTES_MAX}; give a shorter one"
        )
    if data.is_symlink() and not data.exists():
        raise LocalError(
            f"the data folder {data} is a link to {os.readlink(data)}, which does not exist: put back what it led to, "
            "or give another --data folder"
        )
    if "," in path:
        raise LocalError(
            f"the data folder {path} cannot be used: a comma separates directories in log.dirs; give another --data "
            "folder, or rename this one"
        )
    if len(path.splitlines()) > 1 or not path.isprintable():
        raise LocalError(f"the data folder {path!r} cannot be used: give one whose path can be written on a line")


def taken_in(layout: Layout) -> str | None:
    """Make the nodes of a copied or moved folder work on its own files; where it came from, None if it is at home.

    Raises LocalError for a folder with a path that points elsewhere.
    """
    outside = [entry for node in layout.nodes for entry in _outside_paths(node)]
    away = {entry.node.node_id for entry in outside}
    roots = {entry.root for entry in outside}
    moved_with_data = len(roots) == 1 and len(away) == len(layout.nodes) and all(map(_moved_with_data, outside))
    if not moved_with_data:
        for entry in outside:
            if not _inside(entry.path, layout.data):
                raise LocalError(_refusal(entry))
        return None
    for node in layout.nodes:
        # its paths are those of the other folder; what was copied counts as flushed
        forget(str(node.ledger_path))
        _rewrite(node, [entry for entry in outside if entry.node is node])
    before = roots.pop()
    follow_folder(layout.data, [node.properties_path for node in layout.nodes], before)
    return before


def complete(layout: Layout) -> None:
    """Set what the version that created the folder did not write, where the default cannot work with so few brokers.

    Raises LocalError.
    """
    if len(layout.brokers) >= 3:
        return
    replicas = standard_config(len(layout.brokers))[SHARE_STATE_REPLICAS]
    for node in layout.nodes:
        if SHARE_STATE_REPLICAS in properties.read(node.properties_path):
            continue
        try:
            with node.properties_path.open("a", encoding="utf-8") as file:
                file.write("\n" + properties.rendered(SHARE_STATE_REPLICAS, replicas) + "\n")
        except OSError as error:
            raise LocalError(
                f"{node.properties_path} cannot be written: {error.strerror}; add {SHARE_STATE_REPLICAS}={replicas}"
            ) from error


def _outside_paths(node: NodeLayout) -> list[OutsidePath]:
    given = properties.read(node.properties_path)
    named = [(name, path.strip()) for name in PATHS for path in given.get(name, "").split(",")]
    return [_outside_path(node, name, path) for name, path in named if path and not _inside(path, node.directory)]


def _outside_path(node: NodeLayout, name: str, path: str) -> OutsidePath:
    root, found, rest = os.path.abspath(path).rpartition(f"/{node.directory.name}/")
    return OutsidePath(node, name, path, root if found else "", str(node.directory / rest) if found else "")


def _inside(path: str, directory: Path) -> bool:
    """Also by another name of the same directory, but not through a link that leads out of it: a copy has that too."""
    if os.path.realpath(path).startswith(f"{directory}{os.sep}"):
        return True
    # mounted twice: two real paths, one directory
    _, found, rest = os.path.abspath(path).rpartition(f"/{directory.name}/")
    here = directory / rest
    return bool(found) and here.exists() and here.resolve() == here and os.path.exists(path) and here.samefile(path)


def _moved_with_data(entry: OutsidePath) -> bool:
    """Whether a copy of the whole folder, or moving it, explains the path."""
    if not entry.root or not os.path.isdir(entry.here) or os.path.realpath(entry.here) != entry.here:
        return False
    original = Path(entry.root) / entry.node.directory.name / entry.node.properties_path.name
    return original.exists() or not os.path.lexists(entry.path)


def _rewrite(node: NodeLayout, outside: list[OutsidePath]) -> None:
    """In the lines that name them; everything else of the file stays. Raises LocalError."""
    given = properties.read(node.properties_path)
    lines = node.properties_path.read_text(encoding="utf-8").splitlines()
    for name in dict.fromkeys(entry.name for entry in outside):
        here = {entry.path: entry.here for entry in outside if entry.name == name}
        value = ",".join(here.get(path.strip(), path.strip()) for path in given[name].split(","))
        plain, changed = properties.rendered(name, given[name]), properties.rendered(name, value)
        if plain in lines:
            lines = [changed if line == plain else line for line in lines]
        else:
            lines.append(changed)  # the last line of a name counts
    new = node.properties_path.with_suffix(".new")
    try:
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        shutil.copymode(node.properties_path, new)
        new.replace(node.properties_path)
    except OSError as error:
        raise LocalError(
            f"{node.properties_path} names directories of another folder and cannot be rewritten: {error.strerror}"
        ) from error


def _refusal(entry: OutsidePath) -> str:
    real = os.path.realpath(entry.path)
    leads = "" if real == entry.path else f" (that is {real})"
    return (
        f"{entry.node.properties_path} has {entry.name}={entry.path}{leads}, which is outside the data folder "
        f"{entry.node.directory.parent}: this cluster would use files that may belong to another cluster. Move them "
        f"into {entry.node.log_dir}, or another folder in {entry.node.directory}, and set {entry.name} to that, or "
        "start each node without `up`: heirlog node --config server.properties"
    )
