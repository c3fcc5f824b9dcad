"""Whose answer waits for whom, and for how long."""

from __future__ import annotations

from typing import Any

from broker.fakes import FakeEnv, registered

from heirlog.apis.common.api import Role
from heirlog.metadata.image import Image
from heirlog.node.read_your_writes import WAIT_MS, LocalImageWaits, MetadataPropagation
from heirlog.node.router import ROUTES
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.types import BrokerId

CONTROLLER = 100


class World:
    def __init__(self, *brokers: int, fenced: tuple[int, ...] = ()) -> None:
        self.env = FakeEnv()
        self.image = Image()
        for broker in brokers:
            self.set(broker, fenced=broker in fenced)
        self.every_broker = MetadataPropagation(self.env, lambda: self.image, CONTROLLER)  # type: ignore[arg-type]

    def set(self, broker: int, **more: Any) -> None:
        self.image.set_broker(BrokerId(broker), registered(broker, **more), None)

    def change(self, end_offset: int, answer: Any = None) -> tuple[list[Any], Pending[Any]]:
        """What is answered, and the controller's own answer, which is there once the records are committed."""
        committed: Pending[Any] = Pending()
        waiting = self.every_broker.when_all_know(committed, end_offset)
        heard: list[Any] = []
        waiting.then(heard.append)
        return heard, committed


def test_a_change_is_answered_once_every_unfenced_broker_has_applied_it() -> None:
    world = World(1, 2, 3, fenced=(3,))
    heard, committed = world.change(10)
    committed.complete("done")
    world.every_broker.fetched(1, 10)
    world.every_broker.fetched(2, 9)
    world.every_broker.fetched(-1, 99)
    assert not heard
    world.every_broker.fetched(2, 10)
    assert heard == ["done"]
    world.env.advance(2 * WAIT_MS)
    assert heard == ["done"]


def test_a_broker_that_knows_before_the_controller_has_answered_is_not_waited_for_again() -> None:
    world = World(1)
    heard, committed = world.change(10)
    world.every_broker.fetched(1, 12)
    assert not heard
    committed.complete("done")
    assert heard == ["done"]


def test_a_slow_broker_delays_a_change_by_half_a_second_at_most() -> None:
    world = World(1, 2)
    heard, committed = world.change(10)
    world.every_broker.fetched(1, 10)
    world.env.advance(10 * WAIT_MS)
    assert not heard, "the time counts from the commit"
    committed.complete("done")
    world.env.advance(WAIT_MS - 1)
    assert not heard
    world.env.advance(1)
    assert heard == ["done"]


def test_a_broker_that_is_fenced_meanwhile_is_waited_for_no_longer() -> None:
    world = World(1, 2)
    heard, committed = world.change(10)
    committed.complete("done")
    world.every_broker.fetched(1, 10)
    world.set(2, fenced=True)
    world.every_broker.brokers_changed()
    assert heard == ["done"]


def test_the_controllers_own_broker_needs_no_fetch() -> None:
    world = World(CONTROLLER)
    assert world.every_broker.when_all_know("done", 10) == "done"


class Counted(int):
    """An end offset that counts how often it is looked at."""

    looks = 0

    def __le__(self, other: int) -> bool:
        Counted.looks += 1
        return int(self) <= other


class CountedBrokers(dict[Any, Any]):
    looks = 0

    def __contains__(self, key: object) -> bool:
        CountedBrokers.looks += 1
        return super().__contains__(key)


def test_a_slow_broker_makes_neither_the_fetches_of_others_nor_commits_slower() -> None:
    world = World(1, 2)
    heard = [_committed(world, Counted(i)) for i in range(1_000)]
    world.every_broker.fetched(1, 1_000)
    Counted.looks = CountedBrokers.looks = 0
    world.image.brokers = CountedBrokers(world.image.brokers)
    for _ in range(10):
        world.every_broker.fetched(1, 1_000)
        world.every_broker.fetched(2, -1)
        world.every_broker.brokers_changed()
    assert Counted.looks <= 10 and CountedBrokers.looks <= 10
    assert not any(heard)
    world.every_broker.fetched(2, 499)
    assert [bool(said) for said in heard] == [True] * 500 + [False] * 500
    world.env.advance(WAIT_MS)
    assert all(said == ["done"] for said in heard)
    assert not world.every_broker._queues


def _committed(world: World, end_offset: int) -> list[Any]:
    heard, committed = world.change(end_offset)
    committed.complete("done")
    return heard


def test_a_client_that_leaves_takes_its_wait_along() -> None:
    world = World(1)
    gone: list[str] = []
    committed: Pending[Any] = Pending(lambda: gone.append("controller"))
    world.every_broker.when_all_know(committed, 10).abandon()
    assert gone == ["controller"] and committed.done
    world.every_broker.fetched(1, 10)
    world.env.advance(WAIT_MS)


def test_a_forwarded_answer_waits_for_the_image_of_its_own_broker() -> None:
    env, applied, heard = FakeEnv(), [4], []
    own = LocalImageWaits(env, lambda: applied[0])  # type: ignore[arg-type]
    own.when_applied(4, lambda: heard.append("there"))
    own.when_applied(5, lambda: heard.append("next"))
    own.when_applied(9, lambda: heard.append("late"))
    assert heard == ["there"]
    applied[0] = 5
    own.applied()
    assert heard == ["there", "next"]
    env.advance(WAIT_MS)
    assert heard == ["there", "next", "late"]
    applied[0] = 9
    own.applied()
    assert heard == ["there", "next", "late"]


def test_changes_wait_on_the_controller_alone() -> None:
    assert ROUTES[Role.CONTROLLER][ApiKey.CREATE_TOPICS].is_change
    assert not ROUTES[Role.CONTROLLER][ApiKey.BROKER_HEARTBEAT].is_change
    assert not any(route.is_change for route in ROUTES[Role.BROKER].values())
