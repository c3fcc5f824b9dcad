"""The archive that Spark's workers need where heirlog is not installed.

It holds heirlog alone, with what makes Spark find its data source, for `--py-files` and `addArtifacts`: the source and
the sink, and the nodes and the simulator, which audits and sweeps use. Native libraries cannot be imported from an
archive, so the workers' Python has to bring those that the source uses (`LIBRARIES`).
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import heirlog
import pyspark_heirlog
from heirlog.spark.pipeline.files import replacing

LIBRARIES = ("pyarrow", "numba", "cramjam", "crc32c")
_LEFT_OUT = ("testing", "cli")
"""Packages that a worker never imports; without them the archive that each worker gets is smaller."""


def package(target: str | Path) -> Path:
    """Write the archive. Spark requires a name that ends in .zip. An existing file is replaced atomically."""
    root = Path(heirlog.__file__).parent
    file = Path(target)
    with replacing(file) as output, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(root.rglob("*")):
            inner = source.relative_to(root)
            if inner.parts[0] in _LEFT_OUT or source.suffix not in (".py", ".properties", ".typed"):
                continue
            archive.write(source, Path("heirlog") / inner)
        archive.write(pyspark_heirlog.__file__, "pyspark_heirlog/__init__.py")
    return file
