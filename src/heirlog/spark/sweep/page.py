"""One HTML page of a sweep, without any other file, script or address."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from heirlog.sim.durability.failures import DOWN_MEAN_MS, WEIGHTS
from heirlog.sim.durability.play import FAILURES_MS, QUIET_MS
from heirlog.spark.sweep.plots import plot
from heirlog.spark.sweep.summary import CellSummary, Sweep
from heirlog.spark.sweep.tables import HEADINGS, STRATEGIES, figures, rates
from heirlog.version import __version__

LISTED_MAX = 200
"""Losses of one cell on the page; the others are in the table of runs."""
_STYLE = """
body { font-family: sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border: 1px solid #ccc; padding: .3rem .6rem; text-align: right }
th:first-child, td:first-child { text-align: left }
.rate td { background: #eee; text-align: left }
svg { width: 100%; max-width: 40rem }
code { overflow-wrap: anywhere }
"""


def page(sweep: Sweep) -> str:
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>What election strategies cost</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>What election strategies cost</h1>",
        f"<p>{escape(measured(sweep))}</p>",
        f"<p>{escape(method())}</p>",
        f"<p>{escape(reading())}</p>",
    ]
    for (replication_factor, min_isr), group in sweep.groups():
        name = f"replication factor {replication_factor}, min ISR {min_isr}"
        parts += [
            f"<h2>{name[0].upper()}{name[1:]}</h2>",
            plot(f"Runs that lost acknowledged records: {name}", group, lambda each: each.loss),
            plot(f"Time without a leader that accepts acks=all: {name}", group, lambda each: each.unavailable),
            *_table(group),
        ]
    parts += ["<h2>Runs that lost records</h2>", *_losses(sweep.cells)]
    parts += ["<h2>Runs that broke a rule</h2>", *_broken(sweep.cells), "</body></html>"]
    return "\n".join(parts) + "\n"


def measured(sweep: Sweep) -> str:
    seeds = sorted({each.runs + len(each.broken) for each in sweep.cells}) or [0]
    per_cell = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return (
        f"{sweep.runs} simulated runs, {per_cell} of each combination; {sweep.events:,} events in "
        f"{sweep.cpu_s / 60:.1f} minutes of CPU time; heirlog {__version__}, code {sweep.code}."
    )


def method() -> str:
    weights = ", ".join(f"{name} {weight}" for name, weight in WEIGHTS.items())
    return (
        f"In each run, brokers fail independently of each other for {FAILURES_MS // 1000} s of virtual time and are "
        f"away for {DOWN_MEAN_MS // 1000} s on average; then all are back, and the run is observed for "
        f"{QUIET_MS // 1000} s more. Kinds of failures, by weight: {weights}. A power cut takes a random part of what "
        "was not flushed, and logs are not flushed per write. The controller does not fail. A seed has the same "
        "failures in every combination with that rate. Times are short: a broker's session lasts 2.5 s."
    )


def reading() -> str:
    return (
        "A record is lost if it was acknowledged with acks=all and cannot be read in the end; it is reported if it is "
        "in the range of a loss report. What no disk has any more cannot be reported. A last known leader is elected "
        "without asking any replica, so its report covers every record. Without the ELR there are no reports. With "
        "None, partitions wait for an operator, who comes when the observation is over. Intervals are of 95 % "
        "confidence: Wilson's for probabilities, Student's for unavailable time, a bootstrap for lost records."
    )


def _table(group: list[CellSummary]) -> list[str]:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in ("strategy", *HEADINGS))
    parts = [f"<table><thead><tr>{head}</tr></thead><tbody>"]
    for mtbf_s in rates(group):
        parts.append(f'<tr class="rate"><td colspan="{1 + len(HEADINGS)}">a broker fails every {mtbf_s} s</td></tr>')
        for each in group:
            if each.cell.mtbf_s == mtbf_s:
                cells = "".join(f"<td>{escape(text)}</td>" for text in (STRATEGIES[each.cell.policy], *figures(each)))
                parts.append(f"<tr>{cells}</tr>")
    return [*parts, "</tbody></table>"]


def _losses(cells: Iterable[CellSummary]) -> list[str]:
    parts = []
    for each in cells:
        if not each.losses:
            continue
        parts.append(f"<details><summary>{len(each.losses)} of {each.runs}: {escape(each.cell.scenario)}</summary><ul>")
        for loss in each.losses[:LISTED_MAX]:
            said = f"{loss.lost} records, {loss.reported} of them reported"
            parts.append(f"<li>{said}: <code>{escape(loss.replay)}</code></li>")
        if len(each.losses) > LISTED_MAX:
            parts.append(f"<li>{len(each.losses) - LISTED_MAX} more: column <code>replay</code> of runs/</li>")
        parts.append("</ul></details>")
    return parts or ["<p>None.</p>"]


def _broken(cells: Iterable[CellSummary]) -> list[str]:
    found = [one for each in cells for one in each.broken]
    if not found:
        return ["<p>None.</p>"]
    lines = [f"<li>{escape(one.check)}: {escape(one.sentence)} <code>{escape(one.replay)}</code></li>" for one in found]
    sentence = "<p>These runs broke a rule or were cut off, and no figure above includes them.</p>"
    return [sentence, "<ul>", *lines, "</ul>"]
