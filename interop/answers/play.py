"""One random sequence after another on three nodes, for a limited time, and what differs.

    python interop/run.py "answers beside"                 a new seed, which is printed
    ANSWERS_SEED=123 python interop/run.py "answers ..."   the same sequences again
    ANSWERS_SEED=123/45 python interop/run.py "answers..." only the sequence 45 of them
    ANSWERS_OF="share groups" ...                          only sequences of one family (`ONLY`)
    ANSWERS_SECONDS=200 ANSWERS_SEQUENCES=1000 ...         for how long, and how many at most

A new seed may find a difference that was never seen before: that is its purpose. So that a finding in unchanged code
does not stop other changes, `.ci/run` repeats a seed that was clean, and its first ANSWERS_SEQUENCES sequences only. It
should draw a new one as soon as less than one new kind of difference in 300 sequences is found. When this was last
measured, 215 sequences of three seeds found five, all of which are mended or named.

Each sequence has topics, groups and producers of its own, and leaves nothing behind. A difference does not end it: what
only reads is compared further, and after a difference in an answer to what changes something the sequence continues
with new names, for nodes that answered differently may hold different things from then on.
"""

from __future__ import annotations

import os
import random
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jars
from apache_kafka import started
from suites import nodes

from answers import (
    admin_requests,
    consumer_group_requests,
    data_requests,
    group_requests,
    share_group_requests,
    tidying,
    transaction_requests,
)
from answers.deviations import DEVIATIONS, SHOWN_NAMES, examples_of, explained, rowless
from answers.mutations import mutated
from answers.players import HEIRLOG, NO_ANSWER, WAITING, Difference, Player, Table
from answers.scene import CLIENTS, NODE_ID, Scene
from answers.shape import Plan, kind_of, request_of, topic_of
from answers.wire import Server
from answers.world import Batch, Symbol
from heirlog.node.router import ROUTES, Role
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import ApacheKafkaNode

SECONDS = 60
TIDIED_EVERY = 10
"""Sequences, where one family is played."""
STEPS = (12, 30)
MUTATED = 0.3
SHOWN = 700
"""Characters."""
SHOWN_OF_REQUEST = 8
ON_CONTROLLER = 0.15
RELEASE = "4.2-IV1"
"""The metadata version that heirlog formats with."""
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "auto.create.topics.enable": "false",
    "group.consumer.assignors": "range,uniform",
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 2,
}
Builder = Callable[[Scene], dict[str, Any]]


@dataclass(frozen=True)
class Family:
    """Requests that are played together."""

    builders: dict[int, Builder]
    often: tuple[int, ...] = ()
    """Chosen as often again: without them nothing happens."""
    mixes: bool = False
    """With requests of every family that mixes."""
    preamble: Callable[[Scene], list[Plan]] = lambda _: []
    """What comes first, of each scene."""


ADMIN = Family(admin_requests.BUILDERS, mixes=True)
DATA = Family(data_requests.BUILDERS, mixes=True)
GROUPS = Family(group_requests.BUILDERS, mixes=True)
TRANSACTIONS = Family(transaction_requests.BUILDERS, transaction_requests.OFTEN)
CONSUMER_GROUPS = Family(consumer_group_requests.BUILDERS, consumer_group_requests.OFTEN)
SHARE_GROUPS = Family(share_group_requests.BUILDERS, share_group_requests.OFTEN, preamble=share_group_requests.preamble)
ALL = Family(ADMIN.builders | DATA.builders | GROUPS.builders, mixes=True)
ONLY = {"transactions": TRANSACTIONS, "consumer groups": CONSUMER_GROUPS, "share groups": SHARE_GROUPS}
"""By ANSWERS_OF: the family that all sequences are of."""
FAMILIES = (*2 * (ADMIN, DATA, GROUPS, TRANSACTIONS, CONSUMER_GROUPS, SHARE_GROUPS), ALL)
ELECT_LEADERS_SHIPPED = 2
READS = frozenset((2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 35, 46, 55, 60, 61, 65, 66, 69, 74, 75, 77, 87, 90))
"""These may be asked again: brokers follow their controller."""
CONTROLLED = frozenset((19, 20, 30, 31, 33, 37, 43, 44, 45, 57))
"""Brokers take these in later."""
AGAIN, AGAIN_S = 12, 0.08
PRODUCE, FETCH, OFFSET_COMMIT, JOIN, ALTER_CONFIGS, UNREGISTER = 0, 1, 8, 11, 33, 64
MAKES_GROUPS = (OFFSET_COMMIT, JOIN, 13, 28)
"""Also for a moment: LeaveGroup takes away one that was only expected."""
CHANGES_CONFIGS = (ALTER_CONFIGS, 44)
CLIENT_METRICS = 16
CREATE_TOPICS, END_TXN, WRITE_TXN_MARKERS, INT_MAX = 19, 26, 27, 2**31 - 1
CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 68, 76, 78, 79
DELETE_GROUPS, DELETE_SHARE_GROUP_OFFSETS = 42, 92
LIMITS = ("max_bytes", "max_records", "batch_size", "share_acquire_mode")
"""Of a ShareFetch: what they mean below 1 is not defined. And where one of several partitions has an error, only
Apache Kafka waits until the leader has loaded the others."""


class Sequence:
    def __init__(self, table: Table, seed: str) -> None:
        self._table = table
        self._rng = random.Random(seed)
        self._name = f"s{seed.rpartition('/')[2]}"
        self._only = ONLY.get(os.environ.get("ANSWERS_OF", ""))
        self._family = ALL
        self._restarts = 0
        self._waiting: dict[int, Plan] = {}
        self.log: list[str] = []
        self.differences: list[Difference] = []

    def play(self, plans: Iterable[Plan] = ()) -> None:
        self._begin()
        for plan in plans:
            self.step(plan)
        family = self._family = self._only or self._rng.choice(FAMILIES)
        for plan in family.preamble(self._scene):
            self.step(plan)
        for _ in range(self._rng.randint(*STEPS)):
            self.step(self._plan(ALL if family.mixes and self._scene.happens(0.15) else family))
        self.end()

    def _begin(self) -> None:
        """With topics of its own."""
        suffix = f"r{self._restarts}" if self._restarts else ""
        self._scene = Scene(self._rng, self._name + suffix)
        for player in self._table.players:
            player.world.sessions.clear()
            player.sequence = self._scene.name
        a, b, _ = self._scene.topics
        new = {"replication_factor": 1, "assignments": [], "configs": []}
        topics = [{"name": a, "num_partitions": 3, **new}, {"name": b, "num_partitions": 1, **new}]
        self.step(Plan(19, 7, {"topics": topics, "timeout_ms": 20_000, "validate_only": False}))

    def _plan(self, family: Family) -> Plan:
        scene = self._scene
        free = [client for client in range(CLIENTS) if client not in self._waiting]
        for _ in range(100):
            key = scene.rng.choice([*family.builders, *family.often])
            fields = family.builders[key](scene)
            client = fields.pop("client", free[0] if free else 0)
            if client in free:
                break
        routes = ROUTES[Role.CONTROLLER]
        on_controller = key in routes and key in CONTROLLED | {29, 32, 46, 55, 60} and scene.happens(ON_CONTROLLER)
        route = routes[key] if on_controller else ROUTES[Role.BROKER][key]
        high = min(route.max_version, ELECT_LEADERS_SHIPPED) if key == 43 else route.max_version
        version = fields.pop("version", None) or scene.rng.randint(route.min_version, high)
        plan = Plan(key, version, fields, client, on_controller, fields.pop("keeps", None))
        changed = mutated(plan, scene.rng) if scene.happens(MUTATED) else plan
        if key == SHARE_FETCH:
            waits = fields["max_wait_ms"] == share_group_requests.FIRST_WAIT_MS
            changed.fields.update({name: fields[name] for name in (*LIMITS, *(("topics",) if waits else ()))})
        chosen = plan if _ends_it(changed) or _goes_ahead(plan, changed) else changed
        if family is not TRANSACTIONS and _is_stored_in_two_ways(chosen) and not chosen.fields["acks"]:
            # only an answer shows that the nodes hold different things from then on
            chosen.fields["acks"] = 1
        return chosen

    def step(self, plan: Plan) -> None:
        if plan.client in self._waiting:
            return
        self.log.append(str(plan))
        answer, found = self._table.ask(plan)
        for _ in range(AGAIN if found and plan.key in READS else 0):
            time.sleep(AGAIN_S)
            answer, found = self._table.ask(plan)
            if not found:
                break
        if answer is WAITING:
            self._waiting[plan.client] = plan
        else:
            self._take_in(plan, answer)
        self._note(found)
        is_done = self._wait(plan, answer)
        found += self._late_answers()
        if answer is NO_ANSWER or not is_done or any(_divides(difference) for difference in found):
            self._continue_anew()

    def _take_in(self, plan: Plan, answer: Any) -> None:
        if not isinstance(answer, dict):
            return
        self._forget_what_holds_nothing(plan)
        if plan.key == JOIN and not answer["error_code"]:
            self._scene.generations[plan.fields["group_id"]] = answer["generation_id"]
        elif plan.key == FETCH and answer["session_id"]:
            self._scene.sessions[plan.client] = max(plan.fields["session_epoch"], 0) + 1
        elif plan.key == FETCH:
            self._scene.sessions.pop(plan.client, None)
        elif plan.key in (CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT):
            self._take_in_member(plan, answer)
        elif plan.key in (SHARE_FETCH, SHARE_ACKNOWLEDGE):
            self._take_in_share(plan, answer)
        elif plan.key in (22, END_TXN) and isinstance(plan.keeps, str):
            if answer.get("producer_epoch", -1) >= 0:
                self._scene.epochs[plan.keeps] = answer["producer_epoch"]
        elif plan.key == 22 and not answer["error_code"] and plan.keeps not in self._scene.producers:
            self._scene.producers.append(plan.keeps)

    def _take_in_member(self, plan: Plan, answer: dict[str, Any]) -> None:
        """Of a consumer or share group."""
        if answer["error_code"]:
            return
        who = plan.fields["group_id"], plan.fields["member_id"]
        self._scene.member_epochs[who] = answer["member_epoch"]
        if plan.key == CONSUMER_GROUP_HEARTBEAT and answer["assignment"] is not None:
            self._scene.owned[who] = {
                topic_of(each["topic_id"]): tuple(each["partitions"])
                for each in answer["assignment"]["topic_partitions"]
            }

    def _take_in_share(self, plan: Plan, answer: dict[str, Any]) -> None:
        """Of a share session."""
        scene, place = self._scene, (plan.fields["group_id"], plan.client)
        if answer["error_code"]:
            return
        epoch = plan.fields["share_session_epoch"]
        if epoch == -1:
            scene.share_sessions.pop(place, None)
            scene.acquired.pop(place, None)
            return
        scene.share_sessions[place] = epoch + 1
        for topic in plan.fields["topics"] if plan.key == SHARE_FETCH else ():
            for part in topic["partitions"]:
                scene.shared.add((place[0], str(getattr(topic["topic_id"], "name", "")), part["partition_index"]))
        finished = {
            (topic["topic_id"].name, part["partition_index"], batch["first_offset"])
            for topic in plan.fields["topics"]
            if isinstance(topic["topic_id"], Symbol)
            for part in topic["partitions"]
            for batch in part["acknowledgement_batches"]
        }
        held = [each for each in scene.acquired.get(place, []) if each[:3] not in finished or scene.happens(0.1)]
        for topic in answer["responses"] if plan.key == SHARE_FETCH else ():
            for part in topic["partitions"]:
                for batch in part["acquired_records"]:
                    at = topic_of(topic["topic_id"]), part["partition_index"]
                    held.append((*at, batch["first_offset"], batch["last_offset"]))
        scene.acquired[place] = held

    def _wait(self, plan: Plan, answer: Any) -> bool:
        """For what a coordinator does after its answer. False: Apache Kafka does not do it."""
        if plan.key in transaction_requests.WAITS and not self._table.wait_for_markers():
            return False
        if plan.key == CONSUMER_GROUP_HEARTBEAT and plan.version >= 1 and plan.fields.get("subscribed_topic_regex"):
            self._table.wait_for_lookup(plan.fields["group_id"])
        if plan.key == SHARE_GROUP_HEARTBEAT and isinstance(answer, dict) and not answer["error_code"]:
            names = set(plan.fields.get("subscribed_topic_names") or ()) & set(self._scene.topics[:2])
            self._table.wait_for_shares(plan.fields["group_id"], names)
            self._scene.begun |= {(plan.fields["group_id"], name) for name in names}
        if plan.key in (DELETE_GROUPS, DELETE_SHARE_GROUP_OFFSETS):
            deleted = plan.fields.get("groups_names") or [plan.fields.get("group_id")]
            self._scene.begun = {each for each in self._scene.begun if each[0] not in deleted}
        if plan.key in CONTROLLED and not plan.fields.get("validate_only"):
            self._table.settle()
        return True

    def _forget_what_holds_nothing(self, plan: Plan) -> None:
        """Apache Kafka alone keeps such a group: its deletion keeps the groups of all nodes the same."""
        if plan.key in MAKES_GROUPS and not plan.fields["group_id"].startswith(SHOWN_NAMES):
            self._table.forget_if_it_holds_nothing(plan.fields["group_id"])

    def _late_answers(self) -> list[Difference]:
        """Of members whose group had to wait for this request."""
        found: list[Difference] = []
        for client, plan in list(self._waiting.items()):
            answer, different = self._table.receive(plan)
            if answer is not WAITING or different:
                del self._waiting[client]
                self.log.append(f"answered now: {plan}")
                self._take_in(plan, answer)
                self._note(different)
                found += different
        return found

    def _note(self, found: list[Difference]) -> None:
        for difference in found:
            self.differences.append(difference)

    def _continue_anew(self) -> None:
        self.end()
        self._restarts += 1
        if self._restarts < 30:
            self.log.append("continued with new names")
            self._begin()
            for plan in self._family.preamble(self._scene):
                self.step(plan)

    def end(self) -> None:
        """Leaves nothing that another sequence could see."""
        self._waiting.clear()
        self._table.disconnect()
        every = TIDIED_EVERY if self._only else 1
        tidying.tidy(self._table, ("s", SHOWN_NAMES), topics=int(self._name[1:]) % every == 0)


def _is_stored_in_two_ways(plan: Plan) -> bool:
    """A Produce with a transactional batch, or with a partition twice, which deviations.py names."""
    if plan.key != PRODUCE:
        return False
    by = "topic_id" if plan.version >= 13 else "name"
    parts = [(topic[by], part) for topic in plan.fields["topic_data"] for part in topic["partition_data"]]
    is_transactional = any(isinstance(part["records"], Batch) and part["records"].transactional for _, part in parts)
    return is_transactional or len({(topic, part["index"]) for topic, part in parts}) < len(parts)


def _goes_ahead(plan: Plan, changed: Plan) -> bool:
    """A marker with an epoch that its producer has not reached: Apache Kafka never completes that one's transaction."""
    if plan.key != WRITE_TXN_MARKERS:
        return False
    (most,) = [marker["producer_epoch"] for marker in plan.fields["markers"]]
    return any(marker["producer_epoch"] > most for marker in changed.fields["markers"])


def _ends_it(plan: Plan) -> bool:
    """Whether a node does not answer any more, or has from then on what others do not have.

    Apache Kafka does not answer null for records, a resource twice in AlterConfigs, a protocol twice in JoinGroup and a
    partition twice in a marker of WriteTxnMarkers; a broker that is unregistered does not answer. Apache Kafka alone
    keeps configurations of client metrics. Of what is twice in a
    ShareAcknowledge, Apache Kafka takes the last item.
    """
    if plan.key == CREATE_TOPICS:
        # which Apache Kafka adds up in 32 bits, and then places them all
        return sum(topic["num_partitions"] for topic in plan.fields["topics"]) > INT_MAX
    if plan.key == JOIN:
        protocols = [protocol["name"] for protocol in plan.fields["protocols"]]
        # a member without an id that no client knows would be sorted by an id that each node makes itself
        return len(set(protocols)) < len(protocols) or not plan.fields["member_id"]
    if plan.key == CONSUMER_GROUP_HEARTBEAT:
        # an id that each node makes itself, by which it sorts the member
        return plan.version == 0 and not plan.fields["member_id"]
    if plan.key == UNREGISTER:
        return bool(plan.fields["broker_id"] == NODE_ID)
    if plan.key == PRODUCE:
        return any(not part["records"] for topic in plan.fields["topic_data"] for part in topic["partition_data"])
    if plan.key in (SHARE_FETCH, SHARE_ACKNOWLEDGE):
        parts = [(t["topic_id"], part["partition_index"]) for t in plan.fields["topics"] for part in t["partitions"]]
        return len(set(parts)) < len(parts)
    if plan.key == WRITE_TXN_MARKERS:
        return any(
            len(set(parts)) < len(parts)
            for marker in plan.fields["markers"]
            for parts in [[(t["name"], index) for t in marker["topics"] for index in t["partition_indexes"]]]
        )
    named = [(resource["resource_type"], resource["resource_name"]) for resource in plan.fields.get("resources", ())]
    if plan.key in CHANGES_CONFIGS and any(kind == CLIENT_METRICS for kind, _ in named):
        return True
    return plan.key == ALTER_CONFIGS and len(set(named)) < len(named)


def _divides(difference: Difference) -> bool:
    """Whether the nodes may hold different things after it."""
    deviation = explained(difference)
    return difference.plan.key not in READS and not (deviation and deviation.is_harmless)


@contextmanager
def three_nodes() -> Iterator[Table]:
    with ExitStack() as stack:
        homes = {}
        for name in ("kafka", "control", HEIRLOG):
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"answers-{name}-")))
            homes[name] = (directory, *prepare(directory))
        kafkas: list[tuple[ApacheKafkaNode, int]] = []
        for name in ("kafka", "control"):
            directory, broker, _ = homes[name]
            home = directory / f"broker-{nodes.NODE_ID}"
            kafkas.append((stack.enter_context(started(home, "--release-version", RELEASE)), broker))
        stack.enter_context(Cluster(data=homes[HEIRLOG][0], ledger=False))
        for node, broker in kafkas:
            node.wait_until_it_knows({nodes.NODE_ID}, f"127.0.0.1:{broker}")
        players = [Player(name, Server(broker, controller)) for name, (_, broker, controller) in homes.items()]
        table = Table(*players)
        warm_up(table)
        try:
            yield table
        finally:
            table.disconnect()


def prepare(directory: Path) -> tuple[int, int]:
    """A node's server.properties; the ports of its broker and its controller."""
    address = nodes.write_properties(directory)
    properties = directory / f"broker-{nodes.NODE_ID}" / "server.properties"
    text = properties.read_text()
    properties.write_text(text + "".join(f"{name}={value}\n" for name, value in CONFIG.items()))
    (listeners,) = [line for line in text.splitlines() if line.startswith("listeners=")]
    return int(address.rpartition(":")[2]), int(listeners.rpartition(":")[2])


def warm_up(table: Table) -> None:
    """Until groups can be coordinated, and producers get ids."""
    for player in table.players:
        deadline = time.monotonic() + 60
        while True:
            found = player.server.ask(request_of(Plan(10, 4, {"coordinator_keys": ["warm"]}), player.world), 4)
            listed = player.server.ask(request_of(Plan(16, 4, {}), player.world), 4)
            producer = player.server.ask(request_of(Plan(22, 4, {"transaction_timeout_ms": 1000}), player.world), 4)
            state = player.server.ask(
                request_of(Plan(10, 4, {"key_type": 1, "coordinator_keys": ["w"]}), player.world), 4
            )
            shares = {"key_type": 2, "coordinator_keys": ["w:AAAAAAAAAAAAAAAAAAAAAQ:0"]}
            share = player.server.ask(request_of(Plan(10, 6, shares), player.world), 6)
            transactions = player.server.ask(request_of(Plan(66, 1, {}), player.world), 1)
            codes = [answer.error_code for answer in (*found.coordinators, *state.coordinators, *share.coordinators)]
            if not any((*codes, listed.error_code, producer.error_code, transactions.error_code)):
                break
            assert time.monotonic() < deadline, f"{player.name} has no coordinator"
            time.sleep(0.1)
    table.settle()


def _by_request(found: Iterable[tuple[int, str, str]]) -> list[str]:
    """Each request in which kinds of difference were first seen, with all of them."""
    lines: dict[str, list[str]] = {}
    for count, request, difference in found:
        lines.setdefault(request, []).append(f"    {count} times {difference}")
    return [line for request, differing in lines.items() for line in (request, *differing[:SHOWN_OF_REQUEST])]


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError with every kind of difference that has no name."""
    jars.fetch()
    seed, _, only = (os.environ.get("ANSWERS_SEED") or str(secrets.randbelow(10**6))).partition("/")
    print(f"interop: answers beside Apache Kafka's: ANSWERS_SEED={seed}", flush=True)
    unexplained: dict[tuple[str, str, str, str], tuple[int, str, str]] = {}
    used: set[str] = set()
    with three_nodes() as table:
        until = time.monotonic() + float(os.environ.get("ANSWERS_SECONDS", SECONDS))
        number, at_most = 0, int(os.environ.get("ANSWERS_SEQUENCES", "1000000"))
        while number < at_most and time.monotonic() < until:
            identity = f"{seed}/{only or number}"
            sequence = Sequence(table, identity)
            if number == 0 and not only:
                sequence.play(examples_of())
            else:
                sequence.play()
            for difference in sequence.differences:
                if (deviation := explained(difference)) is not None:
                    used.add(deviation.name)
                    continue
                kind = (
                    difference.plan.name,
                    kind_of(difference.path),
                    str(difference.theirs)[:60],
                    str(difference.ours)[:60],
                )
                first = (
                    f"{identity}: {str(difference.plan)[:SHOWN]}",
                    f"{difference.path}\n        Kafka   {str(difference.theirs)[:SHOWN]}\n"
                    f"        heirlog {str(difference.ours)[:SHOWN]}",
                )
                count, *seen = unexplained.get(kind, (0, *first))
                unexplained[kind] = (count + 1, *seen)
            number += 1
            if only:
                print("\n".join(sequence.log))
                break
    lines = _by_request(unexplained.values())
    if not only:
        lines += [f"deviation never seen: {each.name}" for each in DEVIATIONS if each.name not in used]
    lines += [f"deviation without a row in docs/compatibility.md: {name}" for name in rowless()]
    summary = f"seed {seed}: {number} sequences, {table.answers} answers, {table.noise} fields differ in the control"
    summary += f" ({', '.join(f'{name} {count}' for name, count in table.noisy.most_common(5))})" if table.noise else ""
    repeat = f"repeat one with ANSWERS_SEED={seed}/NUMBER, all with ANSWERS_SEED={seed} ANSWERS_SEQUENCES={number}"
    assert not lines, f"{summary}, {len(unexplained)} kinds of difference without a name ({repeat}):\n" + "\n".join(
        lines
    )
    return f"{summary}, {len(used)} named deviations seen"
