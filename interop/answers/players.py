"""The three nodes, one request put to all of them, and what each calls what is in the answers."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from answers.shape import Plan, differences, kind_of, normal, request_of
from answers.wire import ACCEPTED, NO_ANSWER, PATIENCE_S, WAITING, Server
from answers.world import World
from heirlog.protocol.api import request_class

PRODUCE, FETCH, METADATA, JOIN, SYNC, INIT_PRODUCER = 0, 1, 3, 11, 14, 22
CREATE_TOPICS, CREATE_ACLS, DESCRIBE_ACLS, API_VERSIONS, DESCRIBE_LOG_DIRS = 19, 30, 29, 18, 35
END_TXN, WRITE_TXN_MARKERS, LIST_TRANSACTIONS, UPDATE_FEATURES = 26, 27, 66, 57
TRANSACTION_VERSION, TRANSACTION_VERSION_OF_NEW_CLUSTERS = "transaction.version", 2
UPGRADE, SAFE_DOWNGRADE = 1, 2
"""Types of change of a feature's level."""
OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS = 9, 15, 16, 42
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
SHARES, SHARE_FETCH = (76, 77), 78
DESCRIBE_SHARE_GROUP_OFFSETS = 90
MEMBER_ID_REQUIRED = 79
HEIRLOG = "heirlog"
MAY_WAIT = (JOIN, SYNC)
"""For other members of a group."""
LATE_S = 0.04
"""By then a member's answer comes, if it waits for nobody."""
ANSWERED_S = 10.0
PARTITIONS_MAX = 3
"""Of a topic of a sequence."""
MARKERS_S = 0.2
"""By then markers are written that no partition refuses."""
COMPLETE_S = 5.0
"""Within this time a node of Apache Kafka completes a transaction, or the sequence continues with other names."""
GRACE_S = 3.0
"""Within this time a node answers what another has answered."""
OF_A_SEQUENCE = re.compile(r"s\d+(r\d+)?-")
MARK = "User:mark"
"""Of the ACLs by which the nodes are seen to have taken in what was changed."""


@dataclass
class Player:
    name: str
    server: Server
    world: World = field(default_factory=World)
    sequence: str = ""
    """Begins the names of the sequence's transactional ids."""
    superseded: set[str] = field(default_factory=set)
    """Sequences with a marker of a higher coordinator epoch: some partition may refuse those of the real one."""
    _given_up: set[str] = field(default_factory=set)

    def send(self, plan: Plan) -> None:
        if plan.key == WRITE_TXN_MARKERS and any(marker["coordinator_epoch"] > 0 for marker in plan.fields["markers"]):
            self.superseded.add(self.sequence)
        connection = self.server.connection(plan.client, plan.controller)
        is_answered = plan.key != PRODUCE or plan.fields["acks"] != 0
        connection.send(request_of(plan, self.world), plan.version, answered=is_answered)
        if not is_answered:
            # the next answer shows whether this one closed the connection
            connection.send(request_class(API_VERSIONS)(), 0)

    def receive(self, plan: Plan, within_s: float) -> Any:
        """The answer in a comparable form, WAITING or CLOSED."""
        answer = self.server.connection(plan.client, plan.controller).receive(within_s)
        if isinstance(answer, str):
            return answer
        if plan.key == PRODUCE and plan.fields["acks"] == 0:
            return ACCEPTED
        self._learn(plan, answer)
        if plan.key == LIST_TRANSACTIONS:
            answer.transaction_states = [
                state for state in answer.transaction_states if state.transactional_id.startswith(self.sequence)
            ]
        comparable = _without_marks(normal(answer, self.world))
        if plan.key == LIST_GROUPS:
            # one with a member that has not joined yet outlives its sequence on Apache Kafka
            comparable["groups"] = [
                group
                for group in comparable["groups"]
                if not OF_A_SEQUENCE.match(group["group_id"]) or group["group_id"].startswith(f"{self.sequence}-")
            ]
        if plan.key in SHARES:
            return _without_numbers(comparable)
        if plan.key == SHARE_FETCH:
            return _without_empty_partitions(comparable)
        return _without_internal_topics(comparable) if plan.key == DESCRIBE_LOG_DIRS else comparable

    def _learn(self, plan: Plan, answer: Any) -> None:
        if plan.key == CREATE_TOPICS:
            for topic in answer.topics:
                self.world.learn_topic(topic.name, topic.topic_id)
        elif plan.key == JOIN and answer.error_code in (0, MEMBER_ID_REQUIRED):
            self.world.learn_member(plan.keeps, answer.member_id)
        elif (plan.key == INIT_PRODUCER and not answer.error_code) or (plan.key == END_TXN and answer.producer_id >= 0):
            self.world.learn_producer(plan.keeps, answer.producer_id, answer.producer_epoch)
        elif plan.key == FETCH and answer.session_id:
            self.world.sessions[plan.client] = answer.session_id
            self.world.names["session", answer.session_id] = f"session of {plan.client}"

    def mark(self, number: int) -> None:
        """Waits until the broker has taken in what the controller has answered."""
        host = str(number)
        ours = {"resource_type": 3, "resource_name": "mark", "resource_pattern_type": 3, "principal": MARK}
        acls = {"creations": [ours | {"host": host, "operation": 3, "permission_type": 3}]}
        self.server.ask(request_of(Plan(CREATE_ACLS, 3, acls), self.world))
        wanted = {"resource_type_filter": 3, "pattern_type_filter": 3, "operation": 1, "permission_type": 1}
        asked = Plan(DESCRIBE_ACLS, 3, wanted | {"principal_filter": MARK, "host_filter": host})
        deadline = time.monotonic() + PATIENCE_S
        while not self.server.ask(request_of(asked, self.world)).resources:
            assert time.monotonic() < deadline, f"{self.name} does not follow its controller"
            time.sleep(0.002)

    def set_transaction_version(self, level: int, upgrade_type: int) -> None:
        update = {"feature": TRANSACTION_VERSION, "max_version_level": level, "upgrade_type": upgrade_type}
        answer = self.server.ask(request_of(Plan(UPDATE_FEATURES, 1, {"feature_updates": [update]}), self.world), 1)
        assert not answer.error_code and not any(each.error_code for each in answer.results), answer

    def is_open(self, transactional_id: str) -> bool:
        """Whether it has a transaction that is not complete."""
        asked = Plan(LIST_TRANSACTIONS, 1, {"state_filters": ["Ongoing", "PrepareAbort"]})
        states = self.server.ask(request_of(asked, self.world), 1).transaction_states
        return any(each.transactional_id == transactional_id for each in states)

    def undecided(self) -> set[str]:
        """Transactional ids of the sequence with markers to write. Some may never be written: `give_up`."""
        asked = Plan(LIST_TRANSACTIONS, 1, {"state_filters": ["PrepareCommit", "PrepareAbort"]})
        states = self.server.ask(request_of(asked, self.world), 1).transaction_states
        ids = {each.transactional_id for each in states if each.transactional_id.startswith(f"{self.sequence}-")}
        return ids - self._given_up

    def give_up(self, ids: set[str]) -> None:
        """Wait for their markers no more."""
        self._given_up |= ids

    def member_epochs(self, group: str) -> Any:
        asked = Plan(CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group]})
        answer = self.server.ask(request_of(asked, self.world), 1)
        return [(each.group_epoch, each.assignment_epoch, each.error_code) for each in answer.groups]

    def shared_topics(self, group: str) -> set[str]:
        """Those for which the share group has a state."""
        asked = Plan(DESCRIBE_SHARE_GROUP_OFFSETS, 0, {"groups": [{"group_id": group, "topics": None}]})
        (answer,) = self.server.ask(request_of(asked, self.world), 0).groups
        return {topic.topic_name for topic in answer.topics}

    def learn_topics(self) -> None:
        answer = self.server.ask(request_class(METADATA)(topics=None))
        for topic in answer.topics:
            self.world.learn_topic(topic.name, topic.topic_id)


def _without_marks(answer: Any) -> Any:
    """Without the ACLs of `mark`."""
    if isinstance(answer, dict):
        return {name: _without_marks(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [
            _without_marks(item)
            for item in answer
            if not (isinstance(item, dict) and (item.get("principal") == MARK or item.get("resource_name") == "mark"))
        ]
    return answer


def _without_internal_topics(answer: Any) -> Any:
    """What a coordinator has written is its own."""
    for directory in answer["results"]:
        directory["topics"] = [topic for topic in directory["topics"] if not topic["name"].startswith("__")]
    return answer


def _without_empty_partitions(answer: Any) -> Any:
    """Without those that have neither records nor an error: whether they are named says nothing to a client."""
    for topic in answer["responses"]:
        topic["partitions"] = [
            part
            for part in topic["partitions"]
            if part["error_code"] or part["acknowledge_error_code"] or part["acquired_records"]
        ]
    answer["responses"] = [topic for topic in answer["responses"] if topic["partitions"]]
    return answer


def _until(deadline: float) -> float:
    """Seconds; long enough for an answer that has arrived already."""
    return max(LATE_S, deadline - time.monotonic())


def _without_numbers(answer: Any) -> Any:
    """Whether a member of a share group has partitions: Java's hash tables decide which ones, and who has one more."""
    if isinstance(answer, dict):
        return {
            name: bool(value) if name == "partitions" else _without_numbers(value) for name, value in answer.items()
        }
    return [_without_numbers(item) for item in answer] if isinstance(answer, list) else answer


@dataclass(frozen=True)
class Difference:
    plan: Plan
    path: str
    theirs: Any
    ours: Any
    answer: Any = None
    """Apache Kafka's whole."""
    our_answer: Any = None
    """heirlog's whole."""


class Table:
    """Apache Kafka, its control, and heirlog, who are all asked the same."""

    def __init__(self, kafka: Player, control: Player, heirlog: Player) -> None:
        self.kafka, self.control, self.heirlog = kafka, control, heirlog
        self.players = (kafka, control, heirlog)
        self.noise = 0
        """Differences between the two nodes of Apache Kafka."""
        self.noisy: Counter[str] = Counter()
        """The same by field."""
        self.answers = 0
        self.played: Counter[str] = Counter()
        """What sequences of transactions did that not every one does."""
        self._marks = 0
        self.transaction_version = TRANSACTION_VERSION_OF_NEW_CLUSTERS

    def ask(self, plan: Plan) -> tuple[Any, list[Difference]]:
        """Apache Kafka's answer, or WAITING, and where heirlog's differs."""
        (received,) = self.ask_at_once([plan])
        return received

    def ask_at_once(self, plans: Sequence[Plan]) -> list[tuple[Any, list[Difference]]]:
        """`ask` for requests of one client that do not wait for each other's answers."""
        for player in self.players:
            for plan in plans:
                player.send(plan)
        return [self.receive(plan) for plan in plans]

    def receive(self, plan: Plan) -> tuple[Any, list[Difference]]:
        """`receive` may be repeated after WAITING."""
        deadline = time.monotonic() + (LATE_S if plan.key in MAY_WAIT else ANSWERED_S)
        found = {player.name: player.receive(plan, _until(deadline)) for player in self.players}
        if all(answer is WAITING for answer in found.values()):
            return WAITING, []
        deadline = time.monotonic() + GRACE_S
        for player in self.players:
            if found[player.name] is WAITING:
                found[player.name] = player.receive(plan, _until(deadline))
            if found[player.name] is WAITING:
                found[player.name] = NO_ANSWER
                player.server.connection(plan.client, plan.controller).close()
        self.answers += 1
        if plan.key not in MAY_WAIT and NO_ANSWER in (found["kafka"], found["control"]):
            # of a node of Apache Kafka that does not answer nothing can be said
            self.noise += 1
            self.noisy[f"{plan.name} without an answer"] += 1
            return NO_ANSWER, []
        return found["kafka"], self._compared(plan, found)

    def _compared(self, plan: Plan, found: dict[str, Any]) -> list[Difference]:
        theirs = found["kafka"]
        noisy = [path for path, *_ in differences(theirs, found["control"])]
        self.noise += len(noisy)
        self.noisy.update(f"{plan.name}{kind_of(path)}" for path in noisy)
        return [
            Difference(plan, path, there, here, theirs, found["heirlog"])
            for path, there, here in differences(theirs, found["heirlog"])
            if not any(path.startswith(each) or each.startswith(path) for each in noisy)
        ]

    def forget_if_it_holds_nothing(self, group: str, topics: Iterable[str]) -> None:
        """Deletes a group that Apache Kafka has without members and offsets, and heirlog has not. topics: of which open
        transactions may have written offsets.
        """
        if self._state(self.kafka, group) == "Empty" and self._state(self.heirlog, group) == "Dead":
            wanted = Plan(OFFSET_FETCH, 7, {"group_id": group, "topics": None})
            undecided = [{"name": topic, "partition_indexes": list(range(PARTITIONS_MAX))} for topic in topics]
            stable = Plan(OFFSET_FETCH, 7, {"group_id": group, "topics": undecided, "require_stable": True})
            answers = [self.kafka.server.ask(request_of(each, self.kafka.world), 7) for each in (wanted, stable)]
            are_stable = not any(part.error_code for topic in answers[1].topics for part in topic.partitions)
            if not answers[0].topics and are_stable:
                for player in self.players:
                    player.server.ask(request_of(Plan(DELETE_GROUPS, 2, {"groups_names": [group]}), player.world), 2)

    def _state(self, player: Player, group: str) -> str:
        asked = request_of(Plan(DESCRIBE_GROUPS, 5, {"groups": [group]}), player.world)
        state: str = player.server.ask(asked, 5).groups[0].group_state
        return state

    def set_transaction_version(self, level: int) -> None:
        """The finalised level of the feature, if it is another one."""
        if level != self.transaction_version:
            upgrade_type = UPGRADE if level > self.transaction_version else SAFE_DOWNGRADE
            for player in self.players:
                player.set_transaction_version(level, upgrade_type)
            self.transaction_version = level
            self.settle()

    def wait_for_time_limit(self, transactional_id: str) -> None:
        """Until every coordinator has aborted the transaction that is open for too long."""
        deadline = time.monotonic() + PATIENCE_S
        for player in self.players:
            while player.is_open(transactional_id):
                assert time.monotonic() < deadline, (
                    f"{player.name} does not abort a transaction that is open for too long"
                )
                time.sleep(0.02)

    def settle(self) -> None:
        """Until every broker has taken in what was changed; the ids of topics are known then."""
        self._marks += 1
        for player in self.players:
            player.mark(self._marks)
            player.learn_topics()

    def wait_for_markers(self) -> bool:
        """Until every decided transaction of the sequence is complete; if another coordinator has interfered, some may
        never be. False: a node of Apache Kafka does not complete one.
        """
        began, complete = time.monotonic(), True
        waiting = list(self.players)
        while waiting := [player for player in waiting if player.undecided()]:
            waited_s = time.monotonic() - began
            assert waited_s < PATIENCE_S, f"{waiting[0].name} does not complete a transaction"
            for player in waiting:
                if player.sequence in player.superseded:
                    if waited_s > MARKERS_S:
                        player.give_up(player.undecided())
                elif waited_s > COMPLETE_S and player is not self.heirlog:
                    player.superseded.add(player.sequence)
                    player.give_up(player.undecided())
                    complete = False
            time.sleep(0.005)
        if not complete:
            self.noise += 1
            self.noisy["a transaction that is never complete"] += 1
        return complete

    def wait_for_lookup(self, group: str) -> None:
        """Until the group's regular expressions are resolved: the nodes agree, and nothing changes any more."""
        before, deadline = None, time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            now = [player.member_epochs(group) for player in self.players]
            if now == before and all(each == now[0] for each in now):
                break
            before = now
            time.sleep(LATE_S)

    def wait_for_shares(self, group: str, topics: set[str]) -> None:
        """Until the share group may be given the partitions of these topics."""
        deadline = time.monotonic() + GRACE_S
        for player in self.players:
            while not topics <= player.shared_topics(group) and time.monotonic() < deadline:
                time.sleep(0.005)

    def disconnect_client(self, client: int) -> None:
        for player in self.players:
            player.server.connection(client, False).close()

    def disconnect(self) -> None:
        for player in self.players:
            player.server.disconnect()


__all__ = ["HEIRLOG", "NO_ANSWER", "WAITING", "Difference", "Player", "Table"]
