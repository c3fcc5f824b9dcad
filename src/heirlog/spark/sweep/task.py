"""What a worker does: one run. It imports nothing that a Python with PySpark may lack."""

from __future__ import annotations

import json
from dataclasses import asdict

from heirlog.sim.code_version import code_version
from heirlog.sim.durability.cell import cell_of
from heirlog.sim.durability.measure import measure
from heirlog.spark.sweep.grid import SweepError

ARCHIVE = "make the archive with `heirlog pipeline package FILE.zip`, and give --conf spark.submit.pyFiles=FILE.zip"


def measured(scenario: str, seed: int, code: str) -> str:
    """The row of one run, as JSON. Raises SweepError on a worker that has other code than the driver, `code`."""
    if code_version() != code:
        raise SweepError(f"a worker has other code of heirlog ({code_version()}) than this command ({code}): {ARCHIVE}")
    return json.dumps(asdict(measure(cell_of(scenario), seed)))
