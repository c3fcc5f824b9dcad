"""Which files the nodes of a data folder work on after it was copied, moved, linked or edited."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heirlog.local import data_folder, properties
from heirlog.local import layout as layouts
from heirlog.local.errors import LocalError
from heirlog.local.format import format_cluster
from heirlog.local.layout import SHARE_STATE_REPLICAS, Layout, NodeLayout


@pytest.fixture
def made(tmp_path: Path) -> Layout:
    layout = layouts.create(tmp_path / "a", [9092, 9093], [9094], racks=["r", "s"])
    format_cluster(layout, {})
    return layout


def found(data: Path) -> Layout:
    layout = layouts.load(data)
    assert layout is not None
    return layout


def log_dirs(layout: Layout) -> list[str]:
    return [properties.read(node.properties_path)["log.dirs"] for node in layout.nodes]


def edit(node: NodeLayout, old: str, new: str) -> None:
    text = node.properties_path.read_text()
    assert old in text
    node.properties_path.write_text(text.replace(old, new))


def assert_refused(layout: Layout, sentence: str) -> None:
    before = [node.properties_path.read_bytes() for node in layout.nodes]
    with pytest.raises(LocalError, match=sentence):
        data_folder.taken_in(layout)
    assert [node.properties_path.read_bytes() for node in layout.nodes] == before


def test_a_folder_at_home_stays_as_it_is(made: Layout) -> None:
    before = made.brokers[0].properties_path.read_bytes()
    assert data_folder.taken_in(made) is None
    assert made.brokers[0].properties_path.read_bytes() == before


@pytest.mark.parametrize("original", ["stays", "is gone", "was made again"])
def test_a_copied_or_moved_folder_works_on_its_own_files(made: Layout, tmp_path: Path, original: str) -> None:
    for node in made.nodes:
        node.ledger_path.write_bytes(b"with the other folder's paths")
    edit(made.brokers[1], "listeners=", "num.partitions = 7\n# mine\nlisteners=")
    shutil.copytree(made.data, tmp_path / "b", symlinks=True)
    if original != "stays":
        shutil.rmtree(made.data)
    if original == "was made again":
        layouts.create(tmp_path / "a", [9092, 9093], [9094])
    copy = found(tmp_path / "b")
    assert data_folder.taken_in(copy) == str(made.data)
    assert log_dirs(copy) == [str(node.log_dir) for node in copy.nodes]
    assert not any(node.ledger_path.exists() for node in copy.nodes)
    given = properties.read(copy.brokers[1].properties_path)
    assert (given["num.partitions"], given["broker.rack"], given["node.id"]) == ("7", "s", "2")
    assert "# mine\n" in copy.brokers[1].properties_path.read_text()
    assert data_folder.taken_in(copy) is None, "once is enough"
    if original == "stays":
        assert log_dirs(made) == [str(node.log_dir) for node in made.nodes]


@pytest.mark.parametrize(
    ("line", "brokers", "after"), [("", 2, "2"), (SHARE_STATE_REPLICAS + "=3", 2, "3"), ("", 3, None)]
)
def test_a_folder_of_before_share_groups_gets_as_many_replicas_of_their_topic_as_it_has_brokers(
    tmp_path: Path, line: str, brokers: int, after: str | None
) -> None:
    layout = layouts.create(tmp_path, range(9092, 9092 + brokers), [9099])
    for node in layout.nodes:
        lines = node.properties_path.read_text().splitlines()
        kept = [line if each.startswith(SHARE_STATE_REPLICAS) else each for each in lines]
        node.properties_path.write_text("\n".join(kept).rstrip())
    before = [properties.read(node.properties_path) for node in layout.nodes]
    for _ in range(2):
        data_folder.complete(layout)
    for node, earlier in zip(layout.nodes, before, strict=True):
        found = properties.read(node.properties_path)
        assert found.pop(SHARE_STATE_REPLICAS, None) == after
        earlier.pop(SHARE_STATE_REPLICAS, None)
        assert found == earlier


def test_further_directories_and_differently_written_lines_follow_too(made: Layout, tmp_path: Path) -> None:
    for node in made.nodes:
        (node.directory / "more").mkdir()
        edit(
            node,
            f"log.dirs={node.log_dir}",
            f"log.dirs : {node.log_dir}, {node.directory}/more\nmetadata.log.dir={node.log_dir}",
        )
    assert data_folder.taken_in(made) is None
    made.data.rename(tmp_path / "b")
    moved = found(tmp_path / "b")
    assert data_folder.taken_in(moved) == str(made.data)
    for node in moved.nodes:
        given = properties.read(node.properties_path)
        assert given["log.dirs"].split(",") == [str(node.log_dir), str(node.directory / "more")]
        assert given["metadata.log.dir"] == str(node.log_dir)


def test_a_folder_that_is_reached_by_a_link_is_at_home(made: Layout, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(made.data)
    assert data_folder.taken_in(found(tmp_path / "link")) is None


def test_a_folder_that_was_made_behind_a_link_is_at_home_without_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    layout = layouts.create(tmp_path / "link" / "a", [9092], [9093])
    for node in layout.nodes:  # as a shell that was in the link wrote it
        edit(node, str(layout.data), str(tmp_path / "link" / "a"))
    format_cluster(layout, {})
    assert data_folder.taken_in(layout) is None
    (tmp_path / "link").unlink()
    assert data_folder.taken_in(layout) == str(tmp_path / "link" / "a")


def test_a_directory_elsewhere_is_refused_with_both_paths(made: Layout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk" / "broker-1" / "log"
    edit(made.brokers[0], f"log.dirs={made.brokers[0].log_dir}", f"log.dirs={elsewhere}")
    sentence = f"log.dirs={elsewhere}, which is outside the data folder {made.data}.*heirlog node"
    assert_refused(made, sentence)
    elsewhere.mkdir(parents=True)
    assert_refused(made, sentence)


def test_a_disk_that_every_node_names_and_that_is_no_copied_folder_is_refused(made: Layout, tmp_path: Path) -> None:
    for node in made.nodes:
        there = tmp_path / "disk" / node.directory.name / "log"
        there.mkdir(parents=True)
        edit(node, f"log.dirs={node.log_dir}", f"log.dirs={there}")
    assert_refused(made, "outside the data folder")


def test_a_moved_folder_without_its_logs_is_refused_rather_than_formatted(made: Layout, tmp_path: Path) -> None:
    made.data.rename(tmp_path / "b")
    moved = found(tmp_path / "b")
    shutil.rmtree(moved.brokers[0].log_dir)
    assert_refused(moved, "outside the data folder")


@pytest.mark.parametrize("linked", ["log", "broker-1"])
def test_a_link_that_leads_out_is_refused_since_a_copy_would_share_it(
    made: Layout, tmp_path: Path, linked: str
) -> None:
    place = made.brokers[0].directory if linked == "broker-1" else made.brokers[0].log_dir
    place.rename(tmp_path / "disk")
    place.symlink_to(tmp_path / "disk")
    assert_refused(made, rf"that is {tmp_path}/disk.*outside the data folder")
    shutil.copytree(made.data, tmp_path / "b", symlinks=True)
    assert_refused(found(tmp_path / "b"), "outside the data folder")


def test_another_place_of_the_same_folder_is_an_edit(made: Layout) -> None:
    edit(made.brokers[0], f"log.dirs={made.brokers[0].log_dir}", f"log.dirs={made.data}/disk-1")
    assert data_folder.taken_in(made) is None


def test_a_node_of_a_copied_folder_refuses_the_originals_logs(made: Layout, tmp_path: Path) -> None:
    shutil.copytree(made.data, tmp_path / "b")
    copy = found(tmp_path / "b").brokers[0].properties_path
    done = subprocess.run(
        [sys.executable, "-m", "heirlog", "node", "--config", str(copy)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert f"names its log directory {made.brokers[0].log_dir}" in done.stderr
    assert f"heirlog up --data {tmp_path / 'b'}" in done.stderr
    original = made.brokers[0].properties_path
    properties.refuse_copied(str(original), properties.read_static(original))
    data_folder.taken_in(found(tmp_path / "b"))
    properties.refuse_copied(str(copy), properties.read_static(copy))


@pytest.mark.parametrize(("name", "sentence"), [("a,b", "a comma separates directories"), ("a\nb", "on a line")])
def test_a_path_that_the_file_cannot_hold_is_refused(tmp_path: Path, name: str, sentence: str) -> None:
    for data in (tmp_path / name, tmp_path / name / "below"):
        with pytest.raises(LocalError, match=sentence):
            data_folder.hold(data)
    assert os.listdir(tmp_path) == []


def test_a_folder_is_used_by_one_command_at_a_time(tmp_path: Path) -> None:
    held = data_folder.hold(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "link"):
        with pytest.raises(LocalError, match=f"runs the cluster in {path}"):
            data_folder.hold(path)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    os.close(data_folder.hold(tmp_path / "b"))
    os.close(held)
    os.close(data_folder.hold(tmp_path / "a"))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match=r"cannot use the data folder .* give one that can be written"):
        data_folder.hold(tmp_path / "file")


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(LocalError, match=f"link is a link to {tmp_path}/gone, which does not exist: put back"):
        data_folder.hold(tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


@pytest.mark.parametrize("name", ["a" * 256, "ä" * 128, "/".join(["d" * 100] * 38)])
def test_a_folder_that_leaves_no_room_for_the_names_in_it_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LocalError, match="give a shorter one"):
        data_folder.hold(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_the_longest_names_work(tmp_path: Path) -> None:
    os.close(data_folder.hold(tmp_path / ("ä" * 127)))


@pytest.mark.parametrize("swapped", [(1, 2), (2, 1)])
def test_directories_of_other_nodes_are_refused_before_a_node_starts(made: Layout, swapped: tuple[int, int]) -> None:
    one, other = (made.brokers[number - 1].log_dir for number in swapped)
    shutil.rmtree(one)
    one.symlink_to(other)
    with pytest.raises(LocalError, match=f"{one} belongs to node {swapped[1]}, not to {swapped[0]}; put back"):
        format_cluster(made, {})


def test_a_directory_of_another_cluster_is_the_one_that_is_named(made: Layout, tmp_path: Path) -> None:
    strange = layouts.create(tmp_path / "strange", [9092, 9093], [9094])
    format_cluster(strange, {})
    log_dir = made.brokers[0].log_dir
    shutil.rmtree(log_dir)
    shutil.copytree(strange.brokers[0].log_dir, log_dir)
    with pytest.raises(LocalError, match=f"{log_dir} belongs to cluster"):
        format_cluster(made, {})


@pytest.mark.parametrize("left", [[], [".gitkeep", ".lock"], ["lost+found"], ["broker-1", "controller-100"]])
def test_an_empty_folder_or_what_a_failed_start_left_may_become_a_cluster(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        (tmp_path / name).mkdir()
    data_folder.refuse_others(tmp_path)
    data_folder.refuse_others(tmp_path / "new")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv", "broker-x", "notes", ".git"):
        (tmp_path / name).mkdir()
    with pytest.raises(LocalError, match=r"holds other files \(broker-x, notes, test.csv ...\) and no cluster"):
        data_folder.refuse_others(tmp_path)
    with pytest.raises(LocalError, match="Not a directory"):
        (tmp_path / "file").touch()
        data_folder.refuse_others(tmp_path / "file")


def test_a_log_directory_that_a_node_has_lost_is_found(made: Layout) -> None:
    broker, other = made.brokers
    assert data_folder.lost_directories(made) == []
    (other.log_dir / "meta.properties").unlink()
    assert data_folder.lost_directories(made) == [], "a node that has never run has lost nothing"
    other.output_path.touch()
    broker.output_path.touch()
    assert data_folder.lost_directories(made) == [(other, str(other.log_dir))]
    shutil.rmtree(broker.log_dir)
    assert len(data_folder.lost_directories(made)) == 2
    format_cluster(made, {})
    assert data_folder.lost_directories(made) == []


def test_a_node_without_its_file_is_not_left_out_without_a_word(made: Layout) -> None:
    data_folder.refuse_incomplete(made.data)
    (made.data / "broker-1.old" / "log").mkdir(parents=True)
    data_folder.refuse_incomplete(made.data)
    made.brokers[1].properties_path.unlink()
    with pytest.raises(LocalError, match=r"broker-2 has the log of a node and no server.properties: put the file back"):
        data_folder.refuse_incomplete(made.data)
