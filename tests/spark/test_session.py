"""What a session sees to before its Java starts."""

from __future__ import annotations

import pytest

from heirlog.spark.session import name_files_in_utf_8


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
        ({"LC_CTYPE": "C.UTF-8"}, None),
        ({"LC_ALL": "", "LANG": "de_DE.ISO-8859-1"}, None),
    ],
)
def test_java_can_say_every_name_of_a_file_and_keeps_a_locale_that_somebody_chose(
    environment: dict[str, str], locale: str | None
) -> None:
    before = environment.get("LC_ALL")
    name_files_in_utf_8(environment)
    assert environment.get("LC_ALL") == (locale or before)
