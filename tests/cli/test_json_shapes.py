"""docs/reference/json.md has every command; `cli.conftest` compares what each of them prints in all tests."""

from __future__ import annotations

import re

import pytest
from cli.json_shapes import REFERENCE, mistakes, shapes


def test_every_command_with_json_is_on_the_page() -> None:
    sections = re.split(r"^## `heirlog ", (REFERENCE / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    wanted = {section.partition("`")[0] for section in sections if "`--json`" in section}
    assert len(wanted) > 50
    assert set(shapes()) == wanted


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ('[{"topic": "a", "topic_id": "x", "partitions": 1, "internal": false}]', []),
        ('{"topic": "a"}', ["heirlog topics list: the value is no array: {'topic': 'a'}"]),
        ('[{"topic": "a", "topic_id": "x", "partitions": 1}]', ["heirlog topics list: [0].internal is missing"]),
        (
            '[{"topic": null, "topic_id": "x", "partitions": true, "internal": false, "new": 1}]',
            [
                "heirlog topics list: [0].topic is not of type string: None",
                "heirlog topics list: [0].partitions is not of type integer: True",
                "heirlog topics list: [0].new is not on the page",
            ],
        ),
    ],
)
def test_what_is_not_as_the_page_says_is_found(out: str, said: list[str]) -> None:
    assert mistakes(["topics", "list", "--json"], out) == said
