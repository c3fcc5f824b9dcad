"""Stores of a node that change while it runs: when its body makes new contexts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from heirlog.controller.alter_configs import incremental_alter_configs
from heirlog.metadata.image import BROKER_RESOURCE, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.node.dynamic_stores import DynamicStores
from heirlog.node.metadata_publisher import MetadataPublisher
from heirlog.node.snapshots import SnapshotTrigger
from heirlog.protocol.messages import IncrementalAlterConfigsRequest
from heirlog.protocol.records import ConfigRecord, NoOpRecord
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World

STORE = {"PLAINTEXT": {"ssl.keystore.location": "/new.p12"}}


class Body:
    def __init__(self) -> None:
        self.used: list[Any] = []

    def reason_against(self, stores: Mapping[str, Mapping[str, str]]) -> str | None:
        return None

    def use(self, stores: Mapping[str, Mapping[str, str]]) -> None:
        self.used.append(stores)


def altering(name: str, value: str) -> IncrementalAlterConfigsRequest:
    Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        IncrementalAlterConfigsRequest.AlterableConfig(
            name="listener.name.plaintext.ssl.keystore.location", value=value
        )
    ]
    return IncrementalAlterConfigsRequest(
        resources=[Resource(resource_type=BROKER_RESOURCE, resource_name=name, configs=changes)]
    )


@pytest.mark.parametrize("combined", [True, False], ids=["broker", "controller only"])
def test_a_start_uses_what_is_stored_and_the_same_location_again_reads_a_replaced_file(combined: bool) -> None:
    world = World(7)
    cluster = SimCluster(world, brokers=1, combined=combined)
    cluster.format()
    cluster.start_all()
    body = Body()
    machine = cluster.controller
    me = machine.node_id

    def follow() -> None:
        assert machine.node is not None
        machine.node._stores = DynamicStores(body, me)

    def alter(name: int) -> None:
        node: Any = machine.running
        controller = node.controller
        request = altering(str(name), "/new.p12")
        controller.submit(
            lambda: incremental_alter_configs(controller.image, controller.static, request), lambda code: None
        )
        world.run_for(2_000)

    follow()
    world.run_for(15_000)
    assert body.used == []
    alter(me)
    assert body.used == [STORE]
    alter(me)
    assert body.used == [STORE] * 2
    alter(77)
    assert body.used == [STORE] * 2, "another node's"
    cluster.kill(machine.name)
    cluster.start(machine.name)
    follow()
    world.run_for(15_000)
    assert body.used == [STORE] * 3


def test_a_snapshot_with_the_same_stores_reads_their_files_again() -> None:
    """They may have been stored again by records that the snapshot stands for."""
    body = Body()
    stores = DynamicStores(body, 1)

    def on_image(image: Image, changed: ImageJournal) -> None:
        stores.follow(image, changed)

    publisher = MetadataPublisher(lambda: None, on_image, SnapshotTrigger(1 << 30, 0, lambda: 0), lambda *_: True)
    publisher.publish()
    name = "listener.name.plaintext.ssl.keystore.location"
    stored = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name=name, value="/new.p12")
    publisher.on_snapshot([stored], 10, 1)
    assert body.used == [STORE]
    publisher.on_snapshot([stored], 20, 1)
    assert body.used == [STORE] * 2
    # without any, the files of server.properties are left alone
    publisher.on_snapshot([NoOpRecord()], 30, 1)
    assert body.used == [STORE] * 2 + [{}]
    publisher.on_snapshot([NoOpRecord()], 40, 1)
    assert body.used == [STORE] * 2 + [{}]
