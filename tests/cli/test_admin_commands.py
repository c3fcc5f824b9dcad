"""Configurations, groups, log directories and deletions against a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Heirlog, rows
from patience import eventually

from heirlog.blocking import Client, CommittedOffset
from heirlog.cli.configs import pairs
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.moments import duration_ms
from heirlog.cli.share_group_offsets import alter_share_offsets
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # (records are of 1970 here: retention would find them)
    config = {"group.initial.rebalance.delay.ms": 0, "log.retention.check.interval.ms": 3_600_000}
    with Cluster(nodes=2, config=config) as running:
        yield running


def topic_with(heirlog: Heirlog, cluster: Cluster, name: str, partitions: int, records: int) -> str:
    assert heirlog("topics", "create", name, "--partitions", str(partitions)).code == 0
    with Client(cluster.bootstrap_servers) as data, data.producer() as producer:
        for partition in range(partitions):
            for number in range(records):
                producer.send(name, partition, encode_batch([(None, b"x", (), 1_000 * (number + 1))]))
    return name


def test_a_topic_s_configuration_is_changed_and_shown(heirlog: Heirlog, cluster: Cluster, tmp_path: Path) -> None:
    topic = topic_with(heirlog, cluster, "configured", 1, 0)
    which = ("--entity-type", "topics", "--entity-name", topic)
    changed = heirlog("configs", "alter", *which, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    assert changed.code == 0, changed.err
    again = heirlog("configs", "alter", "topic", topic, "cleanup.policy=[compact,delete]")
    assert again.code == 0, again.err
    shown = eventually(lambda: rows(heirlog, "configs", "describe", *which))
    assert {row["name"]: row["value"] for row in shown} == {
        "retention.ms": "5000",
        "cleanup.policy": "compact,delete",
    }
    assert {row["source"] for row in shown} == {"topic"}
    file = tmp_path / "topic.properties"
    file.write_text(heirlog("configs", "describe", "topic", topic, "--properties").out)
    assert file.read_text().splitlines() == ["cleanup.policy=compact,delete", "retention.ms=5000"]
    made = heirlog("topics", "create", "alike", "--config-file", str(file), "-c", "retention.ms=7000")
    assert made.code == 0, made.err
    alike = heirlog("configs", "describe", "topic", "alike", "--properties").out
    assert alike == "cleanup.policy=compact,delete\nretention.ms=7000\n"
    assert heirlog("configs", "alter", "topic", "alike", "--add-config-file", str(file)).code == 0
    assert (
        "# ssl.key.password: (sensitive)" in heirlog("configs", "describe", "broker", "1", "--all", "--properties").out
    )
    for wrong in (["topic", topic, "--json"], ["topics"]):
        assert heirlog("configs", "describe", *wrong, "--properties").code == 2
    misspelt = heirlog("configs", "alter", *which, "--delete-config", "retntion.ms")
    assert misspelt.code == 0
    assert misspelt.err == "retntion.ms was not set for topics configured; did you mean retention.ms?\n"
    assert len(rows(heirlog, "configs", "describe", *which, "--all")) > 20
    assert heirlog("configs", "alter", *which, "--delete-config", "retention.ms, cleanup.policy").code == 0
    eventually(lambda: not rows(heirlog, "configs", "describe", *which))
    assert heirlog("configs", "describe", *which).err == "nothing is set; --all also shows the values that apply\n"
    refused = heirlog("configs", "alter", *which, "--add-config", "retention.ms=soon")
    assert refused.code == 1 and "INVALID_CONFIG" in refused.err and refused.err.count("\n") == 1


def test_who_sets_a_configuration_that_is_deprecated_is_told_what_to_set_instead(heirlog: Heirlog) -> None:
    flag = "unclean.leader.election.enable"
    warning = f"heirlog: warning: {flag} is deprecated, set unclean.recovery.strategy instead: true is Aggressive, "
    assert heirlog("topics", "create", "warned", "--config", f"{flag}=false").err.startswith(warning)
    received = heirlog("configs", "alter", "--topic", "warned", "--add-config", f"{flag}=true,retention.ms=5000")
    assert received.code == 0 and received.err.startswith(warning) and received.err.count("\n") == 1
    instead = ("--add-config", "unclean.recovery.strategy=Aggressive", "--delete-config", flag)
    quiet = heirlog("configs", "alter", "--topic", "warned", *instead)
    assert (quiet.code, quiet.err) == (0, "")


def test_a_broker_and_its_loggers(heirlog: Heirlog) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "2")
    assert heirlog("configs", "alter", *broker, "--add-config", "log.level=DEBUG").code == 0
    eventually(lambda: [r for r in rows(heirlog, "configs", "describe", *broker) if r["source"] == "broker"])
    logger = ("--entity-type", "broker-loggers", "--entity-name", "2")

    def levels() -> dict[str, str]:
        return {row["name"]: row["value"] for row in rows(heirlog, "configs", "describe", *logger)}

    eventually(lambda: levels()["root"] == "DEBUG")
    assert heirlog("configs", "alter", *logger, "--add-config", "heirlog.raft=ERROR").code == 0
    assert {"entity": "2", "name": "heirlog.raft", "value": "ERROR", "source": "logger"} in rows(
        heirlog, "configs", "describe", *logger
    )
    assert heirlog("configs", "alter", *broker, "--delete-config", "log.level").code == 0
    for everybody in ("--add-config", "log.level=WARN"), ("--delete-config", "log.level"):
        assert heirlog("configs", "alter", "--entity-type", "brokers", "--entity-default", *everybody).code == 0


def test_a_group_s_configuration_is_changed_and_shown(heirlog: Heirlog) -> None:
    which = ("--entity-type", "groups", "--entity-name", "configured")
    assert heirlog("configs", "alter", *which, "--add-config", "consumer.session.timeout.ms=50000").code == 0
    (shown,) = eventually(lambda: rows(heirlog, "configs", "describe", "--entity-type", "groups"))
    assert shown == {
        "entity": "configured",
        "name": "consumer.session.timeout.ms",
        "value": "50000",
        "source": "group",
    }
    assert heirlog("configs", "alter", *which, "--delete-config", "consumer.session.timeout.ms").code == 0
    eventually(lambda: not rows(heirlog, "configs", "describe", *which))


@pytest.mark.parametrize(
    "wrong",
    [
        ("--entity-type", "topics"),
        ("--entity-type", "topics", "--entity-default", "--add-config", "a=1"),
        ("--entity-type", "brokers", "--entity-name", "one", "--add-config", "a=1"),
        ("--entity-type", "topics", "--entity-name", "t"),
        ("--entity-name", "t", "--add-config", "a=1"),
        ("--topic", "t", "--broker", "1", "--add-config", "a=1"),
        ("--topic", "t", "--entity-type", "topics", "--add-config", "a=1"),
        ("--entity-type", "topics", "--entity-name", "t", "--add-config", "a"),
        ("--entity-type", "topics", "--entity-name", "t", "--add-config", "a=1", "--delete-config", "a"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_misuse(heirlog: Heirlog, wrong: tuple[str, ...]) -> None:
    outcome = heirlog("configs", "alter", *wrong)
    assert outcome.code == 2 and outcome.err.count("\n") == 1


def test_values_with_commas_stand_in_brackets() -> None:
    assert dict(pairs("a=1, b=[x,y],c=")) == {"a": "1", "b": "x,y", "c": ""}
    for wrong in ("a", "=1", "a=[x", "a=[x]y"):
        with pytest.raises(UsageError):
            dict(pairs(wrong))


def test_more_in_sync_replicas_than_there_are_replicas_are_taken_with_a_warning(
    heirlog: Heirlog, cluster: Cluster
) -> None:
    value, replicas = "min.insync.replicas=3", ("--replication-factor", "2")
    warning = "heirlog: warning: min.insync.replicas=3 counts as 2 in topic capped"
    created = heirlog("topics", "create", "capped", *replicas, "--config", value)
    assert (created.code, created.err.startswith(warning)) == (0, True), created.err
    # a broker that does not have the topic yet does not know the number
    eventually(lambda: heirlog("configs", "alter", "topic", "capped", value).err.startswith(warning))
    enough = heirlog("configs", "alter", "topic", "capped", "min.insync.replicas=2")
    assert (enough.code, enough.err) == (0, "")


def test_a_duration_is_written_as_in_iso_8601() -> None:
    assert duration_ms("--by-duration", "P1DT2H3M4S") == ((26 * 60 + 3) * 60 + 4) * 1000
    assert (duration_ms("--by-duration", "P7D"), duration_ms("--by-duration", "pt30s")) == (7 * 24 * 3_600_000, 30_000)
    for wrong in ("", "P", "PT", "1D", "P1H", "PT1D", "P-1D"):
        with pytest.raises(UsageError):
            duration_ms("--by-duration", wrong)


def test_topics_grow(heirlog: Heirlog, cluster: Cluster) -> None:
    topic = topic_with(heirlog, cluster, "growing", 1, 0)
    assert heirlog("topics", "alter", topic, "--partitions", "3").code == 0
    eventually(lambda: len(rows(heirlog, "topics", "describe", topic)) == 3)
    refused = heirlog("topics", "alter", topic, "--partitions", "2")
    assert refused.code == 1 and "INVALID_PARTITIONS" in refused.err


def test_offsets_of_a_group_are_shown_moved_and_deleted(heirlog: Heirlog, cluster: Cluster, tmp_path: Path) -> None:
    topic = topic_with(heirlog, cluster, "read", 2, 10)
    with Client(cluster.bootstrap_servers) as data:
        data.commit("readers", {(topic, 0): CommittedOffset(4), (topic, 1): CommittedOffset(10)})
    shown = rows(heirlog, "groups", "describe", "--group", "readers")
    assert [(row["partition"], row["offset"], row["end_offset"], row["lag"]) for row in shown] == [
        (0, 4, 10, 6),
        (1, 10, 10, 0),
    ]
    assert heirlog("groups", "describe", "readers").out.splitlines()[-1] == "readers: total lag 6"
    assert "readers" in [row["group"] for row in rows(heirlog, "groups", "list")]
    assert rows(heirlog, "groups", "describe", "--group", "readers", "--state")[0]["state"] == "Empty"

    def moved(*how: str) -> list[int]:
        plan = rows(heirlog, "groups", "reset-offsets", "--group", "readers", *how)
        return [row["new_offset"] for row in plan]

    assert moved("--topic", topic, "--to-earliest") == [0, 0]
    assert moved("--topic", f"{topic}:1", "--to-offset", "10") == [10]
    beyond = heirlog("groups", "reset-offsets", "readers", "--topic", f"{topic}:1", "--to-offset", "11")
    assert beyond.code == 1 and "read-1 ends at offset 10, so nothing can continue at 11" in beyond.err
    assert moved("--all-topics", "--shift-by=99") == [10, 10]
    assert moved("--all-topics", "--shift-by=-3") == [1, 7]
    cut = heirlog("groups", "reset-offsets", "readers", topic, "--shift-by=-5")
    assert cut.err == "read-0 begins at offset 0: not -1\n"
    cut = heirlog("groups", "reset-offsets", "readers", f"{topic}:1", "--shift-by=1")
    assert cut.err == "read-1 ends at offset 10: not 11\n"
    assert moved("--topic", topic, "--to-datetime", "1970-01-01T00:00:05") == [4, 4]
    assert moved("--topic", topic, "--to-latest", "--dry-run") == [10, 10]
    assert [row["offset"] for row in rows(heirlog, "groups", "describe", "--group", "readers")] == [4, 10]
    assert moved("--all-topics", "--shift-by=-3", "--execute") == [1, 7]
    assert [row["offset"] for row in rows(heirlog, "groups", "describe", "--group", "readers")] == [1, 7]
    plan = heirlog("groups", "reset-offsets", "readers", "--all-topics", "--to-latest")
    assert plan.out.splitlines()[-1] == "Nothing was changed; --execute commits these offsets."
    exported = heirlog(
        "groups", "reset-offsets", "--group", "readers", "--all-topics", "--by-duration", "PT1H", "--export"
    )
    assert exported.out == "read,0,10\nread,1,10\n", "nothing was written within the last hour"
    (tmp_path / "plan.csv").write_text('"read",1,3\n')
    assert moved("--from-file", str(tmp_path / "plan.csv"), "--execute") == [3]
    forgotten = rows(heirlog, "groups", "delete-offsets", "--group", "readers", "--topic", f"{topic}:0")
    assert forgotten == [{"topic": topic, "partition": 0, "result": "NONE"}]
    again = heirlog("groups", "delete-offsets", "readers", f"{topic}:0")
    assert again.out.splitlines()[-1].split() == [topic, "0", "deleted"]
    (left,) = rows(heirlog, "groups", "describe", "--group", "readers", "--offsets")
    assert (left["partition"], left["offset"]) == (1, 3)

    assert heirlog("groups", "delete", "readers").code == 0
    gone = heirlog("groups", "describe", "--group", "readers", "--state")
    assert gone.code == 1 and "group readers does not exist" in gone.err
    assert heirlog("groups", "delete", "--group", "readers").code == 1


def test_a_share_group_is_shown_moved_and_deleted_by_the_same_commands(heirlog: Heirlog, cluster: Cluster) -> None:
    topic = topic_with(heirlog, cluster, "shared-words", 2, 10)
    with Client(cluster.bootstrap_servers) as client:
        eventually(lambda: _alter(client, {(topic, 0): 0, (topic, 1): 4}))
    assert [row["group"] for row in rows(heirlog, "groups", "list", "--type", "share")] == ["sharing"]
    (state,) = rows(heirlog, "groups", "describe", "sharing", "--state", "--verbose")
    assert (state["type"], state["state"], state["protocol"], state["members"]) == ("share", "Empty", "simple", 0)
    shown = rows(heirlog, "groups", "describe", "sharing")
    assert [(row["partition"], row["offset"], row["end_offset"]) for row in shown] == [(0, 0, 10), (1, 4, 10)]
    heading, _, row, _ = heirlog("groups", "describe", "sharing").out.splitlines()
    assert heading.split() == ["Group", "Topic", "Partition", "StartOffset", "Lag"] and row.split()[3] == "4"
    move = ("groups", "reset-offsets", "sharing", "--topic", topic, "--to-latest")
    assert [row["new_offset"] for row in rows(heirlog, *move)] == [10, 10]
    assert [row["offset"] for row in rows(heirlog, "groups", "describe", "sharing")] == [0, 4], "only with --execute"
    assert heirlog(*move, "--execute").code == 0
    assert [row["offset"] for row in rows(heirlog, "groups", "describe", "sharing")] == [10, 10]
    assert heirlog("groups", "delete-offsets", "sharing", "--topic", f"{topic}:0").code == 2
    forgotten = rows(heirlog, "groups", "delete-offsets", "sharing", "--topic", topic)
    assert forgotten == [{"topic": topic, "partition": None, "result": "NONE"}]
    assert rows(heirlog, "groups", "describe", "sharing") == []
    assert heirlog("groups", "delete", "sharing").code == 0
    assert heirlog("groups", "describe", "sharing").code == 1


def _alter(client: Client, offsets: dict[tuple[str, int], int]) -> bool:
    """Whether it is done: the coordinator's topic may be being created."""
    try:
        alter_share_offsets(client, "sharing", offsets)
    except CommandError:
        return False
    return True


def test_a_group_with_members_keeps_its_offsets(heirlog: Heirlog, cluster: Cluster) -> None:
    from confluent_kafka import Consumer

    topic = topic_with(heirlog, cluster, "busy", 1, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "busy",
            "log_level": 0,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment())
        (member,) = rows(heirlog, "groups", "describe", "--group", "busy", "--members", "--verbose")
        assert (member["client"], member["assignment"]) == ("rdkafka", ["busy:0"])
        (shown,) = rows(heirlog, "groups", "describe", "busy")
        assert (shown["offset"], shown["end_offset"], shown["lag"]) == (None, 1, None), "assigned, and no commit yet"
        assert {key: shown[key] for key in ("member", "host", "client")} == {
            key: member[key] for key in ("member", "host", "client")
        }
        heading, row, total = heirlog("groups", "describe", "busy").out.splitlines()
        assert heading.split()[-3:] == ["Member", "Host", "Client"] and row.split()[-3:] == [
            member["member"],
            member["host"],
            "rdkafka",
        ]
        assert total == "busy: total lag 0; 1 assigned without a committed offset"
        refused = heirlog("groups", "reset-offsets", "--group", "busy", "--topic", topic, "--to-latest", "--execute")
        assert refused.code == 1 and "stop its consumers first" in refused.err
    finally:
        consumer.close()


def test_a_group_of_the_consumer_protocol_is_shown_with_epochs_and_targets(heirlog: Heirlog, cluster: Cluster) -> None:
    from confluent_kafka import Consumer

    topic = topic_with(heirlog, cluster, "assigned", 1, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "newer",
            "group.protocol": "consumer",
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment())
        listed = rows(heirlog, "groups", "list", "--type", "consumer")
        assert [(row["group"], row["type"], row["state"]) for row in listed] == [("newer", "consumer", "Stable")]
        assert "newer" not in [row["group"] for row in rows(heirlog, "groups", "list", "--type", "classic")]
        (member,) = rows(heirlog, "groups", "describe", "newer", "--members", "--verbose")
        assert (member["type"], member["epoch"]) == ("consumer", 1)
        assert member["assignment"] == member["target"] == ["assigned:0"]
        (state,) = rows(heirlog, "groups", "describe", "newer", "--state", "--verbose")
        assert (state["group_epoch"], state["assignment_epoch"], state["protocol"]) == (1, 1, "uniform")
        assert "GroupEpoch" in heirlog("groups", "describe", "newer", "--state", "--verbose").out
        assert state["coordinator"] in (1, 2, 3)
        heading, row = heirlog("groups", "describe", "newer", "--members").out.splitlines()
        assert heading.split()[3:] == ["Host", "Client", "Partitions"] and row.split()[-2:] == ["rdkafka", "1"]
        (shown,) = rows(heirlog, "groups", "describe", "newer")
        assert (shown["topic"], shown["offset"]) == ("assigned", None)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--to-latest",),
        ("other", "--to-latest", "--all-topics"),
        ("--to-latest", "--to-earliest", "--all-topics"),
        ("--by-duration", "1h", "--all-topics"),
        ("--by-duration", "PT", "--all-topics"),
        ("--from-file", "plan.csv", "--all-topics"),
    ],
)
def test_a_reset_has_one_aim_and_something_to_move(heirlog: Heirlog, wrong: tuple[str, ...]) -> None:
    assert heirlog("groups", "reset-offsets", "--group", "g", *wrong).code == 2


def test_topics_of_a_group_are_arguments_after_it(heirlog: Heirlog, cluster: Cluster) -> None:
    topic = topic_with(heirlog, cluster, "in-words", 2, 3)
    moved = ("groups", "reset-offsets", "in-words-group", f"{topic}:1", "--to-latest", "--execute")
    assert [(row["partition"], row["new_offset"]) for row in rows(heirlog, *moved)] == [(1, 3)]
    # with --group, what would be the group is a topic
    again = rows(heirlog, "groups", "reset-offsets", "--group", "in-words-group", topic, "--to-earliest", "--execute")
    assert [row["new_offset"] for row in again] == [0, 0]
    gone = rows(heirlog, "groups", "delete-offsets", "in-words-group", f"{topic}:0")
    assert gone == [{"topic": topic, "partition": 0, "result": "NONE"}]


def test_log_directories_and_deleted_records(heirlog: Heirlog, cluster: Cluster, tmp_path: Path) -> None:
    topic = topic_with(heirlog, cluster, "shortened", 2, 5)
    dirs = eventually(lambda: rows(heirlog, "log-dirs", "--topic-list", topic))
    assert {(row["broker"], row["partition"]) for row in dirs} == {(b, p) for b in (1, 2) for p in (0, 1)}
    assert all(row["size_bytes"] > 0 and row["error"] == "NONE" for row in dirs if row["broker"] == dirs[0]["broker"])
    assert rows(heirlog, "log-dirs", "--broker-list", "2", "--topic-list", topic)[0]["broker"] == 2
    deleted = rows(heirlog, "delete-records", "--topic", topic, "--partition", "0", "--offset", "3")
    assert deleted == [{"topic": topic, "partition": 0, "low_watermark": 3, "error": "NONE"}]
    plan = tmp_path / "offsets.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1, "offset": -1}], "version": 1}))
    assert rows(heirlog, "delete-records", "--offset-json-file", str(plan))[0]["low_watermark"] == 5
    assert heirlog("delete-records", "--topic", topic, "--partition", "0", "--offset", "99").code == 1
    assert heirlog("delete-records", "--topic", topic).code == 2
