"""What the documentation says is what the code does."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from test_layering import FLOORS

from heirlog.apis.common.api import Role
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.node.router import routes_with_unstable
from heirlog.protocol.api import APIS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "scripts"))
import prose  # noqa: E402
import reference  # noqa: E402

COMPATIBILITY = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+)(?:-(\d+))? \| ([\w-]+) \| ([\w-]+) \|", re.MULTILINE)
NO = "-"
TEST = re.compile(r"^(?:async )?def test_\w+\(", re.MULTILINE)


def test_every_served_api_stands_in_the_table_with_its_versions_and_listeners() -> None:
    documented = {
        (role, int(key)): (name, int(low), int(high or low))
        for key, name, low, high, brokers, controllers in ROW.findall(COMPATIBILITY)
        for role, served in ((Role.BROKER, brokers), (Role.CONTROLLER, controllers))
        if served != NO
    }
    assert documented == {
        (role, key): (APIS[key].name, route.min_version, route.max_version)
        for role in Role
        for key, route in routes_with_unstable(role).items()
    }


def test_no_api_stands_in_the_table_twice_and_they_are_in_order() -> None:
    keys = [int(key) for key, *_ in ROW.findall(COMPATIBILITY)]
    assert keys == sorted(set(keys))


def test_every_configuration_of_our_own_is_named() -> None:
    own = [name for name in SERVER_CONFIGS if name.startswith("heirlog.")]
    assert own
    assert [name for name in own if f"`{name}`" not in COMPATIBILITY] == []


PROVEN = ("APIs", "KIP-966, KIP-903 and KIP-460, row by row", "Deviations")
"""Sections of docs/compatibility.md in which every row of every table ends in the tests that prove it."""


def test_every_row_of_the_compatibility_tables_ends_in_a_living_test() -> None:
    """Whoever adds a row adds its proof."""
    rows, wrong = _unproven(COMPATIBILITY, PROVEN)
    assert rows > 120
    assert not wrong, "docs/compatibility.md: " + "; ".join(wrong)


def test_every_attack_ends_in_a_living_test_that_tries_it() -> None:
    text = (DOCS / "internals" / "attacks.md").read_text(encoding="utf-8")
    rows, wrong = _unproven(text, re.findall(r"^## (.*)$", text, re.MULTILINE))
    assert rows > 50
    assert not wrong, "docs/internals/attacks.md: " + "; ".join(wrong)


def _unproven(page: str, sections: Iterable[str]) -> tuple[int, list[str]]:
    """How many rows the tables in these sections have, and what is wrong with some of them."""
    rows, wrong = 0, []
    for section in sections:
        text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        assert tables, f"the page has lost its section {section!r} or the tables in it"
        for head, _, *lines in (table.splitlines() for table in tables):
            heads = _cells(head)
            if heads[-1] != "test":
                wrong.append(f"the table of {heads[0]!r} under {section!r} needs a last column 'test'")
            for row in map(_cells, lines):
                rows += 1
                if len(row) != len(heads) or not _proves(row[-1]):
                    wrong.append(
                        f"the row {' '.join(row[:2])!r} under {section!r} needs as its last of {len(heads)} cells the "
                        "test that proves it: `tests/folder/test_x.py` or `tests/folder/test_x.py::test_name`"
                    )
    return rows, wrong


def test_every_test_of_an_api_speaks_that_api() -> None:
    """A file that never names the API proves nothing of it."""
    silent = []
    for key, *_ in ROW.findall(COMPATIBILITY):
        api = APIS[int(key)]
        (line,) = re.findall(rf"^\| {key} \| {api.name} \|.*$", COMPATIBILITY, re.MULTILINE)
        tests = [ROOT / path for path, _ in REFERENCE.findall(_cells(line)[-1])]
        text = "".join(path.read_text("utf-8") for path in tests if path.is_file())
        if api.module not in text and api.name not in text:
            silent.append(f"{key} {api.name}: name a file of tests that asks {api.module!r}, or add such a test")
    assert not silent, "docs/compatibility.md: " + "; ".join(silent)


REFERENCE = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip()[1:-1].split("|")]


def _proves(cell: str) -> bool:
    """Whether a cell is nothing but tests that are there: of a file at least one, or the one that it names."""
    found = REFERENCE.findall(cell)
    if not found or REFERENCE.sub("", cell).strip(", "):
        return False
    for path, name in found:
        text = (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else ""
        if not (re.search(rf"^def {name}\(", text, re.MULTILINE) if name else TEST.search(text)):
            return False
    return True


def test_every_deviation_that_interop_expects_has_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make interop` checks this too, but not everywhere is Java."""
    monkeypatch.syspath_prepend(str(ROOT / "interop"))
    assert importlib.import_module("answers.deviations").rowless() == []


def test_every_limit_names_a_living_test_that_holds_it() -> None:
    """Each row of the table of limits ends in files of tests, each with a test in it."""
    text = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    (bound, *_, named), (rule, *_), *limits = rows
    assert (bound, named) == ("bound", "test") and set(rule) <= set("-|"), "the table has its head"
    assert len(limits) > 20
    assert [row for row in limits if len(row) != len(rows[0])] == []
    assert [row[0] for row in limits if not _holds(row[-1])] == []


def _holds(cell: str) -> bool:
    """Whether a cell is nothing but names of files with tests that run."""
    paths = [ROOT / path for path in re.findall(r"`(tests/[\w/]+\.py)`", cell)]
    only_names = re.sub(r"`[^`]*`|[, ]", "", cell) == "" and cell.count("`") == 2 * len(paths)
    return bool(paths) and only_names and all(path.is_file() and TEST.search(path.read_text("utf-8")) for path in paths)


def test_every_file_that_the_architecture_names_is_there() -> None:
    """A name without a folder stands in the folder of the name before it."""
    named, missing, folder = 0, [], ""
    for path in re.findall(r"`([\w./-]+\.py)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")):
        named += 1
        folder = path.rpartition("/")[0] if "/" in path else folder
        places = [ROOT / path, ROOT / "src/heirlog" / path, ROOT / "src/heirlog" / folder / path]
        if not any(place.is_file() for place in places):
            missing.append(path)
    assert named > 20 and missing == []


HOUSE = {package: int(floor) for package, floor in FLOORS.items() if (ROOT / "src" / "heirlog" / package).is_dir()}
"""Packages only: the modules next to them have no rows of their own."""


def test_the_diagram_of_the_architecture_has_every_package_on_its_floor() -> None:
    diagram = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("```")[1]
    rows = re.findall(r"^ ?(\d+)(?:\.5)? +([a-z]+(?: [a-z]+)*)  ", diagram, re.MULTILINE)
    assert {package: int(floor) for floor, packages in rows for package in packages.split()} == HOUSE


def test_the_table_of_the_design_has_every_package_on_its_floor() -> None:
    rows = re.findall(
        r"^\| (\d+) \| ((?:`\w+`(?:, )?)+) \|", (DOCS / "internals" / "design.md").read_text("utf-8"), re.MULTILINE
    )
    assert {package: int(floor) for floor, names in rows for package in re.findall(r"\w+", names)} == HOUSE


@pytest.mark.parametrize("given", prose.GIVEN)
def test_a_page_that_the_project_was_given_says_so_and_where_the_present_is(given: str) -> None:
    first = (ROOT / given).read_text("utf-8").split("\n\n")[1]
    assert "given" in first and "`ARCHITECTURE.md`" in first


PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    broken = []
    for target in LINK.findall(_prose(page)):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://", "mailto:")):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.is_file() or (anchor and anchor not in _anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_readme_is_short_and_shows_the_drill_as_the_tutorial_does() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    tutorial = (DOCS / "tutorials" / "rehearse-a-failure.md").read_text("utf-8")
    assert len(readme.split()) < 650
    (table,) = re.findall(r"^ +ms  leader.*?\n(?=```)", tutorial, re.DOTALL | re.MULTILINE)
    assert table in readme


def test_every_page_is_in_the_index_and_in_the_navigation_of_the_site() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    trees = "".join(re.findall(r"^```\{toctree\}\n(.*?)^```", index, re.DOTALL | re.MULTILINE)).split()
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in LINK.findall(index)}
    shown = {page for name in trees for page in DOCS.glob(f"{name}.md")}
    moved = {page for page in PAGES if page.read_text("utf-8").startswith("---\norphan: true\n")}
    assert set(PAGES) - {DOCS / "index.md"} - moved == linked == shown


@pytest.mark.parametrize("name", reference.PAGES)
def test_the_reference_pages_say_what_the_code_says(name: str) -> None:
    page = DOCS / "reference" / name
    assert reference.PAGES[name]() == page.read_text("utf-8"), f"run .venv/bin/python scripts/reference.py: {page}"


def _prose(page: Path) -> str:
    """Without blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_nothing_is_to_be_installed_from_a_registry_that_does_not_have_it() -> None:
    """Before a release pip finds heirlog only in a clone: by a path, as `.[spark]`."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    registry = re.compile(r"pip install (?:-\S+ )*['\"]?heirlog\b")
    assert [str(path.relative_to(ROOT)) for path in texts if registry.search(path.read_text("utf-8"))] == []
    assert "pip install '.[spark]'" in (ROOT / "docs" / "reference" / "spark.md").read_text("utf-8")
