"""Random scenarios of the conformance runner's form, answered by Apache Kafka 4.2's own QuorumController and by ours.

A scenario is made while our controller plays it, so that events mostly are what an honest node would send. Kafka's
class (java/Scenarios.java) then plays the same events on a log in memory and writes down errors, responses, records and
the state after each step; that becomes the `expect` of the scenario, and our runner has to agree with all of it.

Left out is what heirlog decides differently on purpose (docs/internals/design.md, "Choices"): reassignments, failed
directories, unregistered brokers, downgrades, and replicas of a topic whose partitions have different numbers of them.
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import jars

from heirlog.testing.conformance.catalogue import run
from heirlog.testing.conformance.controller_layer import ControllerScenario

JAVA = Path(__file__).resolve().parent / "java" / "Scenarios.java"
SCENARIOS = 250
FIRST_SEED = 966_000
EVENTS_MAX = 14
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
METADATA_VERSION, ELR_VERSION = "metadata.version", "eligible.leader.replicas.version"

Json = dict[str, Any]


class Maker:
    """One scenario: its setup, and events as they come to mind while our controller plays them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.setup = self._setup()
        self.player = ControllerScenario(self.setup, manager=False)
        steps = []
        for _ in range(self.random.randint(3, EVENTS_MAX)):
            event = self._event()
            self.player.play(event)
            steps.append({"event": event})
        self.scenario = {
            "id": f"random-{seed}",
            "layer": "controller",
            "conformance": "normative",
            "setup": self.setup,
            "steps": steps,
        }

    def _happens(self, chance: float) -> bool:
        return self.random.random() < chance

    # -- the beginning ------------------------------------------------------------------------------------------

    def _setup(self) -> Json:
        choice = self.random.choice
        ids = list(range(1, choice((2, 3, 3, 4, 5)) + 1))
        states = ("unfenced", "unfenced", "unfenced", "unfenced", "fenced", "controlled_shutdown")
        brokers = [{"id": broker, "state": choice(states)} for broker in ids]
        active = {broker["id"] for broker in brokers if broker["state"] == "unfenced"}
        has_elr = self._happens(0.85)
        partitions = []
        for topic in ("foo", "bar")[: 1 + self._happens(0.4)]:
            factor = self.random.randint(1, len(ids))
            partitions += [
                {
                    "topic": topic,
                    "partition": number,
                    **self._partition(self.random.sample(ids, factor), active, has_elr),
                }
                for number in range(choice((1, 1, 2, 3)))
            ]
        level = choice((29, 29, 27, 26, 25, 23) if has_elr else (29, 23))
        return {
            "features": {ELR_VERSION: int(has_elr), METADATA_VERSION: level},
            "config": {
                "topic": {topic: self._config(0.6, 0.25) for topic in ("foo", "bar")},
                "cluster": self._config(0.4, 0.15),
                "static": self._config(0.15, 0.08),
                "broker": {choice(("1", "3000")): self._config(0.1, 0.0)},
            },
            "brokers": brokers,
            "partitions": partitions,
        }

    def _partition(self, replicas: list[int], active: set[int], has_elr: bool) -> Json:
        choice = self.random.choice
        row: Json = {"replicas": replicas, "elr": [], "lastKnownElr": []}
        alive = [replica for replica in replicas if replica in active]
        if alive and self._happens(0.8):
            leader = choice(alive)
            isr = [replica for replica in replicas if replica == leader or (replica in active and self._happens(0.6))]
            row |= {"leader": leader, "isr": self.random.sample(isr, len(isr)) if self._happens(0.3) else isr}
            left = [replica for replica in replicas if replica not in isr]
        else:
            row |= {"leader": -1, "isr": [] if has_elr else [choice(replicas)]}
            left = [replica for replica in replicas if replica not in active]
        if has_elr:
            row["elr"] = sorted(replica for replica in left if self._happens(0.4))
            if row["leader"] < 0 or self._happens(0.1):
                row["lastKnownElr"] = [choice(replicas)]
        row["leaderRecoveryState"] = "RECOVERING" if len(row["isr"]) == 1 and self._happens(0.15) else "RECOVERED"
        return row | {"leaderEpoch": self.random.randint(0, 50), "partitionEpoch": self.random.randint(0, 90)}

    def _config(self, min_isr: float, unclean: float) -> Json:
        found = {}
        if self._happens(min_isr):
            found[MIN_ISR] = str(self.random.choice((1, 1, 2, 2, 3, 4)))
        if self._happens(unclean):
            found[UNCLEAN] = self.random.choice(("true", "false"))
        return found

    # -- what happens -------------------------------------------------------------------------------------------

    def _event(self) -> Json:
        image = self.player.image
        broker = self.random.choice(sorted(image.brokers))
        live = [known for known in sorted(image.brokers) if not image.brokers[known].fenced]
        kinds = ["alter"] * 6 + ["heartbeat"] * 5 + ["register"] * 3 + ["elect"] * 2 + ["task", "config", "create"]
        match self.random.choice(kinds + ["fence"] * 3 * bool(live)):
            case "alter":
                return self._alter_partition(broker)
            case "heartbeat":
                return self._heartbeat(broker)
            case "register":
                return self._registration(broker)
            case "elect":
                return self._election()
            case "task":
                return {"type": "periodic", "task": self.random.choice(("electPreferred", "electUnclean"))}
            case "config":
                return self._config_change()
            case "create":
                return self._creation()
            case _:
                return {"type": "fence_broker", "broker": self.random.choice(live)}

    def _alter_partition(self, broker: int) -> Json:
        image = self.player.image
        number = self.random.choice(sorted(image.partitions[image.topic_ids["foo"]]))
        state = image.partition_named("foo", number)
        assert state is not None, "no event deletes the topic"
        leader = state.leader if state.has_leader and self._happens(0.93) else broker
        isr = [
            replica
            for replica in state.replicas
            if replica == leader or (self._happens(0.6) and (image.brokers[replica].is_active or self._happens(0.3)))
        ]
        if self._happens(0.3):
            self.random.shuffle(isr)
        if isr and self._happens(0.03):
            isr.append(isr[0])
        event: Json = {"type": "alter_partition", "broker": leader, "newIsr": isr, "partition": number}
        if self._happens(0.06):
            event["leaderEpoch"] = state.leader_epoch + self.random.choice((-1, 1))
        if self._happens(0.06):
            event["partitionEpoch"] = state.partition_epoch + self.random.choice((-1, 1))
        if self._happens(0.05):
            event["brokerEpoch"] = 1
        if self._happens(0.1):
            event["leaderRecoveryState"] = "RECOVERING"
        if self._happens(0.1):
            event["version"] = 2
        elif self._happens(0.15):
            event["newIsr"] = [{"id": member, "epoch": self.random.choice((-1, 55))} for member in isr]
        return event

    def _heartbeat(self, broker: int) -> Json:
        event: Json = {"type": "heartbeat", "broker": broker}
        if self._happens(0.3):
            event["wantShutDown"] = True
        if self._happens(0.12):
            event["wantFence"] = True
        if self._happens(0.08):
            event["currentMetadataOffset"] = self.random.choice((0, 50, 99_999))
        if self._happens(0.03):
            event["brokerEpoch"] = 5
        return event

    def _registration(self, broker: int) -> Json:
        event: Json = {"type": "register_broker", "broker": broker}
        epoch = self.player.image.brokers[broker].epoch
        if self._happens(0.5):
            # one that the run made has no name that both would know
            event["previousBrokerEpoch"] = epoch if epoch == 100 + broker else 7
        if self._happens(0.1):
            event["version"] = self.random.choice((2, 3))
        if self._happens(0.15):
            event["incarnation"] = "same"
        if self._happens(0.05):
            event["clusterId"] = "another"
        if self._happens(0.05):
            event["noElrFeature"] = True
        return event

    def _election(self) -> Json:
        image = self.player.image
        named = [
            {"topic": name, "partition": number}
            for name in sorted(image.topic_ids)
            for number in sorted(image.partitions[image.topic_ids[name]])
            if self._happens(0.7)
        ]
        kind = self.random.choice((0, 0, 1, 1, 1, 5))
        return {"type": "elect_leaders", "electionType": kind, "partitions": None if self._happens(0.3) else named}

    def _config_change(self) -> Json:
        kind, name = self.random.choice((("topic", "foo"), ("topic", "bar"), ("topic", "nobody"), ("broker", "")))
        config = self.random.choice((MIN_ISR, MIN_ISR, UNCLEAN))
        event = {"type": "alter_config", "resourceType": kind, "resourceName": name, "op": "DELETE", "name": config}
        if self._happens(0.75):
            value = self.random.choice(("true", "false")) if config == UNCLEAN else str(self.random.randint(1, 4))
            event |= {"op": "SET", "value": value}
        return event

    def _creation(self) -> Json:
        ids = sorted(self.player.image.brokers)
        first = self.random.sample(ids, self.random.randint(1, min(3, len(ids))))
        assignments = [first, first[::-1]][: self.random.randint(1, 2)]
        event = {"type": "create_topic", "topic": self.random.choice(("new", "newer", "foo", "bad name!"))}
        return event | {"assignments": assignments, "configs": {MIN_ISR: "2"} if self._happens(0.4) else {}}


def answered_by_kafka(scenarios: list[Json], place: Path) -> list[Json]:
    """The same scenarios, each step with the `expect` of Kafka's class. Raises AssertionError with what it printed."""
    asked, answered, classes = place / "asked.json", place / "answered.json", place / "classes"
    asked.write_text(json.dumps({"scenarios": scenarios}))
    # beside Kafka's classes, because the controller's own are visible in their package only
    compiling = ["javac", "-nowarn", "-cp", jars.classpath(), "-d", str(classes), str(JAVA)]
    playing = ["java", "-Xmx512m", "-cp", f"{classes}:{jars.classpath()}", "org.apache.kafka.controller.Scenarios"]
    for command in (compiling, [*playing, str(asked), str(answered)]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    found: list[Json] = json.loads(answered.read_text())["scenarios"]
    return found


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError with the scenarios that differ."""
    jars.fetch()
    scenarios = [Maker(FIRST_SEED + number).scenario for number in range(SCENARIOS)]
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        answered = answered_by_kafka(scenarios, Path(directory))
    assert len(answered) == len(scenarios)
    results = [run(scenario) for scenario in answered]
    different = [f"{result.id}: {result.why}" for result in results if not result.passed]
    assert not different, f"{len(different)} of {len(results)} differ:\n" + "\n".join(different[:20])
    steps = [step["expect"] for scenario in answered for step in scenario["steps"]]
    records = sum(len(step["records"]) for step in steps)
    refused = sum(step["error"] != "NONE" for step in steps)
    return (
        f"{len(steps)} events of {len(results)} scenarios, {refused} of them refused, make the same {records} records "
        "as with Kafka's QuorumController"
    )
