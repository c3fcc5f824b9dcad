"""`python -m heirlog.testing.conformance FILE... [--layer L] [--id ID] [--json]`; exit 1 if a scenario failed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from heirlog.testing.conformance.catalogue import Result, Scenario, run


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m heirlog.testing.conformance", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="scenario files (JSON)")
    parser.add_argument("--layer", help="only scenarios of this layer")
    parser.add_argument("--id", help="only the scenario with this id")
    parser.add_argument("--json", action="store_true", help="print what was observed, step by step")
    asked = parser.parse_args(arguments)
    scenarios: list[Scenario] = []
    for path in asked.files:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["scenarios"]
            lacking = [name for scenario in found for name in ("id", "layer", "setup", "steps") if name not in scenario]
            if lacking:
                parser.error(f"{path}: a scenario has no {lacking[0]}")
            scenarios += found
        except (OSError, ValueError, LookupError, TypeError) as error:
            parser.error(f"{path} is no file of scenarios: {error}")
    results = [
        run(scenario)
        for scenario in scenarios
        if asked.layer in (None, scenario["layer"]) and asked.id in (None, scenario["id"])
    ]
    if asked.json:
        print(json.dumps({"results": [result.as_json() for result in results]}, indent=1))
    _report(results, sys.stderr if asked.json else sys.stdout)
    return 0 if all(result.passed for result in results) else 1


def _report(results: Sequence[Result], to: TextIO) -> None:
    failed = [result for result in results if not result.passed]
    lines = [f"{result.id}: {result.why}" for result in failed]
    lines.append(f"{sum(result.deviates for result in results)} deviate")
    lines.append(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    print("\n".join(lines), file=to)


if __name__ == "__main__":
    sys.exit(main())
