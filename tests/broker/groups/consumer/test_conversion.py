"""Classic and consumer groups become each other, empty and with members (ConsumerProtocolMigrationTest of Kafka)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.regular_expressions import REFRESH_MIN_MS
from heirlog.broker.groups.group import ClassicGroup, GroupState
from heirlog.protocol.consumer_protocol import assignment, read_assignment, read_subscription
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

from ...fakes import answer_of, context
from .coordinating import OFFSETS, REBALANCE_MS, SESSION_MS, Consumer, Coordinating

COOPERATIVE, EAGER = 1, 0


def subscription(owned: dict[str, list[int]], version: int, rack: str | None = None) -> bytes:
    topics = struct.pack(">i", 1) + struct.pack(">h3s", 3, b"foo") + struct.pack(">i", -1)
    if version == EAGER:
        return struct.pack(">h", EAGER) + topics
    held = struct.pack(">i", len(owned)) + b"".join(
        struct.pack(f">h{len(name)}si{len(numbers)}i", len(name), name.encode(), len(numbers), *numbers)
        for name, numbers in owned.items()
    )
    racks = struct.pack(">ih", 7, -1) if rack is None else struct.pack(f">ih{len(rack)}s", 7, len(rack), rack.encode())
    return struct.pack(">h", 3) + topics + held + racks


class Classic:
    """A consumer of the classic protocol."""

    def __init__(self, rig: Coordinating, name: str, kind: int = EAGER, instance: str | None = None) -> None:
        self.rig, self.id, self.kind, self.instance = rig, name, kind, instance
        self.generation = -1
        self.owned: dict[str, list[int]] = {}
        self.waiting: Any = None

    def join(self, version: int = 9, **more: Any) -> str:
        data = subscription(self.owned, self.kind)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=more.pop("member_id", self.id),
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=data)],
            **more,
        )
        self.waiting = self.rig.broker.groups.join_group(request, context(version))
        return self.joined()

    def joined(self) -> str:
        answer = answer_of(self.waiting)
        if answer is None:
            return "waits"
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            return self.join()
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        self.id, self.generation = answer.member_id, answer.generation_id
        return f"generation {answer.generation_id}"

    def sync(self, **parts: dict[str, list[int]]) -> str:
        Part = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[Part(member_id=m, assignment=assignment(given)) for m, given in parts.items()],
        )
        answer = answer_of(self.rig.broker.groups.sync_group(request, context(5)))
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        self.owned, _ = read_assignment(answer.assignment)
        return ",".join(map(str, self.owned.get("foo", [])))

    def beat(self) -> str:
        request = HeartbeatRequest(
            group_id="g", generation_id=self.generation, member_id=self.id, group_instance_id=self.instance
        )
        return ErrorCode(answer_of(self.rig.broker.groups.heartbeat(request, context(4))).error_code).name

    def leave(self) -> str:
        Leaving = LeaveGroupRequest.MemberIdentity
        request = LeaveGroupRequest(group_id="g", members=[Leaving(member_id=self.id, group_instance_id=self.instance)])
        answer = answer_of(self.rig.broker.groups.leave_group(request, context(5)))
        return ErrorCode(answer.error_code or answer.members[0].error_code).name


def known(rig: Coordinating) -> Any:
    shard = rig.broker.groups.shard_of("g")
    assert not isinstance(shard, ErrorCode)
    return shard.groups["g"]


def two_classic(rig: Coordinating, kind: int = EAGER) -> tuple[Classic, Classic]:
    """A stable classic group: a has 0 to 2, b has 3 to 5."""
    a, b = Classic(rig, "", kind), Classic(rig, "", kind)
    a.join()
    rig.env.advance(1)
    a.joined()
    b.join()
    assert a.beat() == "REBALANCE_IN_PROGRESS"
    a.join()
    rig.env.advance(1)
    a.joined(), b.joined()
    assert a.sync(**{a.id: {"foo": [0, 1, 2]}, b.id: {"foo": [3, 4, 5]}}) == "0,1,2" and b.sync() == "3,4,5", "a leads"
    return a, b


@pytest.fixture
def rig() -> Coordinating:
    return Coordinating()


def test_two_eager_members_are_replaced_one_by_one_and_partitions_stay(rig: Coordinating) -> None:
    a, b = two_classic(rig)
    generation = a.generation
    c = Consumer(rig, "c")
    assert c.join() == f"{generation + 1}", "all partitions are with a and b"
    state = rig.group().state
    assert (state.currents[a.id].epoch, state.currents[b.id].epoch) == (generation, generation)
    assert rig.commit(Consumer(rig, a.id), 5, epoch=generation, version=8) == "NONE", "a notices nothing yet"
    assert a.beat() == b.beat() == "REBALANCE_IN_PROGRESS"
    # an eager member has given up all, and gets its new part with one JoinGroup
    a.owned = {}
    assert a.join() == f"generation {generation + 1}" and a.sync() == "0,1"
    assert b.join() == f"generation {generation + 1}" and b.sync() == "3,4"
    assert c.beat() == f"{generation + 1} foo:2,5"
    assert a.beat() == b.beat() == "NONE"
    rig.lead(6)
    assert a.beat() == "NONE" and c.beat() == f"{generation + 1} foo:2,5", "the next coordinator knows it all"
    assert a.leave() == "NONE" and b.leave() == "NONE"
    assert c.beat() == f"{generation + 3} foo:0,1,2,3,4,5"


def test_a_cooperative_member_gives_up_first_and_joins_again(rig: Coordinating) -> None:
    a, b = two_classic(rig, COOPERATIVE)
    generation = a.generation
    c = Consumer(rig, "c")
    c.join()
    assert a.beat() == "REBALANCE_IN_PROGRESS"
    assert a.join() == f"generation {generation}", "it must give up 2 first"
    assert a.sync() == "0,1"
    assert a.beat() == "REBALANCE_IN_PROGRESS"
    assert c.beat() == f"{generation + 1}"
    assert a.join() == f"generation {generation + 1}" and a.sync() == "0,1" and a.beat() == "NONE"
    assert c.beat() == f"{generation + 1} foo:2"
    assert b.join() == f"generation {generation}" and b.sync() == "3,4"
    assert b.join() == f"generation {generation + 1}" and b.sync() == "3,4"
    assert c.beat() == f"{generation + 1} foo:2,5"


@pytest.mark.parametrize("policy", ["disabled", "downgrade", "DOWNGRADE"])
def test_an_upgrade_that_the_policy_forbids_changes_nothing(policy: str) -> None:
    rig = Coordinating(group_consumer_migration_policy=policy)
    a, _ = two_classic(rig)
    end = rig.log_end()
    assert Consumer(rig, "c").join() == "GROUP_ID_NOT_FOUND"
    assert a.beat() == "NONE" and rig.log_end() == end and isinstance(known(rig), ClassicGroup)


def test_an_assignment_of_a_custom_assignor_is_not_taken_over(rig: Coordinating) -> None:
    a, b = two_classic(rig)
    member = known(rig).members[b.id]
    for data in (member.assignment[:-4] + struct.pack(">i1s", 1, b"x"), b"\0\0\0\0\0\1junk"):
        known(rig).assign(member, data)
        assert Consumer(rig, "c").join() == "GROUP_ID_NOT_FOUND"
    assert a.beat() == b.beat() == "NONE"
    refused = Coordinating(group_consumer_max_size="1")
    two_classic(refused)
    assert Consumer(refused, "c").join() == "GROUP_ID_NOT_FOUND"


def test_members_that_wait_for_a_rebalance_join_again(rig: Coordinating) -> None:
    two_classic(rig)
    late = Classic(rig, "")
    assert late.join() == "waits"
    assert Consumer(rig, "c").join() == "3"
    assert late.joined() == "REBALANCE_IN_PROGRESS"
    assert late.join().startswith("generation"), "any id is taken"


@pytest.mark.parametrize("after_failover", [False, True])
def test_the_group_becomes_classic_when_the_last_consumer_member_goes(rig: Coordinating, after_failover: bool) -> None:
    a, b = two_classic(rig)
    c = Consumer(rig, "c")
    c.join()
    for member in (a, b):
        member.beat()
        member.owned = {}
        member.join()
        member.sync()
    c.beat()
    epoch = known(rig).state.epoch
    assert rig.commit(c, 7) == "NONE"
    if after_failover:
        rig.lead(6)
        assert c.beat() == f"{epoch} foo:2,5"
    assert c.beat(member_epoch=-1).startswith("-1")
    classic = known(rig)
    assert isinstance(classic, ClassicGroup) and classic.generation == epoch
    assert classic.state is GroupState.PREPARING_REBALANCE and rig.committed() == 7
    if after_failover:
        rig.lead(8)
        assert known(rig).state is GroupState.STABLE, "the record has the assignments"
        assert a.beat() == "NONE"
        return
    assert a.beat() == "REBALANCE_IN_PROGRESS"
    a.join()
    assert b.join() == a.joined() == f"generation {epoch + 1}"


def test_after_an_upgrade_only_the_consumer_group_is_counted(rig: Coordinating) -> None:
    two_classic(rig)
    Consumer(rig, "c").join()
    rig.lead(6)
    (shard,) = rig.broker.groups.shards()
    assert shard.memory_use.bytes == known(rig).state.members_bytes


def test_a_classic_member_that_joins_resolves_no_regular_expression(rig: Coordinating) -> None:
    """It was not asked which topics it may describe."""
    c = Consumer(rig, "c", subscribed_topic_names=None, subscribed_topic_regex=".*")
    c.join()
    rig.env.advance(10)
    rig.set_topic("bar", 1)
    rig.publish()
    rig.env.advance(REFRESH_MIN_MS + 1)
    Classic(rig, "a").join()
    rig.env.advance(10)
    assert "bar" not in known(rig).state.regexes[".*"].topics
    c.beat()
    rig.env.advance(10)
    assert "bar" in known(rig).state.regexes[".*"].topics


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_without_a_downgrade_the_classic_members_stay_in_a_consumer_group(policy: str) -> None:
    rig = Coordinating(group_consumer_migration_policy=policy)
    c, a = Consumer(rig, "c"), Classic(rig, "a")
    c.join()
    assert a.join() == "generation 2"
    c.beat(member_epoch=-1)
    assert isinstance(known(rig), ConsumerGroup)
    assert a.beat() == "REBALANCE_IN_PROGRESS"
    assert a.join() == "generation 3" and a.sync() == "0,1,2,3,4,5"


def test_a_group_that_is_too_large_for_a_classic_one_stays_a_consumer_group(rig: Coordinating) -> None:
    c, a, b = Consumer(rig, "c"), Classic(rig, "a"), Classic(rig, "b")
    c.join()
    a.join()
    b.join()
    rig.set_config("max.message.bytes", "400", OFFSETS)
    rig.publish()
    assert c.beat(member_epoch=-1).startswith("-1")
    group = known(rig)
    assert isinstance(group, ConsumerGroup) and set(group.committed.members) == {"a", "b"}


def test_a_silent_consumer_member_turns_the_group_classic_too(rig: Coordinating) -> None:
    c, a = Consumer(rig, "c"), Classic(rig, "a")
    c.join()
    a.join()
    rig.env.advance(SESSION_MS - 10)
    a.beat()
    rig.env.advance(20)
    assert isinstance(known(rig), ClassicGroup) and list(known(rig).members) == ["a"]


def test_a_static_member_changes_its_protocol_both_ways(rig: Coordinating) -> None:
    """G14: its partitions wait for it."""
    c = Consumer(rig, "c", "i1")
    other = Consumer(rig, "o")
    c.join()
    other.join()
    c.beat()
    c.beat(owns=True)
    other.beat()
    a = Classic(rig, "", instance="i1")
    assert a.join() == "generation 2" and a.sync() == "0,1,2"
    assert c.beat() == "FENCED_INSTANCE_ID"
    back = Consumer(rig, "c2", "i1")
    assert back.join() == "2 foo:0,1,2"
    assert a.beat() == "FENCED_INSTANCE_ID" and a.sync() == "FENCED_INSTANCE_ID"
    # the last member of the consumer protocol is replaced
    other.beat(member_epoch=-1)
    back.beat()
    last = Classic(rig, "", instance="i1")
    assert last.join() == "generation 3" and isinstance(known(rig), ClassicGroup)
    assert last.sync() == "REBALANCE_IN_PROGRESS"
    last.join()
    rig.env.advance(1)
    assert last.joined() == "generation 4" and list(known(rig).static_members) == ["i1"]


def test_what_older_versions_cannot_say_stays_as_it_was(rig: Coordinating) -> None:
    c = Consumer(rig, "c", "i1", rack_id="r")
    c.join()
    Consumer(rig, "o").join()
    a = Classic(rig, "", instance="i1")
    a.join()
    assert known(rig).state.members[a.id].rack_id == "r", "version 0 of a subscription has no rack"
    a.instance = None
    a.join(version=4)
    member = known(rig).state.members[a.id]
    assert (member.instance_id, member.rack_id) == ("i1", "r"), "JoinGroup 4 has no instance id"


def test_a_classic_member_that_does_not_join_again_in_time_is_removed(rig: Coordinating) -> None:
    c, a = Consumer(rig, "c"), Classic(rig, "a")
    c.join()
    a.join()
    a.sync()
    Consumer(rig, "d").join()
    for _ in range(5):
        rig.env.advance(REBALANCE_MS // 4 - 1)
        c.beat(owns=True)
        a.beat()
    assert "a" in known(rig).state.members
    rig.env.advance(10)
    assert "a" not in known(rig).state.members
    assert a.beat() == a.sync() == "UNKNOWN_MEMBER_ID"


def test_what_a_classic_member_must_not_do_in_a_consumer_group(rig: Coordinating) -> None:
    c, a = Consumer(rig, "c"), Classic(rig, "a")
    c.join()
    assert a.join(member_id="", version=9) == "generation 2", "it joins with the id that it gets"
    a.generation = 1
    assert a.beat() == a.sync() == "ILLEGAL_GENERATION"
    stale = Consumer(rig, a.id)
    stale.epoch = 1
    assert rig.commit(stale, 1) == rig.committed(stale) == "ILLEGAL_GENERATION"
    stale.epoch = 2
    assert rig.committed(stale) == -1
    other = Classic(rig, "x")
    assert other.beat() == other.leave() == "UNKNOWN_MEMBER_ID"
    stranger = Classic(rig, "c")
    stranger.generation = c.epoch
    assert stranger.beat() == "UNKNOWN_MEMBER_ID", "a member of the consumer protocol sends no Heartbeat"
    other_protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="other", metadata=subscription({}, EAGER))
    for member_id, protocols in (("y", [other_protocol]), (a.id, [other_protocol]), (a.id, [])):
        request = JoinGroupRequest(
            group_id="g",
            member_id=member_id,
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=protocols,
        )
        answer = answer_of(rig.broker.groups.join_group(request, context(9)))
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert not answer.member_id, "only a classic group repeats the id in an error"
    nameless = JoinGroupRequest.JoinGroupRequestProtocol(name="", metadata=subscription({}, EAGER))
    a.leave()
    for version, shown in ((6, ""), (7, None)):
        request = JoinGroupRequest(
            group_id="g",
            member_id=f"n{version}",
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[nameless],
        )
        answer = answer_of(rig.broker.groups.join_group(request, context(version)))
        assert (answer.error_code, answer.protocol_name) == (ErrorCode.NONE, shown)


@pytest.mark.parametrize("policy", ["disabled", "bidirectional"])
def test_an_empty_group_changes_its_protocol_under_every_policy_and_keeps_its_offsets(policy: str) -> None:
    rig = Coordinating(group_consumer_migration_policy=policy)
    a, b = two_classic(rig)
    a.leave(), b.leave()
    c = Consumer(rig, "c")
    assert rig.commit(c, 5, epoch=-1) == "NONE"
    assert c.join() == "1 foo:0,1,2,3,4,5" and rig.committed() == 5
    rig.lead(6)
    assert isinstance(known(rig), ConsumerGroup) and rig.committed() == 5
    c.beat(member_epoch=-1)
    again = Classic(rig, "")
    again.join()
    rig.env.advance(1)
    assert again.joined() == "generation 1"
    assert again.sync(**{again.id: {"foo": [1]}}) == "1" and rig.committed() == 5
    rig.lead(7)
    assert isinstance(known(rig), ClassicGroup) and again.beat() == "NONE" and rig.committed() == 5


def test_subscriptions_are_read_in_all_versions() -> None:
    owned = {"foo": [1, 2], "bar": []}
    assert read_subscription(subscription(owned, EAGER)).owned == {}
    says = read_subscription(subscription(owned, COOPERATIVE, "rack"))
    assert (says.topics, says.owned, says.rack_id) == ({"foo"}, owned, "rack")
    for data in (b"", b"\0\3\0\0\0\0", subscription(owned, COOPERATIVE)[:-3]):
        with pytest.raises(ValueError, match=r"subscription|data|length"):
            read_subscription(data)
