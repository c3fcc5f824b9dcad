"""Which sign of a lost broker ends its session at once, by itself and in a whole cluster in virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from heirlog.controller.process_probe import ProcessProbe
from heirlog.env import SendFailure
from heirlog.protocol.messages import ApiVersionsResponse
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World
from heirlog.testing.conformance.body import ManualEnv

BROKER, EPOCH, ADDRESS = BrokerId(1), BrokerEpoch(7), Endpoint("broker1", 9092)
HOST = "10.0.0.7"
REFUSED = SendFailure("disconnected", "connection refused", refused_by=HOST)


class Asked:
    def __init__(self) -> None:
        self.env = ManualEnv()
        self.in_doubt = True
        self.gone: list[Any] = []
        self.endpoint: Endpoint | None = ADDRESS
        self.probe = ProcessProbe(
            self.env,
            lambda broker: self.endpoint,
            lambda broker, epoch: self.in_doubt,
            lambda *what: self.gone.append(what),
            timeout_ms=1000,
        )
        self.probe.heard(BROKER, EPOCH, HOST)
        self.answer(ApiVersionsResponse())
        self.probe.ask(BROKER, EPOCH)

    def answer(self, result: Any) -> None:
        self.env.take("probe").on_result(result)


def test_a_port_that_refuses_connections_ends_the_doubt() -> None:
    asked = Asked()
    asked.answer(REFUSED)
    assert asked.gone == [(BROKER, EPOCH, ADDRESS)]
    assert not asked.env.sent


@pytest.mark.parametrize("earlier", [SendFailure("timed-out"), REFUSED, None])
def test_a_port_that_never_answered_this_controller_proves_nothing(earlier: Any) -> None:
    asked = Asked()
    asked.env.sent.clear()
    later = BrokerEpoch(8)
    if earlier is not None:
        for _ in range(2):  # asked again with the next heartbeat
            asked.probe.heard(BROKER, later, HOST)
            asked.answer(earlier)
    asked.probe.ask(BROKER, later)
    asked.answer(REFUSED)
    assert not asked.gone


def test_a_refusal_by_another_host_than_that_of_the_heartbeats_proves_nothing() -> None:
    asked = Asked()
    asked.answer(replace(REFUSED, refused_by="10.0.0.1"))
    assert not asked.gone


def test_an_address_counts_however_it_is_written() -> None:
    asked = Asked()
    asked.answer(replace(REFUSED, refused_by=f"::ffff:{HOST}"))
    assert asked.gone


def test_a_controller_that_lost_its_office_and_has_it_again_does_not_know_the_way_yet() -> None:
    asked = Asked()
    asked.probe.forget_all()
    asked.answer(REFUSED)
    assert not asked.gone


def test_one_question_is_enough_for_a_registration_and_only_one_is_under_way() -> None:
    asked = Asked()
    asked.env.sent.clear()
    asked.probe.heard(BROKER, EPOCH, HOST)
    assert not asked.env.sent
    asked.probe.heard(BROKER, BrokerEpoch(8), HOST)
    asked.probe.heard(BROKER, BrokerEpoch(8), HOST)
    assert len(asked.env.sent) == 1


def test_a_heartbeat_that_came_meanwhile_counts_more() -> None:
    asked = Asked()
    asked.in_doubt = False
    asked.answer(REFUSED)
    assert not asked.gone


def test_a_process_that_answers_keeps_its_grace() -> None:
    asked = Asked()
    asked.answer(ApiVersionsResponse())
    asked.env.advance(5000)
    assert not asked.gone and not asked.env.sent


@pytest.mark.parametrize("kind", ["timed-out", "disconnected"])
def test_what_proves_nothing_is_asked_again_until_the_doubt_is_over(kind: str) -> None:
    asked = Asked()
    asked.answer(SendFailure(kind))
    asked.env.advance(20)
    asked.answer(SendFailure(kind))
    asked.in_doubt = False
    asked.env.advance(5000)
    assert not asked.gone and not asked.env.sent


def test_a_broker_that_is_not_registered_is_not_asked() -> None:
    asked = Asked()
    asked.endpoint = None
    asked.env.sent.clear()
    asked.probe.ask(BROKER, EPOCH)
    assert not asked.env.sent


class Cluster:
    """Three brokers and a controller; the grace is long, so that only the probe can fence within a second."""

    def __init__(self) -> None:
        self.world = World(11)
        config = {"heirlog.broker.disconnect.grace.ms": "5000", "broker.session.timeout.ms": "60000"}
        self.cluster = SimCluster(self.world, brokers=3, config=config)
        self.cluster.format()
        self.cluster.start_all()
        (self.controller,) = self.cluster.controller_names
        self.broker = self.cluster.broker_names[1]
        assert self.cluster.run_until(lambda: self.registered == {1, 2, 3} and not self.fenced, 30_000)

    @property
    def registered(self) -> set[int]:
        return set(self._brokers())

    @property
    def fenced(self) -> set[int]:
        return {broker.id for broker in self._brokers().values() if broker.fenced}

    def _brokers(self) -> Any:
        node = self.cluster.machine(self.controller).node
        return {} if node is None or not node.has_roles else node.image.brokers


def test_a_killed_broker_is_fenced_within_milliseconds() -> None:
    running = Cluster()
    running.cluster.kill(running.broker)
    running.world.run_for(200)
    assert running.fenced == {2}


def test_a_broker_whose_connections_the_network_resets_is_not_fenced_as_long_as_its_process_lives() -> None:
    running = Cluster()
    for _ in range(40):
        running.cluster.reset_between(running.broker, running.controller)
        running.world.run_for(100)
        assert running.fenced == set()


def test_a_broker_that_is_cut_off_after_a_reset_keeps_its_grace() -> None:
    running = Cluster()
    running.cluster.reset_between(running.broker, running.controller)
    running.cluster.block(running.broker, running.controller)
    running.cluster.block(running.controller, running.broker)
    running.world.run_for(4000)
    assert running.fenced == set()
    running.world.run_for(3000)
    assert running.fenced == {2}
