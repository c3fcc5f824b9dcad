"""What groups of options name together, before a cluster is asked. Those of `heirlog acls` are in test_acls.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Heirlog

from heirlog.cli.configs import Entity, EntityOptions, EntityType
from heirlog.cli.elect import PartitionOptions
from heirlog.cli.elections import ElectionType
from heirlog.cli.errors import UsageError
from heirlog.cli.partition_filters import Filter
from heirlog.cli.reassign import Proposal
from heirlog.cli.reset_offsets import Target
from heirlog.cli.topics import Filters

ASSIGNMENT = ("--reassignment-json-file", "/nowhere.json")


def test_an_entity_is_named_at_length_or_short() -> None:
    assert EntityOptions(kind=EntityType.TOPICS, name="t").entity == EntityOptions(topic="t").entity
    assert EntityOptions(broker_logger="1").entity == Entity(EntityType.BROKER_LOGGERS, "1", False)
    assert EntityOptions(word="topic", word_name="t").entity == EntityOptions(topic="t").entity
    assert EntityOptions(word="brokers").entity == Entity(EntityType.BROKERS, None, False)
    assert EntityOptions(word="broker-defaults").entity == EntityOptions(broker_defaults=True).entity
    by_default = EntityOptions(kind=EntityType.BROKERS, default=True).entity
    assert by_default == EntityOptions(broker_defaults=True).entity == Entity(EntityType.BROKERS, None, True)


def test_no_filter_shows_all_partitions_and_two_exclude_each_other() -> None:
    assert Filters().chosen is None
    assert Filters(at_min_isr=True).chosen is Filter.AT_MIN_ISR
    with pytest.raises(UsageError, match="--unavailable-partitions and --at-min-isr-partitions exclude each other"):
        _ = Filters(unavailable=True, at_min_isr=True).chosen


def test_partitions_of_an_election_are_one_or_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": "t", "partition": 0, "desiredLeader": 2}]}))
    by_name = PartitionOptions(topic="t", partition=1)
    assert by_name.given(ElectionType.UNCLEAN) == {("t", 1): 0}
    designated = PartitionOptions(topic="t", partition=1, desired_leader=3)
    assert designated.given(ElectionType.DESIGNATION) == {("t", 1): 3}
    by_file = PartitionOptions(path_to_json_file=file)
    assert by_file.given(ElectionType.PREFERRED) == {("t", 0): 0}
    assert by_file.given(ElectionType.DESIGNATION) == {("t", 0): 2}


def test_a_target_is_one_option_even_if_its_value_is_0() -> None:
    Target(to_earliest=True).check()
    Target(to_offset=0).check()
    Target(shift_by=0).check()
    for wrong in (Target(), Target(to_earliest=True, to_latest=True), Target(to_latest=True, to_offset=0)):
        with pytest.raises(UsageError, match="choose a target"):
            wrong.check()


def test_a_target_in_time_is_a_date_or_a_duration_before_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heirlog.cli.reset_offsets.time.time", lambda: 10_000.0)
    assert Target(to_offset=5).when_ms() is None
    assert Target(to_datetime="1970-01-01T00:00:01").when_ms() == 1_000
    assert Target(by_duration="PT1H").when_ms() == 6_400_000


def test_a_proposal_names_topics_and_brokers(tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"topics": [{"topic": "t"}], "version": 1}))
    assert Proposal(file, "1, 2").topics_and_brokers() == (["t"], [1, 2])
    for brokers, sentence in (("1,x", "not a list of broker ids"), ("1,1", "names a broker twice")):
        with pytest.raises(UsageError, match=sentence):
            Proposal(file, brokers).topics_and_brokers()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["configs", "describe"], "name one entity"),
        (["configs", "describe", "--topic", "t", "--broker", "1"], "name one entity"),
        (["configs", "alter", "--entity-name", "t", "--delete-config", "a"], "need an --entity-type"),
        (["elect", "--election-type", "preferred", "--topic", "t"], "go together"),
        (["elect", "--election-type", "preferred", "--topic", "t", "--all-topic-partitions"], "name partitions by"),
        (["elect", "--election-type", "designation", "--topic", "t", "--partition", "0"], "needs --desired-leader"),
        (["elect", "--election-type", "designation", "--all-topic-partitions"], "a designation names a leader"),
        (["elect", "--election-type", "unclean", "--topic", "t", "--partition", "0", "--desired-leader", "1"], "needs"),
        (["reassign", *ASSIGNMENT], "choose an action"),
        (["reassign", "--execute", "--verify", *ASSIGNMENT], "choose an action"),
        (["reassign", "--generate"], "--generate needs"),
        (["reassign", "--cancel"], "--reassignment-json-file"),
        (["groups", "reset-offsets", "--group", "g", "--topic", "t"], "choose a target"),
        (["groups", "reset-offsets", "--group", "g", "--to-latest"], "name the topics"),
        (["groups", "reset-offsets", "--group", "g", "--all-topics", "--by-duration", "1h"], "PnDTnHnMnS"),
    ],
)
def test_misuse_is_refused_before_a_cluster_is_asked(heirlog: Heirlog, arguments: list[str], sentence: str) -> None:
    outcome = heirlog(*arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
