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
from dataclasses import replace
from typing import Any

from answers import share_group_episodes, share_group_requests, tidying, transaction_requests
from answers.avoided import ends_it, goes_ahead, is_stored_in_two_ways
from answers.deviation import SHOWN_NAMES
from answers.deviations import explained
from answers.families import ALL, FAMILIES, ONLY, SHARE_GROUPS, TRANSACTIONS, TWO_PHASE_COMMIT, Family
from answers.group_requests import LONG_MS
from answers.mutations import mutated
from answers.players import NO_ANSWER, TRANSACTION_VERSION_OF_NEW_CLUSTERS, WAITING, Difference, Table
from answers.scene import CLIENTS, Scene
from answers.shape import Plan, topic_of
from answers.world import Symbol
from answers.worn_ids import LAST_EPOCH
from heirlog.node.router import ROUTES, Role

SHOWN = 500
"""Characters of an answer, where a sequence is repeated."""
TIDIED_EVERY = 10
"""Sequences, where one family is played."""
STEPS = (12, 30)
MUTATED = 0.3
AT_ONCE, REPEATED = 0.12, 0.05
"""Shares of steps with transactions: several requests on one connection, and a request that is sent once more."""
RUNS_OUT = 0.06
"""Share of sequences with a transaction that is open for too long."""
EPISODES = 0.7
"""Share of sequences with share groups in which there is an episode."""
INTERRUPTED = 0.12
"""Share of the requests of an episode that another request precedes."""
TRIES_TO_BEGIN = 3
ON_CONTROLLER = 0.15
ELECT_LEADERS_SHIPPED = 2
READS = frozenset((2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 35, 46, 55, 60, 61, 65, 66, 69, 74, 75, 77, 87, 90))
"""These may be asked again: brokers follow their controller."""
CONFIGURES = frozenset((33, 44))
CONTROLLED = frozenset((19, 20, 30, 31, 33, 37, 43, 44, 45, 57))
"""Brokers take these in later."""
AGAIN, AGAIN_S = 12, 0.08
FETCH, OFFSET_COMMIT, JOIN = 1, 8, 11
MAKES_GROUPS = (OFFSET_COMMIT, JOIN, 13, 28)
"""Also for a moment: LeaveGroup takes away one that was only expected."""
END_TXN = 26
CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE = 68, 76, 78, 79
DELETE_GROUPS, DELETE_SHARE_GROUP_OFFSETS = 42, 92
READ_SHARE_STATE, DELETE_SHARE_STATE = 84, 86
LIMITS = ("max_bytes", "max_records", "batch_size", "share_acquire_mode")
"""Of a ShareFetch: what they mean below 1 is not defined. And where one of several partitions has an error, only
Apache Kafka waits until the leader has loaded the others."""
TRANSACTIONAL = (TRANSACTIONS, TWO_PHASE_COMMIT)


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
        if family in TRANSACTIONAL:
            self._play_transactions()
        else:
            self._table.set_transaction_version(TRANSACTION_VERSION_OF_NEW_CLUSTERS)
            steps = self._rng.randint(*STEPS)
            has_episode = family is SHARE_GROUPS and self._rng.random() < EPISODES
            episode_at = self._rng.randrange(steps) if has_episode else -1
            for number in range(steps):
                if number == episode_at:
                    self._play_episode()
                self.step(self._plan(ALL if family.mixes and self._scene.happens(0.15) else family))
        self.end()

    def _play_episode(self) -> None:
        """Until the nodes may hold different things."""
        scene = self._scene
        episode = self._rng.choice(share_group_episodes.EPISODES)
        self._table.played[f"episodes with {episode.__name__.replace('_', ' ')}"] += 1
        for each in episode(scene):
            if isinstance(each, share_group_episodes.Pause):
                if each.disconnects is not None:
                    self._table.disconnect_client(each.disconnects)
                    for place in [place for place in scene.share_sessions if place[1] == each.disconnects]:
                        del scene.share_sessions[place]
                        scene.acquired.pop(place, None)
                        scene.shared = {shared for shared in scene.shared if shared[0] != place[0]}
                time.sleep(each.seconds)
                continue
            if self._rng.random() < INTERRUPTED:
                self.step(self._plan(SHARE_GROUPS))
            if self._scene is scene:
                self.step(each)
            if self._scene is not scene:
                return

    def _play_transactions(self) -> None:
        level = self._rng.choice(transaction_requests.LEVELS)
        self._table.set_transaction_version(level)
        self._scene.transaction_version = level
        self._table.played[f"at transaction.version {level}"] += 1
        steps = self._rng.randint(*STEPS)
        runs_out_at = self._rng.randrange(steps) if self._rng.random() < RUNS_OUT else -1
        for number in range(steps):
            if number == runs_out_at:
                self._let_run_out()
            if self._rng.random() < AT_ONCE:
                self._step_at_once()
                continue
            plan, scene = self._plan(self._family), self._scene
            self.step(plan)
            if self._rng.random() < REPEATED and self._scene is scene:
                self.step(plan)

    def _step_at_once(self) -> None:
        """Several requests of one producer on a connection, before the first of them is answered."""
        keys = self._rng.choices(transaction_requests.AT_ONCE, k=self._rng.choice((2, 3, 4)))
        drawn = [self._plan(_only(key)) for key in keys]
        name = drawn[0].fields["transactional_id"]
        others = [plan for plan in drawn[1:] if transaction_requests.is_of(name, plan, self._scene)]
        is_known = transaction_requests.is_of(name, drawn[0], self._scene)
        plans = [replace(plan, client=drawn[0].client) for plan in (drawn[0], *(others if is_known else ()))]
        if len(plans) > 1:
            self._table.played["steps of several requests at once"] += 1
        self._steps(plans)

    def _let_run_out(self) -> None:
        """A transaction is open for too long, its coordinator aborts it, and its producer continues."""
        name, scene = f"{self._scene.name}-t", self._scene
        for _ in range(TRIES_TO_BEGIN):
            answers = self._steps([transaction_requests.with_limit(name, transaction_requests.SHORT_MS)])
            if self._scene is not scene:
                return
            if isinstance(answers[0], dict) and not answers[0]["error_code"]:
                break
        else:
            return
        self.step(transaction_requests.adding(scene, name))
        self.step(self._plan(_only(0)))
        if self._scene is not scene:
            return
        self._table.wait_for_time_limit(name)
        self._table.played["transactions that were open for too long"] += 1
        for key in self._rng.choices(transaction_requests.LATE, k=self._rng.choice((1, 2, 3))):
            self.step(self._plan(_only(key)))
        # what is open for long may not run out at another moment on each node
        for _ in range(TRIES_TO_BEGIN):
            if self._scene is scene:
                self.step(transaction_requests.with_limit(name, LONG_MS))

    def _begin(self) -> None:
        """With topics of its own."""
        suffix = f"r{self._restarts}" if self._restarts else ""
        self._scene = Scene(self._rng, self._name + suffix, self._table.transaction_version)
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
        if family not in TRANSACTIONAL and is_stored_in_two_ways(chosen) and not chosen.fields["acks"]:
            # only an answer shows that the nodes hold different things from then on
            chosen.fields["acks"] = 1
        return chosen

    def step(self, plan: Plan) -> None:
        if plan.client not in self._waiting:
            self._steps([plan])

    def _steps(self, plans: list[Plan]) -> list[Any]:
        """What each node answers, as one answer where they agree. Several requests are of one client, and none of them
        only reads.
        """
        together = " with the next" if len(plans) > 1 else ""
        self.log += [f"{plan}{together if plan is not plans[-1] else ''}" for plan in plans]
        received = self._table.ask_at_once(plans)
        for _ in range(AGAIN if plans[0].key in READS else 0):
            if all(map(explained, received[0][1])):
                break
            time.sleep(AGAIN_S)
            received = self._table.ask_at_once(plans)
        found: list[Difference] = []
        for plan, (answer, differing) in zip(plans, received, strict=True):
            self.log.append(f"    {str(answer)[:SHOWN]}")
            if answer is WAITING:
                self._waiting[plan.client] = plan
            else:
                self._take_in(plan, answer)
            if any(map(_divides, found)):
                # what comes after it in the same step is a consequence
                continue
            self._note(differing)
            found += differing
        answers = [answer for answer, _ in received]
        is_done = self._wait(plans[-1], answers[-1])
        found += self._late_answers()
        if NO_ANSWER in answers or not is_done or any(_divides(difference) for difference in found):
            self._continue_anew()
        return answers

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
        elif plan.key in (READ_SHARE_STATE, DELETE_SHARE_STATE):
            self._take_in_share_state(plan, answer)
        elif plan.key in (22, END_TXN) and isinstance(plan.keeps, str):
            if (epoch := answer.get("producer_epoch", -1)) >= 0:
                if self._scene.epochs.get(plan.keeps, 0) >= LAST_EPOCH > epoch:
                    self._table.played["producer ids after one that was used up"] += 1
                self._scene.epochs[plan.keeps] = epoch
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

    def _take_in_share_state(self, plan: Plan, answer: dict[str, Any]) -> None:
        """Which states leaders have read."""
        errors = {
            (topic_of(topic["topic_id"]), part["partition"]): part["error_code"]
            for topic in answer["results"]
            if isinstance(topic["topic_id"], str)
            for part in topic["partitions"]
        }
        for topic in plan.fields["topics"]:
            name = str(getattr(topic["topic_id"], "name", ""))
            for part in topic["partitions"]:
                place = plan.fields["group_id"], name, part["partition"]
                if errors.get(place[1:]) != 0:
                    continue
                if plan.key == DELETE_SHARE_STATE:
                    self._scene.states_read.discard(place)
                elif part["leader_epoch"] >= 0:
                    self._scene.states_read.add(place)

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
        if epoch == 0 and not any(group == place[0] for group, _ in scene.share_sessions):
            # its leader looks at the stored state again, before the next fetch of each partition
            scene.shared = {shared for shared in scene.shared if shared[0] != place[0]}
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
            self._table.forget_if_it_holds_nothing(plan.fields["group_id"], self._scene.topics[:2])

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
        configs = self._only is None or bool(CONFIGURES & self._only.builders.keys())
        tidying.tidy(self._table, ("s", SHOWN_NAMES), topics=int(self._name[1:]) % every == 0, configs=configs)


def _only(key: int) -> Family:
    """Requests of one kind, about transactions."""
    return Family({key: TRANSACTIONS.builders[key]})


def _divides(difference: Difference) -> bool:
    """Whether the nodes may hold different things after it."""
    deviation = explained(difference)
    return difference.plan.key not in READS and not (deviation and deviation.is_harmless)
