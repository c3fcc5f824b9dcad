from __future__ import annotations

import re

import pytest

from heirlog.spark import patterns


@pytest.mark.parametrize(
    ("java", "matching", "other"),
    [
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\Qa.b", "a.b", "axb"),
        (r"^\\Qa|b$", "b", "Qa"),
        (r"^(?<one>a+)-\k<one>$", "aa-aa", "aa-a"),
        (r"^(?<!x)a\z", "a", "ab"),
        (r"a\Z", "ba", "ab"),
        (r"^orders-[\w.]+$", "orders-1.b", "orders"),
    ],
)
def test_a_pattern_means_what_it_means_in_java(java: str, matching: str, other: str) -> None:
    pattern = patterns.compiled(java)
    assert pattern.search(matching)
    assert not pattern.search(other)


@pytest.mark.parametrize("pattern", ["(", "[a-z&&[^b]]", "[[a]b]", r"\p{Lu}"])
def test_what_python_cannot_say_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        patterns.compiled(pattern)
