"""One sequence of requests: each is put to all nodes, and what changed is waited for before the next one.

A difference does not end it: what only reads is compared further, and after a difference in an answer to what changes
something the sequence continues with new names, for nodes that answered differently may hold different things from then
on.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable
from typing import Any

from answers import share_group_requests, tidying, transaction_requests
from answers.avoided import ends_it, goes_ahead, is_stored_in_two_ways
from answers.deviation import SHOWN_NAMES
from answers.deviations import explained
from answers.families import ALL, FAMILIES, ONLY, TRANSACTIONS, Family
from answers.mutations import mutated
from answers.players import NO_ANSWER, WAITING, Difference, Table
from answers.scene import CLIENTS, Scene
from answers.shape import Plan, topic_of
from answers.world import Symbol
from heirlog.node.router import ROUTES, Role

TIDIED_EVERY = 10
"""Sequences, where one family is played."""
STEPS = (12, 30)
MUTATED = 0.3
ON_CONTROLLER = 0.15
ELECT_LEADERS_SHIPPED = 2
READS = frozenset((2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 35, 46, 55, 60, 61, 65, 66, 69, 74, 75, 77, 87, 90))
"""These may be asked again: brokers follow their controller."""
CONTROLLED = frozenset((19, 20, 30, 31, 33, 37, 43, 44, 45, 57))
"""Brokers take these in later."""
AGAIN, AGAIN_S = 12, 0.08
FETCH, OFFSET_COMMIT, JOIN = 1, 8, 11
MAKES_GROUPS = (OFFSET_COMMIT, JOIN, 13, 28)
"""Also for a moment: LeaveGroup takes away one that was only expected."""
END_TXN = 26
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
        chosen = plan if ends_it(changed) or goes_ahead(plan, changed) else changed
        if family is not TRANSACTIONS and is_stored_in_two_ways(chosen) and not chosen.fields["acks"]:
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


def _divides(difference: Difference) -> bool:
    """Whether the nodes may hold different things after it."""
    deviation = explained(difference)
    return difference.plan.key not in READS and not (deviation and deviation.is_harmless)
