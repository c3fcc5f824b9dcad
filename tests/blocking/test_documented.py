"""docs/reference/python-client.md lists exactly what `heirlog.blocking` offers."""

from __future__ import annotations

import re
from pathlib import Path

from heirlog import blocking

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python-client.md").read_text(encoding="utf-8")
CALLS = PAGE.partition("\n## Calls\n")[2].partition("\n## ")[0]


def test_every_public_call_of_the_client_has_a_row_and_every_row_names_calls() -> None:
    documented = [name for row in re.findall(r"^\| (`.*?) \|", CALLS, re.MULTILINE) for name in names(row)]
    assert sorted(documented) == sorted(name for name in vars(blocking.Client) if not name.startswith("_"))


def test_every_exported_name_is_on_the_page() -> None:
    assert [name for name in blocking.__all__ if name not in names(PAGE)] == ["Client"]
    assert "`heirlog.blocking.Client`" in PAGE
    assert all(hasattr(blocking, name) for name in blocking.__all__)


def names(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))
