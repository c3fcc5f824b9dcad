"""`heirlog storage`: Kafka's options and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Heirlog

from heirlog.local import layout as layouts
from heirlog.local import properties
from heirlog.local.format import Disk, format_cluster
from heirlog.local.layout import NodeLayout
from heirlog.protocol.records import FeatureLevelRecord
from heirlog.protocol.types import uuid_from_text, uuid_text
from heirlog.raft.bootstrap import log_directory, read_bootstrap_records
from heirlog.raft.control import Voter
from heirlog.raft.snapshot import BOOTSTRAP, load

CLUSTER = "Zk9TtPR5SOudlCIhjXenNw"
OTHER = "AAAAtPR5SOudlCIhjXenNw"


@pytest.fixture
def controller(tmp_path: Path) -> NodeLayout:
    return layouts.create(tmp_path, [19092], [19093]).controllers[0]


@pytest.fixture
def broker(tmp_path: Path) -> NodeLayout:
    return layouts.create(tmp_path, [19092], [19093]).brokers[0]


def features(node: NodeLayout) -> dict[str, int]:
    with Disk() as disk:
        records = read_bootstrap_records(disk.files, str(node.log_dir))
    return {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}


def voters_on(disk: Disk, controller: NodeLayout) -> tuple[Voter, ...]:
    return load(disk.files, log_directory(str(controller.log_dir)), BOOTSTRAP).voters


def test_random_uuid_prints_an_id_that_never_looks_like_an_option(heirlog: Heirlog) -> None:
    first, second = (heirlog("storage", "random-uuid").out.strip() for _ in range(2))
    assert first != second
    assert len(uuid_from_text(first)) == 16
    assert not first.startswith("-")


def test_format_writes_meta_properties_of_the_right_node(heirlog: Heirlog, broker: NodeLayout) -> None:
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER)
    assert outcome.code == 0, outcome.err
    identity = properties.read(broker.log_dir / "meta.properties")
    assert (identity["version"], identity["cluster.id"], identity["node.id"]) == ("1", CLUSTER, "1")
    assert not (broker.log_dir / "__cluster_metadata-0").exists()
    assert features(broker) == {
        "metadata.version": 29,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "share.version": 1,
        "heirlog.recovery.version": 1,
    }


@pytest.mark.parametrize(
    ("given", "code", "sentence"), [("bad", 0, "warning: the cluster id 'bad'"), (" ", 2, "empty")]
)
def test_a_cluster_id_that_was_hardly_meant_is_noticed(
    heirlog: Heirlog, broker: NodeLayout, given: str, code: int, sentence: str
) -> None:
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", given)
    assert (outcome.code, broker.log_dir.exists()) == (code, code == 0), outcome.err
    assert sentence in outcome.err


def test_a_standalone_controller_names_itself_the_only_voter(heirlog: Heirlog, controller: NodeLayout) -> None:
    outcome = heirlog("storage", "format", "-c", controller.properties_path, "-t", CLUSTER, "--standalone")
    assert outcome.code == 0, outcome.err
    with Disk() as disk:
        (voter,) = voters_on(disk, controller)
    identity = properties.read(controller.log_dir / "meta.properties")
    assert (voter.id, uuid_text(voter.directory_id)) == (100, identity["directory.id"])
    assert (voter.endpoint.host, voter.endpoint.port, voter.listener) == ("127.0.0.1", 19093, "CONTROLLER")


def test_a_controller_whose_configuration_names_the_voters_gets_no_other_list(
    heirlog: Heirlog, controller: NodeLayout
) -> None:
    """As Kafka's tool: kraft.version 0 follows from controller.quorum.voters."""
    with controller.properties_path.open("a") as file:
        file.write("controller.quorum.voters=100@127.0.0.1:19093\n")
    formats = ["storage", "format", "-c", controller.properties_path, "-t", CLUSTER]
    for options in (["--standalone"], ["--feature", "kraft.version=1"]):
        refused = heirlog(*formats, *options)
        assert (refused.code, "controller.quorum.voters" in refused.err) == (1, True)
        assert not controller.log_dir.exists()
    outcome = heirlog(*formats, "--feature", "kraft.version=0")
    assert outcome.code == 0, outcome.err
    assert not (controller.log_dir / "__cluster_metadata-0").exists()


def test_initial_controllers_give_this_node_its_directory_id(heirlog: Heirlog, controller: NodeLayout) -> None:
    mine, theirs = "KvZ5tPR5SOudlCIhjXenNw", "BvZ5tPR5SOudlCIhjXenNw"
    voters = f"100@127.0.0.1:19093:{mine},101@127.0.0.1:19094:{theirs}"
    outcome = heirlog(
        "storage", "format", "-c", controller.properties_path, "-t", CLUSTER, "--initial-controllers", voters
    )
    assert outcome.code == 0, outcome.err
    assert properties.read(controller.log_dir / "meta.properties")["directory.id"] == mine
    with Disk() as disk:
        found = voters_on(disk, controller)
    assert [(voter.id, uuid_text(voter.directory_id)) for voter in found] == [(100, mine), (101, theirs)]


A, B, RESERVED = "KvZ5tPR5SOudlCIhjXenNw", "BvZ5tPR5SOudlCIhjXenNw", "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("voters", "sentence"),
    [
        ("", "names no controller"),
        (f"101@127.0.0.1:19094:{A}", "does not name this node, 100"),
        (f"100@127.0.0.1:19093:{A},100@127.0.0.1:19094:{B}", "the node id 100 more than once"),
        (f"100@127.0.0.1:19093:{A},101@127.0.0.1:19094:{A}", f"the directory id {A} more than once"),
        (f"100@127.0.0.1:19093:{A},101@127.0.0.1:19093:{B}", "the address 127.0.0.1:19093 more than once"),
        (f"-1@127.0.0.1:19093:{A}", "'-1' is not a node id"),
        (f"100@127.0.0.1:{A}", "is not of the form host:port"),
        ("100@127.0.0.1:19093:short", "is not a UUID in Kafka's form"),
        (f"100@127.0.0.1:19093:{RESERVED}", "is reserved"),
    ],
)
def test_a_list_of_voters_that_no_quorum_can_have_is_refused(
    heirlog: Heirlog, controller: NodeLayout, voters: str, sentence: str
) -> None:
    outcome = heirlog("storage", "format", "-c", controller.properties_path, "-t", CLUSTER, "-I", voters)
    assert outcome.code == 1
    assert sentence in outcome.err
    assert not controller.log_dir.exists()


def test_the_initial_controllers_listen_where_the_configuration_of_controllers_says(
    heirlog: Heirlog, controller: NodeLayout
) -> None:
    """Voters find each other by the listener's name."""
    text = controller.properties_path.read_text().replace("CONTROLLER", "QUORUM")
    controller.properties_path.write_text(text)
    outcome = heirlog(
        "storage", "format", "-c", controller.properties_path, "-t", CLUSTER,
        "-I", f"100@127.0.0.1:19093:{A}", "--feature", "kraft.version=1",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    with Disk() as disk:
        assert [voter.listener for voter in voters_on(disk, controller)] == ["QUORUM"]


def test_a_controller_that_joins_later_names_no_voters(heirlog: Heirlog, controller: NodeLayout) -> None:
    outcome = heirlog("storage", "format", "-c", controller.properties_path, "-t", CLUSTER, "-N")
    assert outcome.code == 0, outcome.err
    assert (controller.log_dir / "meta.properties").exists()
    assert not (controller.log_dir / "__cluster_metadata-0").exists()


def test_a_controller_that_lost_its_meta_properties_is_not_formatted_into_a_quorum_that_waits_for_ever(
    heirlog: Heirlog, controller: NodeLayout
) -> None:
    """Its log names the voter by the directory id that is gone: formatted anew, nobody could be elected."""
    command = ("storage", "format", "-c", controller.properties_path, "-t", CLUSTER, "--standalone")
    assert heirlog(*command).code == 0
    identity = controller.log_dir / "meta.properties"
    metadata = Path(log_directory(str(controller.log_dir)))
    known = properties.read(identity)["directory.id"]
    identity.unlink()
    (metadata / "00000000000000000000.log").touch()
    info = heirlog("storage", "info", "-c", controller.properties_path)
    assert info.code == 1 and "put that file back" in info.out
    refused = heirlog(*command)
    assert refused.code == 1 and "put that file back" in refused.err and not identity.exists()
    (snapshot,) = metadata.glob("*.checkpoint")
    assert f'"voter_directory_id": "{known}"' in heirlog("dump", snapshot, "--deep").out
    metadata.rename(metadata.with_suffix(".old"))
    assert heirlog(*command).code == 0, "a new cluster"


def test_a_controller_must_say_which_quorum(heirlog: Heirlog, controller: NodeLayout) -> None:
    outcome = heirlog("storage", "format", "-c", controller.properties_path, "-t", CLUSTER)
    assert outcome.code == 1
    assert "--standalone" in outcome.err
    assert outcome.err.count("\n") == 1
    assert not controller.log_dir.exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--standalone"], "is not a controller"),
        (["--release-version", "3.0"], "metadata version 3.0"),
        (["--feature", "streams.version=1"], "streams.version is not a feature"),
        (["--feature", "eligible.leader.replicas.version=7"], "has levels 0 to 1"),
        (["--feature", "kraft.version=0"], "kraft.version=0: the level is 0 if controller.quorum.voters"),
        (["--feature", "kraft.version=1"], "other nodes take kraft.version from the quorum"),
        (["--release-version", "4.1", "--feature", "metadata.version=25"], "both set metadata.version"),
        (["--no-initial-controllers", "--standalone"], "only one of"),
    ],
)
def test_options_that_cannot_be_met_are_refused_in_one_sentence(
    heirlog: Heirlog, broker: NodeLayout, options: list[str], sentence: str
) -> None:
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER, *options)
    assert outcome.code == 1
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
    assert not broker.log_dir.exists()


def test_release_version_and_feature_choose_levels(heirlog: Heirlog, broker: NodeLayout) -> None:
    outcome = heirlog(
        "storage", "format", "-c", broker.properties_path, "-t", CLUSTER,
        "--release-version", "4.0-IV3", "--feature", "eligible.leader.replicas.version=0",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert features(broker) == {
        "metadata.version": 25,
        "transaction.version": 2,
        "group.version": 1,
        "heirlog.recovery.version": 1,
    }


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ([], 2),
        (["--release-version", "4.0-IV2"], 2),
        (["--release-version", "4.0-IV1"], 0),
        (["--feature", "metadata.version=23"], 0),
        (["--release-version", "4.0-IV1", "--feature", "transaction.version=2"], 2),
        (["--feature", "transaction.version=1"], 1),
        (["--feature", "transaction.version=0"], 0),
    ],
)
def test_transaction_version_follows_the_release_unless_it_is_named(
    heirlog: Heirlog, broker: NodeLayout, options: list[str], level: int
) -> None:
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER, *options)
    assert outcome.code == 0, outcome.err
    assert features(broker).get("transaction.version", 0) == level


@pytest.mark.parametrize(
    ("options", "level"),
    [
        (["--release-version", "4.2-IV0"], 1),
        (["--release-version", "4.1"], 0),
        (["--release-version", "4.1", "--feature", "share.version=1"], 1),
        (["--feature", "share.version=0"], 0),
    ],
)
def test_share_version_follows_the_release_unless_it_is_named(
    heirlog: Heirlog, broker: NodeLayout, options: list[str], level: int
) -> None:
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER, *options)
    assert outcome.code == 0, outcome.err
    assert features(broker).get("share.version", 0) == level


@pytest.mark.parametrize(
    ("configured", "options", "level"),
    [("true", [], 1), ("false", [], 0), ("true", ["--feature", "heirlog.recovery.version=0"], 0)],
)
def test_the_configuration_or_feature_says_whether_the_recovery_manager_begins_on(
    heirlog: Heirlog, broker: NodeLayout, configured: str, options: list[str], level: int
) -> None:
    with open(broker.properties_path, "a", encoding="utf-8") as file:
        file.write(f"unclean.recovery.manager.enabled={configured}\n")
    assert heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER, *options).code == 0
    assert features(broker)["heirlog.recovery.version"] == level


def test_a_formatted_directory_is_left_alone(heirlog: Heirlog, broker: NodeLayout) -> None:
    command = ("storage", "format", "-c", broker.properties_path, "-t", CLUSTER)
    heirlog(*command)
    before = (broker.log_dir / "meta.properties").read_text()
    again = heirlog(*command)
    assert again.code == 1
    assert "already formatted" in again.err and "--ignore-formatted" in again.err
    assert heirlog(*command, "--ignore-formatted").code == 0
    assert (broker.log_dir / "meta.properties").read_text() == before


def test_ignore_formatted_does_not_ignore_another_cluster(heirlog: Heirlog, broker: NodeLayout) -> None:
    heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER)
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", OTHER, "--ignore-formatted")
    assert outcome.code == 1
    assert f"belongs to cluster {CLUSTER}" in outcome.err


def test_info_shows_identity_and_problems(heirlog: Heirlog, broker: NodeLayout) -> None:
    before = heirlog("storage", "info", "-c", broker.properties_path)
    assert before.code == 1
    assert before.out.startswith(f"Found problem:\n  {broker.log_dir} does not exist: run `heirlog storage format")
    broker.log_dir.mkdir()
    empty = heirlog("storage", "info", "-c", broker.properties_path)
    assert empty.code == 1
    assert empty.out.startswith(f"Found log directory:\n  {broker.log_dir}\n\nFound problem:\n")
    assert f"{broker.log_dir} is not formatted" in empty.out
    heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER)
    after = heirlog("storage", "info", "-c", broker.properties_path, "--json")
    assert after.code == 0
    found = json.loads(after.out)
    assert found["problems"] == []
    assert found["directories"][str(broker.log_dir)]["cluster.id"] == CLUSTER


def test_info_compares_the_directories_of_a_node(heirlog: Heirlog, broker: NodeLayout) -> None:
    first, second, file = (broker.directory / name for name in ("log", "second", "file"))
    properties_of = broker.properties_path.read_text()
    broker.properties_path.write_text(properties_of.replace(f"log.dirs={first}", f"log.dirs={first},{second}"))
    assert heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER).code == 0
    sound = heirlog("storage", "info", "-c", broker.properties_path)
    assert (sound.code, sound.out.count("Found metadata in"), "problem" in sound.out) == (0, 2, False)
    written = (first / "meta.properties").read_text()
    (second / "meta.properties").write_text(written)
    assert "same directory id" in heirlog("storage", "info", "-c", broker.properties_path).out
    by_hand = written[: written.index("# crc32c")].replace(CLUSTER, OTHER).replace("node.id=1", "node.id=2")
    (second / "meta.properties").write_text(by_hand)
    wrong = heirlog("storage", "info", "-c", broker.properties_path)
    assert wrong.code == 1 and "Found problems:" in wrong.out
    assert "different clusters" in wrong.out and f"{second} belongs to node 2, not to 1" in wrong.out
    file.write_text("")
    broker.properties_path.write_text(properties_of.replace(f"log.dirs={first}", f"log.dirs={file}"))
    assert f"{file} is not a directory" in heirlog("storage", "info", "-c", broker.properties_path).out


def test_info_names_a_damaged_file(heirlog: Heirlog, broker: NodeLayout) -> None:
    broker.log_dir.mkdir()
    (broker.log_dir / "meta.properties").write_text("version=1\n")
    outcome = heirlog("storage", "info", "-c", broker.properties_path)
    assert outcome.code == 1
    assert "meta.properties is damaged" in outcome.out


def test_a_directory_that_may_not_be_read_does_not_pass_for_one_that_is_not_formatted(
    heirlog: Heirlog, broker: NodeLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.log_dir.mkdir()
    # tests may run as root, who may read everything
    monkeypatch.setattr("os.access", lambda path, mode: path != str(broker.log_dir))
    info = heirlog("storage", "info", "-c", broker.properties_path)
    assert info.code == 1 and "may not be read by this user" in info.out and "not formatted" not in info.out
    refused = heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER)
    assert refused.code == 1 and "may not be read by this user" in refused.err


def test_a_bad_property_is_named(heirlog: Heirlog, broker: NodeLayout) -> None:
    with broker.properties_path.open("a") as file:
        file.write("log.segmnt.bytes=5\n")
    outcome = heirlog("storage", "format", "-c", broker.properties_path, "-t", CLUSTER)
    assert outcome.code == 1
    assert "log.segmnt.bytes" in outcome.err and str(broker.properties_path) in outcome.err


def test_a_local_cluster_is_formatted_with_one_cluster_id_and_only_once(tmp_path: Path) -> None:
    layout = layouts.create(tmp_path, [19092, 19093], [19094])
    format_cluster(layout, {})
    identities = [(node.log_dir / "meta.properties").read_text() for node in layout.nodes]
    assert len({properties.parse(text)["cluster.id"] for text in identities}) == 1
    assert len({properties.parse(text)["directory.id"] for text in identities}) == 3
    format_cluster(layout, {})
    assert [(node.log_dir / "meta.properties").read_text() for node in layout.nodes] == identities
