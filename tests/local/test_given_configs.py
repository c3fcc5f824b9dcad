"""Properties for every node of a new cluster: what is refused before a folder is made."""

from __future__ import annotations

import pytest

from heirlog.local.errors import LocalError
from heirlog.local.given_configs import parsed


def test_names_and_values_are_taken_as_they_are_given() -> None:
    given = ["num.partitions=6", " delegation.token.secret.key = a=b ", "ssl.client.auth=required"]
    assert parsed(given) == {
        "num.partitions": "6",
        "delegation.token.secret.key": "a=b",
        "ssl.client.auth": "required",
    }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["num.partitions"], "'num.partitions' is not of the form NAME=VALUE"),
        (["=6"], "'=6' is not of the form NAME=VALUE"),
        (["num.partitions=6", "num.partitions=7"], "num.partitions is given twice"),
        (["listeners=PLAINTEXT://:9"], "listeners is different on each node"),
        (["heirlog.accept.older.metadata=true"], "is for one start only: --accept-older-metadata"),
        (["num.partition=6"], r"num\.partition.*did you mean num\.partitions\?"),
        (["num.partitions=many"], "many for configuration num.partitions"),
    ],
)
def test_what_no_node_would_start_with_is_refused(given: list[str], sentence: str) -> None:
    with pytest.raises(LocalError, match=sentence):
        parsed(given)
