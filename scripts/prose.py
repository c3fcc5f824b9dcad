"""Check the words that users read: `.venv/bin/python scripts/prose.py`, as part of `make lint`.

It reads README.md and the other pages at the root, docs/, the help of every command, and the texts in src/ that are not
docstrings: errors, log events and hints. Of the packages in `PLAIN` it reads docstrings and comments too. It refuses
phrases that slow a reader, cells of a table that should be prose, and codes that a page neither explains nor links.
Exceptions are in `scripts/prose-allowed.txt`, each with its reason. codespell checks the spelling (`make lint`).
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "scripts" / "prose-allowed.txt"
CELL_LIMIT = 300
GIVEN = ("docs/internals/design.md", "docs/internals/kafka-behaviour.md", "docs/internals/kraft-facts.md")
"""Documents that the project was given, in their authors' words. Each says so in its first lines. What they say of
heirlog is kept true; their phrases are not checked.
"""
PLAIN = (
    "apis",
    "blocking",
    "broker",
    "cli",
    "client",
    "controller",
    "drill",
    "local",
    "metadata",
    "node",
    "protocol",
    "raft",
    "server",
    "sim",
    "spark",
    "storage",
    "testing",
)
"""Packages of heirlog whose docstrings and comments are free of `PHRASES`."""

PHRASES = {
    r"\b(is|are|was|were|be) told\b": "receives, is notified, gets the error",
    r"\b(stands?|stood|lies?|lives?) in\b": "is in",
    r"\bstands? (there|below|above|beside|behind|before)\b": "is",
    r"\b(goes|went|gone|go|going) on(?= (with|from|where|at|by|as|without|until|over|in|when)\b|[.,;:)]|$)": (
        "continues"
    ),
    r"\b(begins?|began|begun) anew\b|\banew\b": "restarts, again",
    r"\b(is|are) made (again|anew)\b": "is recreated",
    r"\bnobody\b": "no broker, no client, it has no leader",
    r"\bsomebody\b": "a user, a replica, a client",
    r"\beverybody\b": "every broker, every client, all of them",
    r"\bwhoever\b": "any broker that",
    r"\b(is|are|was|were|be) passed over\b|\bpass(es)? over\b": "is skipped, is ignored",
    r"\b(is|are|was|were|be) left alone\b": "is ignored",
    r"\bfrom its begin\b|\bat (its|the) begin\b|\bits begin\b": "from the earliest offset",
    r"\bbeside\b": "in addition to, next to",
    r"\ba wish\b|\bthe wish\b": "a request, a setting",
    r"\bthere is none of it\b": "does not exist",
    r"(?<!there\s)\b(is|are) no (principal|row|record|directory|topic|broker|number|json|utf-8)\b": "is not a ...",
    r"\bso it is anyway\b": "that is already so",
    r"\bsay of what\b": "name it",
    r"\bnot only what is new\b": "the whole configuration",
    r"\bwhat counts for all brokers\b": "values of all brokers",
    r"\bthe time is over\b|\btime is over\b": "timed out",
    r"\bcan be asked here\b": "no broker can be reached",
    r"\bnothing comes back by itself\b": "it does not recover on its own",
    r"\b(is|are) somebody's\b": "belongs to a principal",
    r"\bspeaks? of\b": "names, covers",
}
CODES = re.compile(r"\b[KTUCB]\d{1,3}\b|\bguards? \d+")
EXPLAINED = re.compile(r"\]\([^)]*(simulation|kafka-behaviour)\.md")


class Text(NamedTuple):
    where: str
    line: int
    text: str


class Finding(NamedTuple):
    where: str
    line: int
    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.found!r}: {self.advice}"


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    return sorted(page for page in found if str(page.relative_to(ROOT)) not in GIVEN)


def prose_of(page: str) -> str:
    """Without code, line by line as long as before."""
    page = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), page, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`x`", page)


def messages(module: Path, root: Path = ROOT) -> Iterator[Text]:
    """Every text of a module that is not a docstring and has more than one word, and the help of its commands."""
    where = str(module.relative_to(root))
    tree = ast.parse(module.read_text(encoding="utf-8"))
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _is_command(node) and (help_text := ast.get_docstring(node)):
            yield Text(where, node.lineno, help_text)
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text:
            yield Text(where, node.lineno, text)


def docstrings_and_comments(module: Path, root: Path = ROOT) -> Iterator[Text]:
    """Every docstring, and every block of comments on lines of their own as one text."""
    where = str(module.relative_to(root))
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(where, node.lineno, node.value.value)
    block: list[tokenize.TokenInfo] = []
    with module.open("rb") as source:
        comments = [token for token in tokenize.tokenize(source.readline) if token.type == tokenize.COMMENT]
    for comment in comments:
        if block and (comment.start[0] - 1, comment.start[1]) != block[-1].start:
            yield _joined(where, block)
            block = []
        block.append(comment)
    if block:
        yield _joined(where, block)


def _joined(where: str, block: list[tokenize.TokenInfo]) -> Text:
    return Text(where, block[0].start[0], "\n".join(comment.string.lstrip("# ") for comment in block))


def _is_command(node: ast.FunctionDef) -> bool:
    calls = [decorator.func for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr in ("command", "callback") for call in calls)


def phrases_in(text: Text) -> Iterator[Finding]:
    for phrase, advice in PHRASES.items():
        for match in re.finditer(phrase.replace(" ", r"\s+"), text.text, re.IGNORECASE | re.MULTILINE):
            line = text.line + text.text.count("\n", 0, match.start())
            yield Finding(text.where, line, " ".join(match[0].split()).lower(), f"write: {advice}")


def long_cells_in(text: Text) -> Iterator[Finding]:
    for number, line in enumerate(text.text.splitlines(), text.line):
        if line.startswith("|"):
            for cell in line.split(" | "):
                # a cell that is only a list of tests is a reference, not prose
                if len(re.sub(r"`[^`]*`", "", cell)) > len(cell) / 2 and len(cell) > CELL_LIMIT:
                    yield Finding(text.where, number, cell[:40], f"a cell of {len(cell)} characters: make it prose")


def codes_in(text: Text) -> Iterator[Finding]:
    if not EXPLAINED.search(text.text):
        for match in CODES.finditer(prose_of(text.text)):
            line = prose_of(text.text).count("\n", 0, match.start()) + 1
            yield Finding(text.where, line, match[0], "explain the code, or link docs/internals/simulation.md")


def findings() -> Iterator[Finding]:
    for page in pages():
        where, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
        yield from phrases_in(Text(where, 1, prose_of(text)))
        if not text.startswith("<!--") and "Written by scripts/reference.py" not in text:
            yield from long_cells_in(Text(where, 1, text))
        if where not in ("docs/internals/simulation.md", "CHANGELOG.md"):
            yield from codes_in(Text(where, 1, text))
    for module in sorted((ROOT / "src").rglob("*.py")):
        for text in messages(module):
            yield from phrases_in(text)
    for package in PLAIN:
        for module in sorted((ROOT / "src" / "heirlog" / package).rglob("*.py")):
            if "_generated" not in module.parts:
                for text in docstrings_and_comments(module):
                    yield from phrases_in(text)


def allowed() -> dict[tuple[str, str], str]:
    """(file, phrase) → why it may stay."""
    found = {}
    for line in ALLOWED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            where, phrase, reason = (part.strip() for part in line.split("|"))
            found[where, phrase] = reason
    return found


def main() -> int:
    may_stay: dict[tuple[str, str], Any] = allowed()
    used, wrong = set(), []
    for finding in findings():
        key = finding.where, finding.found
        if key in may_stay:
            used.add(key)
        else:
            wrong.append(str(finding))
    wrong += [
        f"{ALLOWED.name}: {where} has no {phrase!r} any more: remove the line"
        for where, phrase in may_stay.keys() - used
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
