"""Programs from Debian's packages, unpacked below .cache and not installed: that needs no root."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jars


def unpacked(package: str, install: str) -> Path:
    """The folder with the package's files, below `usr`. install: what to install by hand. Raises jars.Missing."""
    home = jars.CACHE / package
    if (home / "usr").is_dir():
        return home
    jars.need("apt-get", "dpkg-deb", install=install)
    home.mkdir(parents=True, exist_ok=True)
    try:
        if subprocess.run(["apt-get", "download", package], cwd=home, capture_output=True).returncode:
            # a machine that has just been set up has no lists, or old ones
            subprocess.run(["apt-get", "update"], check=True, capture_output=True)
            subprocess.run(["apt-get", "download", package], cwd=home, check=True, capture_output=True)
        (found,) = home.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", found.name, "."], cwd=home, check=True, capture_output=True)
    except (subprocess.CalledProcessError, ValueError) as error:
        raise jars.Missing(install) from error
    return home
