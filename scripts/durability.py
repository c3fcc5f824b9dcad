"""Write the measured part of docs/durability.md from the folder of a sweep.

    heirlog sim sweep --out FOLDER ...
    .venv/bin/python scripts/durability.py FOLDER COMMIT

The rest of the page, what the figures mean, is written by hand; read it again after that.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from heirlog.spark.sweep.folder import PARAMETERS, SweepFolder
from heirlog.spark.sweep.page import measured, method, reading
from heirlog.spark.sweep.plots import plot, standalone
from heirlog.spark.sweep.summary import CellSummary, summarise
from heirlog.spark.sweep.tables import HEADINGS, STRATEGIES, figures, rates

LINE = 120
DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- Written by scripts/durability.py -->", "<!-- End of what scripts/durability.py writes -->"


def write(folder: Path, commit: str) -> None:
    code = json.loads((folder / PARAMETERS).read_text("utf-8"))["code"]
    sweep = summarise(SweepFolder(folder).table(), code)
    about = f"{measured(sweep)[:-1]}, commit {commit}. {method()}"
    parts = [BEGIN, "", fill(about, LINE), "", fill(reading(), LINE)]
    for (replication_factor, min_isr), group in sweep.groups():
        name = f"replication factor {replication_factor}, min ISR {min_isr}"
        file = f"durability-rf{replication_factor}-min-isr{min_isr}"
        loss = plot(f"Runs that lost acknowledged records: {name}", group, lambda each: each.loss)
        waits = plot(f"Time without a leader that accepts acks=all: {name}", group, lambda each: each.unavailable)
        for kind, svg in (("loss", loss), ("unavailable", waits)):
            (DOCS / "images" / f"{file}-{kind}.svg").write_text(standalone(svg), encoding="utf-8")
        parts += [
            "",
            f"### {name[0].upper()}{name[1:]}",
            *_tables(group),
            "",
            f"![Probability of loss by strategy: {name}](images/{file}-loss.svg)",
            "",
            f"![Unavailable time by strategy: {name}](images/{file}-unavailable.svg)",
        ]
    parts += ["", "### Seeds that lost records", "", *_seeds(sweep.cells), "", END]
    page = DOCS / "durability.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(before + "\n".join(parts) + after, encoding="utf-8")


def _tables(group: list[CellSummary]) -> Iterator[str]:
    for mtbf_s in rates(group):
        yield from ("", f"A broker fails every {mtbf_s} s:", "")
        yield f"| strategy | {' | '.join(HEADINGS)} |"
        yield f"|---|{'---|' * len(HEADINGS)}"
        for each in group:
            if each.cell.mtbf_s == mtbf_s:
                yield f"| {STRATEGIES[each.cell.policy]} | {' | '.join(figures(each))} |"


def _seeds(cells: tuple[CellSummary, ...]) -> Iterator[str]:
    yield "`heirlog sim replay SEED --scenario SCENARIO --trace` tells what happened in such a run."
    yield ""
    for each in cells:
        if each.losses:
            yield f"- `{each.cell.scenario}`: {', '.join(str(loss.seed) for loss in each.losses)}"
        for broken in each.broken:
            yield f"- broke {broken.check}: `{broken.replay}`"


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
