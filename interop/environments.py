"""Python environments for checks that need more packages than the tests do, from the lock of their name."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import jars

LOCKS = jars.HERE.parent / "requirements"
TREE = "heirlog-tree.pth"


@jars.one_at_a_time
def prepared(name: str, *, with_tree: bool = False) -> Path:
    """The folder of an environment with what requirements/NAME.txt has.

    with_tree: and with all that this Python can import, such as heirlog and PySpark; then its lock must agree with
    requirements/dev.txt. Raises RuntimeError.
    """
    lock, folder = LOCKS / f"{name}.txt", jars.CACHE / name
    stamp = folder / "lock.txt"
    if not (stamp.exists() and stamp.read_bytes() == lock.read_bytes()):
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", folder], capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(f"an environment for {lock.name} cannot be made:\n{made.stdout}{made.stderr}")
        jars.retried([str(folder / "bin" / "pip"), "install", "--quiet", "--require-hashes", "-r", str(lock)])
        if with_tree:
            here = Path(sysconfig.get_path("purelib"))
            packages = folder / here.relative_to(sys.prefix)
            (packages / TREE).write_text(f"import site; site.addsitedir({str(here)!r})\n")
        stamp.write_bytes(lock.read_bytes())
    return folder
