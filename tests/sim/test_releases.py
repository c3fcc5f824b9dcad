"""Nodes of an older release, as the others see them."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.metadata.features import DEFAULT_FEATURES
from heirlog.metadata.state import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    SHARE_VERSION,
    TRANSACTION_VERSION,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.records import FeatureLevelRecord
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import Operator, feature_level
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.releases import NEWEST, older
from heirlog.sim.simulation import Simulation

OLDER = older(25, recovers=False)
LIMIT_MS = 15_000


@pytest.fixture
def simulation() -> Simulation:
    made = Simulation(1, RunPlan(partitions=1, manager=False, release=OLDER))
    made.begin()
    return made


def ask(simulation: Simulation, feature: str, level: int) -> Any:
    answers: list[Any] = []
    cluster = simulation.cluster
    name = f"asker-{simulation.world.events_run}"
    operator = cluster.run_client(name, lambda env: Operator(env, name, cluster.bootstrap, []))
    operator.ask(feature_level(feature, level), answers.append)
    assert cluster.run_until(lambda: bool(answers), LIMIT_MS)
    return answers[0]


def install(simulation: Simulation, name: str, release: Any) -> None:
    cluster = simulation.cluster
    cluster.stop(name)
    assert cluster.run_until(lambda: not cluster.is_up(name), LIMIT_MS)
    cluster.upgrade(name, release)
    cluster.start(name)


def all_registered(simulation: Simulation, metadata_max: int) -> bool:
    image = simulation.checker.committed.image
    registered = [
        *(broker.features for broker in image.brokers.values()),
        *(controller.features for controller in image.controllers.values()),
    ]
    ranges = [each.max_version for features in registered for each in features if each.name == METADATA_VERSION]
    return simulation.all_unfenced() and ranges == [metadata_max] * len(registered)


def test_a_cluster_begins_with_the_levels_of_its_release() -> None:
    known = {
        name: level
        for name, level in DEFAULT_FEATURES.items()
        if name not in (TRANSACTION_VERSION, GROUP_VERSION, SHARE_VERSION)
    }
    assert OLDER.formatted(DEFAULT_FEATURES) == {**known, METADATA_VERSION: 25}
    assert NEWEST.formatted(DEFAULT_FEATURES) == DEFAULT_FEATURES
    assert OLDER.formatted({RECOVERY_VERSION: 1, ELR_VERSION: 1}) == {ELR_VERSION: 1}


def test_levels_can_be_raised_once_every_node_is_upgraded(simulation: Simulation) -> None:
    simulation.wait("all are older", lambda: all_registered(simulation, 25), LIMIT_MS)
    refused = ask(simulation, METADATA_VERSION, 27)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION and "supports versions 23-25" in refused.error_message
    assert ask(simulation, RECOVERY_VERSION, 1).error_code == ErrorCode.INVALID_UPDATE_VERSION
    for name in [*simulation.cluster.controller_names, *simulation.cluster.broker_names]:
        install(simulation, name, NEWEST)
    simulation.wait("all are upgraded", lambda: all_registered(simulation, 29), LIMIT_MS)
    for feature, level in ((METADATA_VERSION, 27), (RECOVERY_VERSION, 1)):
        assert ask(simulation, feature, level).error_code == ErrorCode.NONE
    install(simulation, "broker-2", OLDER)
    simulation.cluster.run_for(5000)
    assert "does not support" in "".join(map(str, simulation.world.logs)), "an older broker cannot come back"
    broker = simulation.checker.committed.image.brokers[BrokerId(2)]
    assert broker.fenced and {each.max_version for each in broker.features if each.name == METADATA_VERSION} == {29}


def test_a_level_that_a_node_does_not_support_is_found(simulation: Simulation) -> None:
    committed = simulation.checker.committed
    with pytest.raises(Violation, match=r"T20: metadata.version is at level 27; broker 1 supports 23 to 25"):
        committed._apply(FeatureLevelRecord(name=METADATA_VERSION, feature_level=27), committed.end, 1)
