"""Two nodes for tests of APIs: a whole one with an authorizer, and the part that descriptions are made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apis.described import described_node
from apis.guarded import Guarded


@pytest.fixture(scope="module")
def one() -> Guarded:
    guarded = Guarded()
    guarded.create_topics("t", "hidden", "__consumer_offsets")
    return guarded


@pytest.fixture
def node(one: Guarded) -> Iterator[Guarded]:
    """A node with the topics t and hidden. A test file has one; its ACLs are removed after each test."""
    yield one
    one.forget_acls()


@pytest.fixture
def port() -> Any:
    """What handlers that describe use of a node."""
    return described_node()
