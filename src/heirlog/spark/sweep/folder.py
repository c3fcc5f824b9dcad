"""The folder of a sweep: its parameters, its runs, its page.

    OUT/sweep.json             parameters and code version; written first
    OUT/runs/000001.parquet    runs, a row each (`heirlog.sim.durability.measure`)
    OUT/index.html             the page

Only the driver writes, and each file is renamed into place once it is complete and flushed. So what a killed sweep
leaves is a set of complete files, and a run is in the table or is run again. A run that is in two files, for instance
because someone copied files of another folder, counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heirlog.sim.durability.cell import Cell
from heirlog.sim.durability.measure import Measurement
from heirlog.spark.pipeline.files import locked, read_json, replacing, write_json
from heirlog.spark.pipeline.spec import PipelineError
from heirlog.spark.sweep.grid import Grid, SweepError

FORMAT = 2
PARAMETERS = "sweep.json"
RUNS = "runs"
PAGE = "index.html"
_ARROW_TYPES = {"bool": pa.bool_(), "str": pa.string(), "int": pa.int64(), "float": pa.float64()}
SCHEMA = pa.schema([(each.name, _ARROW_TYPES[str(each.type)]) for each in fields(Measurement)])


class SweepFolder:
    """Use `opened`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._runs = place / RUNS

    def done(self) -> set[tuple[str, int]]:
        """(scenario, seed) of the runs that are there."""
        rows = self.table(["scenario", "seed"])
        return set(zip(rows.column("scenario").to_pylist(), rows.column("seed").to_pylist(), strict=True))

    def add(self, runs: Sequence[Measurement]) -> None:
        """One more file. Raises OSError."""
        number = 1 + max((int(file.stem) for file in self._files()), default=0)
        rows = pa.Table.from_pylist([asdict(run) for run in runs], SCHEMA)
        with replacing(self._runs / f"{number:06}.parquet") as output:
            pq.write_table(rows, output, compression="zstd")

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All runs, each once. Raises SweepError."""
        parts = [self._read(file) for file in self._files()]
        rows = pa.concat_tables(parts) if parts else SCHEMA.empty_table()
        seen: set[tuple[str, int]] = set()
        first = []
        for key in zip(rows.column("scenario").to_pylist(), rows.column("seed").to_pylist(), strict=True):
            first.append(key not in seen)
            seen.add(key)
        rows = rows.filter(pa.array(first, pa.bool_()))
        return rows if columns is None else rows.select(list(columns))

    @property
    def page(self) -> Path:
        return self.place / PAGE

    def write_page(self, content: str) -> None:
        """Raises OSError."""
        with replacing(self.page) as output:
            output.write(content.encode())

    def _files(self) -> list[Path]:
        """Complete ones: an unfinished one has a name that begins with a dot."""
        return sorted(file for file in self._runs.glob("*.parquet") if file.stem.isdigit())

    def _read(self, file: Path) -> pa.Table:
        try:
            return pq.read_table(file, schema=SCHEMA, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise SweepError(f"{file} cannot be read ({error}): remove it, and its runs are repeated") from error


@contextmanager
def opened(place: Path, grid: Grid, code: str) -> Iterator[SweepFolder]:
    """The folder, made if it does not exist, for this process alone. Raises SweepError and OSError."""
    place = place.absolute()
    if place.exists() and not place.is_dir():
        raise SweepError(f"{place} is a file: give a folder as --out")
    with ExitStack() as held:
        try:
            held.enter_context(locked(place))
        except PipelineError as error:
            raise SweepError(f"{place} is used by another sweep: wait for it, or stop it first") from error
        _own(place, {"format": FORMAT, "code": code, **grid.as_json()}, grid)
        yield SweepFolder(place)


def _own(place: Path, parameters: dict[str, Any], grid: Grid) -> None:
    place.mkdir(parents=True, exist_ok=True)
    try:
        before = read_json(place / PARAMETERS)
    except (ValueError, AssertionError) as error:
        raise SweepError(f"{place / PARAMETERS} is damaged ({error}): give another --out") from error
    if not before:
        if any(place.iterdir()):
            raise SweepError(f"{place} has files, and is not the folder of a sweep: give a new one as --out")
        write_json(place / PARAMETERS, parameters)
    elif before.get("format") != FORMAT:
        raise SweepError(f"{place} is of another version of heirlog: give a new folder as --out")
    elif changed := grid.difference(before):
        raise SweepError(f"{place} has a sweep with other parameters ({changed}): repeat those, or give another --out")
    elif before.get("code") != parameters["code"]:
        raise SweepError(
            f"the runs in {place} are of other code ({before.get('code')}; this is {parameters['code']}), and cannot "
            "be compared with new ones: give another --out"
        )
    (place / RUNS).mkdir(exist_ok=True)


def left(folder: SweepFolder, grid: Grid, seeds: int) -> list[tuple[Cell, int]]:
    """The runs that are not there yet, in their order."""
    done = folder.done()
    return [(cell, seed) for cell, seed in grid.runs(seeds) if (cell.scenario, seed) not in done]
