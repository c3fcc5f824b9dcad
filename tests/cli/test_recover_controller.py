"""`heirlog recover controller`: what it writes, and what it refuses. On real processes: tests/processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.conftest import Heirlog, heirlog  # noqa: F401  # the fixture

from heirlog.cli.offline.doctor import OfflineEnv
from heirlog.controller import seeding
from heirlog.controller.reset_partition import LEADER_EPOCH_MARGIN
from heirlog.local.format import Disk
from heirlog.metadata.image import Image
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from heirlog.protocol.types import ZERO_UUID, BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter, encode_controls, kraft_version, leader_change, voters_record
from heirlog.raft.metadata_log import MetadataLogConfig, open_log
from heirlog.raft.quorum_state import QuorumState, encode
from heirlog.raft.values import encode_value
from heirlog.storage.identity import format_directory

CLUSTER = "the-cluster"
TOPIC = Uuid(b"t" * 16)
OLD_VOTER = Voter(BrokerId(100), Uuid(b"o" * 16), Endpoint("127.0.0.1", 19093))
EPOCH, LEADER_EPOCH = 4, 7


def records(topic: str = "orders") -> list[Message]:
    return [
        FeatureLevelRecord(name="metadata.version", feature_level=27),
        RegisterBrokerRecord(broker_id=1, incarnation_id=b"i" * 16, broker_epoch=5, fenced=False),
        TopicRecord(name=topic, topic_id=TOPIC),
        PartitionRecord(
            topic_id=TOPIC,
            partition_id=0,
            replicas=[1, 2],
            isr=[2],
            leader=2,
            leader_epoch=LEADER_EPOCH,
            partition_epoch=9,
        ),
        ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=3000),
    ]


def broker(
    path: Path,
    batches: Sequence[Sequence[Message]],
    *,
    cluster: str = CLUSTER,
    seen_epoch: int = EPOCH,
    log_epoch: int | None = None,
    node_id: int = 1,
    directory_id: Uuid = Uuid(b"d" * 16),  # noqa: B008
    voters: Sequence[Voter] = (OLD_VOTER,),
) -> Path:
    """A stopped node's log directory, with a copy of the metadata log that is known to be committed."""
    with Disk() as disk:
        disk.wait(
            lambda done: format_directory(disk.files, str(path), cluster, node_id, directory_id, done) and None, "x"
        )
        directory = f"{path}/__cluster_metadata-0"
        log = open_log(OfflineEnv(disk.files, lambda event, values: None), directory, MetadataLogConfig())
        quorum = [kraft_version(), voters_record(voters)] if voters else [leader_change(100, [100], [100])]
        log.append(encode_controls(quorum, 0, EPOCH, 1000), EPOCH)
        for batch in batches:
            values = [(None, encode_value(record), (), 1000) for record in batch]
            log.append(encode_batch(values, log.end_offset, EPOCH), EPOCH)
        log.committed_to(log.end_offset)
        disk.wait(log.finish, "writing")
        log.close()
        Path(directory, "quorum-state").write_bytes(encode(QuorumState(100, seen_epoch)))
        if log_epoch is not None:
            partition_log(path, log_epoch)
    return path


def partition_log(path: Path, log_epoch: int) -> None:
    partition = path / "orders-0"
    partition.mkdir()
    (partition / "leader-epoch-checkpoint").write_text(f"0\n1\n{log_epoch} 0\n")
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: dHR0dHR0dHR0dHR0dHR0dA\n")


def without_metadata(path: Path) -> Path:
    """A log directory in which the broker has no metadata log."""
    with Disk() as disk:
        disk.wait(lambda done: format_directory(disk.files, str(path), CLUSTER, 1, Uuid(b"e" * 16), done) and None, "x")
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=controller\nnode.id=100\nlisteners=CONTROLLER://127.0.0.1:19093\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path}/controller\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:19093\n"
    )
    return path


def run(heirlog: Heirlog, config: Path, *sources: Path) -> str:  # noqa: F811
    outcome = heirlog("recover", "controller", "--config", config, *(o for path in sources for o in ("--from", path)))
    return outcome.err if outcome.code else ""


def seeded(config: Path) -> tuple[Image, int, tuple[Voter, ...]]:
    """The controller's image, the epoch of its log, and who votes."""
    with Disk() as disk:
        env = OfflineEnv(disk.files, lambda event, values: None)
        log = open_log(env, f"{config.parent}/controller/__cluster_metadata-0", MetadataLogConfig())
        found = seeding.image_of(log), log.end.epoch, log.voters
        log.close()
        return found


def test_the_seeded_controller_votes_alone_in_an_epoch_above_all_that_brokers_have_seen(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    assert run(heirlog, config, broker(tmp_path / "b1", [records()], seen_epoch=5000)) == ""
    _, epoch, voters = seeded(config)
    assert epoch > 5000
    assert [(voter.id, voter.endpoint) for voter in voters] == [(100, OLD_VOTER.endpoint)]
    assert voters[0].directory_id != OLD_VOTER.directory_id, "of the new folder"


def test_no_isr_no_broker_epoch_and_no_producer_id_of_the_copy_is_believed(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    assert run(heirlog, config, broker(tmp_path / "b1", [records()], log_epoch=900)) == ""
    image, _, _ = seeded(config)
    state = image.partitions[TOPIC][0]
    assert (state.isr, state.elr, state.last_known_elr, state.leader, state.replicas) == ((), (), (), -1, (1, 2))
    assert state.leader_epoch > 900 and state.partition_epoch > 9
    registered = image.brokers[BrokerId(1)]
    assert registered.fenced and registered.epoch > 5 and registered.incarnation_id == ZERO_UUID
    assert image.next_producer_id > 3000 + 1_000_000
    assert image.recovery_manager_enabled


@pytest.mark.parametrize("epochs", ["missing", "damaged"])
def test_a_log_without_a_readable_checkpoint_of_epochs_counts_with_those_of_its_records(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
    epochs: str,
) -> None:
    path = broker(tmp_path / "b1", [records()], log_epoch=3)
    log = path / "orders-0"
    checkpoint = log / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n1\n900 0 \t \n") if epochs == "damaged" else checkpoint.unlink()
    for base_offset, epoch in ((0, 70_000), (1, 80_000)):
        batch = bytes(encode_batch([(None, b"x", (), 1000)], base_offset=base_offset, leader_epoch=epoch))
        # the newest segment ends with half a batch, as after a kill
        (log / f"{base_offset:020d}.log").write_bytes(batch + batch[:20] * base_offset)
    (log / f"{2:020d}.log").touch()
    assert run(heirlog, config, path) == ""
    assert seeded(config)[0].partitions[TOPIC][0].leader_epoch > 80_000 + LEADER_EPOCH_MARGIN // 2


def test_a_log_of_an_unknown_topic_is_named(heirlog: Heirlog, config: Path, tmp_path: Path) -> None:  # noqa: F811
    path = broker(tmp_path / "b1", [records()], log_epoch=900)
    (path / "orders-0" / "partition.metadata").write_text("damaged")
    (path / "empty-0").mkdir()
    outcome = heirlog("recover", "controller", "--config", config, "--from", path)
    assert outcome.code == 0
    named = [line for line in outcome.out.splitlines() if "partition.metadata" in line]
    assert len(named) == 1 and named[0].startswith(f"The log in {path}/orders-0 was left out")


def test_the_newest_copy_is_chosen_and_half_a_metadata_transaction_is_dropped(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    later = [TopicRecord(name="later", topic_id=b"l" * 16)]
    half = [BeginTransactionRecord(name="x"), TopicRecord(name="half", topic_id=b"h" * 16)]
    older = broker(tmp_path / "b1", [records()])
    newer = broker(tmp_path / "b2", [records(), later, half])
    assert run(heirlog, config, older, newer) == ""
    image, _, _ = seeded(config)
    assert set(image.topic_ids) == {"orders", "later"} and image.open_transaction is None


@pytest.mark.parametrize("metadata_were_there_once", [False, True])
@pytest.mark.parametrize("given", ["each", "the folder that holds them"])
def test_of_a_broker_with_two_log_directories_both_are_looked_at(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
    given: str,
    metadata_were_there_once: bool,
) -> None:
    later = [TopicRecord(name="later", topic_id=b"l" * 16)]
    first, second = tmp_path / "b1" / "first", tmp_path / "b1" / "second"
    if metadata_were_there_once:
        broker(second, [records()])
    else:
        without_metadata(second)
    broker(first, [records(), later])
    partition_log(second, 900)
    assert run(heirlog, config, *((first, second) if given == "each" else (tmp_path / "b1",))) == ""
    image, _, _ = seeded(config)
    assert set(image.topic_ids) == {"orders", "later"}
    assert image.partitions[TOPIC][0].leader_epoch > 900


def test_the_brokers_folders_are_only_read(heirlog: Heirlog, config: Path, tmp_path: Path) -> None:  # noqa: F811
    path = broker(tmp_path / "b1", [records()])
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert run(heirlog, config, path) == ""
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_it_refuses_what_is_not_safe_and_changes_nothing(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    good = broker(tmp_path / "good", [records()])
    foreign = broker(tmp_path / "foreign", [records()], cluster="another")
    other = broker(tmp_path / "other", [records("else"), records("x")[:1]])
    empty = without_metadata(tmp_path / "empty")
    assert "different clusters" in run(heirlog, config, good, foreign)
    assert "do not belong to one history" in run(heirlog, config, good, other)
    assert "none of the folders holds a copy" in run(heirlog, config, empty)
    (good / ".lock").touch()
    held = os.open(good / ".lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert "stop the node first" in run(heirlog, config, good)
    os.close(held)
    assert not (tmp_path / "controller").exists()
    assert run(heirlog, config, good) == ""
    refused = run(heirlog, config, good)
    assert 0 < refused.find("without it they are lost") < refused.find("move the folder away")


def test_a_folder_or_a_target_whose_identity_is_damaged_is_refused_with_a_sentence(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    good, damaged = broker(tmp_path / "good", [records()]), broker(tmp_path / "damaged", [records()])
    (damaged / "meta.properties").write_bytes(b"\xff")
    refused = run(heirlog, config, good, damaged)
    assert f"{damaged}/meta.properties is damaged" in refused and "storage format" not in refused
    (tmp_path / "controller").mkdir()
    (tmp_path / "controller" / "meta.properties").write_bytes(b"\xff")
    assert f"{tmp_path / 'controller'}/meta.properties is damaged" in run(heirlog, config, good)
    assert [path.name for path in (tmp_path / "controller").iterdir()] == ["meta.properties"]


# a quorum that lost its majority

THREE = [
    Voter(BrokerId(node), Uuid(bytes([node]) * 16), Endpoint("127.0.0.1", 19000 + node)) for node in (100, 101, 102)
]


def controller(path: Path, me: Voter, *batches: Sequence[Message], voters: Sequence[Voter] = THREE) -> Path:
    return broker(path, batches, node_id=me.id, directory_id=me.directory_id, voters=voters)


def majority_lost(heirlog: Heirlog, config: Path, *sources: Path) -> tuple[str, str]:  # noqa: F811
    """What it prints, and what it refuses."""
    given = [option for path in sources for option in ("--from", path)]
    outcome = heirlog("recover", "controller", "--config", config, "--majority-lost", *given)
    assert outcome.code == bool(outcome.err)
    return outcome.out, outcome.err


def test_the_controller_that_is_left_votes_alone_and_keeps_what_only_it_had_fetched(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    copy = broker(tmp_path / "b1", [records()], seen_epoch=70)
    own = controller(tmp_path / "controller", THREE[0], records(), [TopicRecord(name="later", topic_id=b"l" * 16)])
    before = {file.name: file.read_bytes() for file in (own / "__cluster_metadata-0").iterdir()}
    out, err = majority_lost(heirlog, config, copy)
    assert err == ""
    image, epoch, voters = seeded(config)
    assert set(image.topic_ids) == {"orders", "later"} and epoch > 70
    assert [voter.key for voter in voters] == [THREE[0].key]
    assert "May be lost" in out and "Never start the controllers 101, 102 with their old disks" in out
    replaced = own / "__cluster_metadata-0.replaced"
    assert {file.name: file.read_bytes() for file in replaced.iterdir()} == before
    # a crash before the second of the two renames
    (own / "__cluster_metadata-0").rename(own / "__cluster_metadata-0.seed")
    assert majority_lost(heirlog, config, copy)[1] == ""
    assert set(seeded(config)[0].topic_ids) == {"orders", "later"}
    assert "is the log of an earlier recovery" in majority_lost(heirlog, config, copy)[1]


def test_a_broker_or_a_second_controller_that_has_more_than_the_controller_that_is_left_is_copied(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    later = [TopicRecord(name="later", topic_id=b"l" * 16)]
    five = [
        *THREE,
        *(Voter(BrokerId(node), Uuid(bytes([node]) * 16), Endpoint("127.0.0.1", node)) for node in (103, 104)),
    ]
    controller(tmp_path / "controller", THREE[0], records(), voters=five)
    second = controller(tmp_path / "second", THREE[1], records(), later, voters=five)
    out, err = majority_lost(heirlog, config, broker(tmp_path / "b1", [records()]), second)
    assert err == "" and "controllers 102, 103, 104 had committed" in out
    image, _, voters = seeded(config)
    assert set(image.topic_ids) == {"orders", "later"}
    assert [voter.key for voter in voters] == [THREE[0].key]


def test_a_majority_that_is_not_lost_is_not_given_up(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    copy = broker(tmp_path / "b1", [records()])
    assert "no meta.properties" in majority_lost(heirlog, config, copy)[1]
    own = controller(tmp_path / "controller", THREE[0], records())
    second = controller(tmp_path / "second", THREE[1], records())
    assert "controllers 100, 101 are at hand" in majority_lost(heirlog, config, copy, second)[1]
    assert not (own / "__cluster_metadata-0.replaced").exists()
    kept = own / "__cluster_metadata-0"
    kept.rename(tmp_path / "moved")
    assert "holds no metadata log" in majority_lost(heirlog, config, copy)[1]
    (tmp_path / "moved").rename(kept)
    other = broker(tmp_path / "other", [records("else"), records("x")[:1]])
    assert "do not belong to one history" in majority_lost(heirlog, config, other)[1]
    assert kept.exists() and not (own / "__cluster_metadata-0.replaced").exists()


def test_the_only_voter_is_started_and_not_recovered(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    copy = broker(tmp_path / "b1", [records()])
    controller(tmp_path / "controller", THREE[0], records(), voters=THREE[:1])
    assert "no majority is lost" in majority_lost(heirlog, config, copy)[1]


def test_voters_that_the_configuration_named_move_into_the_log_and_out_of_the_configuration(
    heirlog: Heirlog,  # noqa: F811
    config: Path,
    tmp_path: Path,
) -> None:
    """At kraft.version 0 an emptied controller has a vote: two of them could elect a leader without metadata."""
    copy = broker(tmp_path / "b1", [records()], voters=())
    controller(tmp_path / "controller", THREE[0], records(), voters=())
    text = config.read_text()
    static = ",".join(f"{voter.id}@{voter.endpoint}" for voter in THREE)
    config.write_text(
        text.replace("controller.quorum.bootstrap.servers=127.0.0.1:19093", f"controller.quorum.voters={static}")
    )
    for refused in (run(heirlog, config, copy), majority_lost(heirlog, config, copy)[1]):
        assert "Replace it by controller.quorum.bootstrap.servers" in refused
    config.write_text(text)
    out, err = majority_lost(heirlog, config, copy)
    assert err == "" and "Never start the lost controllers" in out
    assert [voter.key for voter in seeded(config)[2]] == [THREE[0].key]
