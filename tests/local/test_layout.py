"""The files of a local cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.local import layout as layouts
from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.metadata.config_def import parse_static


def test_a_dedicated_controller_is_node_100(tmp_path: Path) -> None:
    layout = layouts.create(tmp_path, [9092, 9093, 9094], [9095])
    configs = [parse_static(properties.read(node.properties_path)) for node in layout.nodes]
    assert [(config.node_id, config.roles) for config in configs] == [
        (1, ("broker",)),
        (2, ("broker",)),
        (3, ("broker",)),
        (100, ("controller",)),
    ]
    assert layout.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"


def test_with_combined_roles_broker_1_is_the_controller_and_stops_last(tmp_path: Path) -> None:
    layout = layouts.create(tmp_path, [9092, 9093], [9095], combined=True)
    assert layout.combined
    assert parse_static(properties.read(layout.brokers[0].properties_path)).roles == ("broker", "controller")
    assert layout.stop_order() == (layout.brokers[1:], layout.brokers[:1])
    assert layout.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093"


@pytest.mark.parametrize("written", range(6))
def test_a_creation_that_was_interrupted_has_left_no_cluster_and_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Its files could be taken for a cluster with fewer nodes."""
    left = iter(range(written))
    write = layouts.write_private

    def interrupted(path: Path, text: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        write(path, text)

    with monkeypatch.context() as patched:
        patched.setattr(layouts, "write_private", interrupted)
        with pytest.raises(KeyboardInterrupt):
            layouts.create(tmp_path, [9092, 9093, 9094], [9095, 9096, 9097])
    assert layouts.load(tmp_path) is None
    layouts.create(tmp_path, [9092, 9093], [9094])
    found = layouts.load(tmp_path)
    assert found is not None and [node.node_id for node in found.nodes] == [1, 2, 100]


def test_three_controllers_have_nodes_of_their_own_or_are_the_first_brokers(tmp_path: Path) -> None:
    apart = layouts.create(tmp_path / "apart", [9092], [9093, 9094, 9095])
    assert apart.controller_ids == [100, 101, 102]
    assert [node.controller_address() for node in apart.controllers] == [
        f"127.0.0.1:{port}" for port in (9093, 9094, 9095)
    ]
    assert properties.read_static(apart.brokers[0].properties_path)["controller.quorum.bootstrap.servers"] == (
        "127.0.0.1:9093",
        "127.0.0.1:9094",
        "127.0.0.1:9095",
    )
    combined = layouts.create(tmp_path / "combined", [9092, 9093, 9094, 9095], [9096, 9097, 9098], combined=True)
    assert (combined.controller_ids, combined.controllers) == ([1, 2, 3], ())
    assert combined.stop_order() == (combined.brokers[3:], combined.brokers[:3])


@pytest.mark.parametrize(("nodes", "factor", "min_isr"), [(1, "1", None), (2, "2", None), (3, "3", "2"), (5, "3", "2")])
def test_replication_fits_the_number_of_brokers(tmp_path: Path, nodes: int, factor: str, min_isr: str | None) -> None:
    layout = layouts.create(tmp_path, range(9092, 9092 + nodes), [9200])
    for node in layout.nodes:
        given = properties.read(node.properties_path)
        assert given["default.replication.factor"] == factor
        assert given["offsets.topic.replication.factor"] == factor
        assert given["share.coordinator.state.topic.replication.factor"] == factor
        assert given.get("min.insync.replicas") == min_isr


def test_what_was_created_is_found_again_with_edits(tmp_path: Path) -> None:
    created = layouts.create(tmp_path, [9092], [9093], config={"log.segment.bytes": "1048576"})
    with created.brokers[0].properties_path.open("a") as file:
        file.write("num.partitions=7\n")
    found = layouts.load(tmp_path)
    assert found == created
    given = properties.read(found.brokers[0].properties_path)
    assert (given["num.partitions"], given["log.segment.bytes"]) == ("7", "1048576")
    assert [node.ports() for node in found.nodes] == [[9092], [9093]]


def test_an_empty_folder_holds_no_cluster(tmp_path: Path) -> None:
    assert layouts.load(tmp_path) is None
    assert layouts.load(tmp_path / "gone") is None


def test_a_property_that_differs_from_node_to_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"node\.id"):
        layouts.create(tmp_path, [9092], [9093], config={"node.id": "5"})


def test_the_callers_config_wins_over_the_standard_one(tmp_path: Path) -> None:
    layout = layouts.create(tmp_path, [1, 2, 3], [4], config={"min.insync.replicas": "1"})
    assert properties.read(layout.controllers[0].properties_path)["min.insync.replicas"] == "1"


def test_a_copy_of_a_nodes_folder_is_no_node(tmp_path: Path) -> None:
    created = layouts.create(tmp_path, [9092], [9093])
    created.brokers[0].directory.joinpath("log").mkdir()
    (tmp_path / "broker-1.old").mkdir()
    (tmp_path / "broker-1.old" / "server.properties").write_bytes(created.brokers[0].properties_path.read_bytes())
    assert layouts.load(tmp_path) == created


@pytest.mark.parametrize("line", ["listeners=PLAINTEXT://127.0.0.1", "listeners=", "log.segmnt.bytes=5"])
def test_an_edit_that_is_wrong_is_told_with_the_file(tmp_path: Path, line: str) -> None:
    broker = layouts.create(tmp_path, [9092], [9093]).brokers[0]
    with broker.properties_path.open("a") as file:
        file.write(f"{line}\n")
    for ask in (broker.ports, broker.client_address):
        with pytest.raises(LocalError, match=rf"broker-1/server\.properties: .*{line.partition('=')[0]}"):
            ask()


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match=r"cannot create a cluster in .*/file: Not a directory.* data folder that can"):
        layouts.create(tmp_path / "file", [9092], [9093])
