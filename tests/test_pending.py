"""What holds an answer that is not there yet is free again as soon as it is given, or nobody wants it any more."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from heirlog.pending import Pending


class Owner:
    """As a connection's queue and a purgatory: it holds the answer that calls it."""

    def __init__(self) -> None:
        self.pending: Pending[str] = Pending(self.abandoned)
        self.told: list[str] = []

    def answered(self, response: str) -> None:
        self.told.append(response)

    def abandoned(self) -> None:
        self.told.append("abandoned")


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def complete_late(owner: Owner) -> None:
    owner.pending.then(owner.answered)
    owner.pending.complete("answer")


def complete_early(owner: Owner) -> None:
    owner.pending.complete("answer")
    owner.pending.then(owner.answered)


def abandon(owner: Owner) -> None:
    owner.pending.then(owner.answered)
    owner.pending.abandon()
    owner.pending.complete("too late")


@pytest.mark.parametrize(
    ("end", "told"), [(complete_late, "answer"), (complete_early, "answer"), (abandon, "abandoned")]
)
def test_it_is_told_once_and_freed_without_the_collector(end: Callable[[Owner], None], told: str) -> None:
    owner = Owner()
    end(owner)
    owner.pending.abandon()
    assert owner.told == [told]
    freed = weakref.ref(owner)
    del owner
    assert freed() is None


def test_it_has_one_listener_and_one_answer() -> None:
    pending: Pending[str] = Pending()
    pending.then(lambda response: None)
    pending.complete("answer")
    with pytest.raises(AssertionError, match="one listener"):
        pending.then(lambda response: None)
    with pytest.raises(AssertionError, match="once"):
        pending.complete("again")
