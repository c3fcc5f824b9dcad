"""Recovery at random: brokers stop, lose what they had, come back and answer or do not; operators change their minds.

Each broker's log is one pair (last epoch, end). A real controller sees what brokers say of themselves; a bystander sees
the logs, and judges every election of the metadata log.
"""

from __future__ import annotations

import random

import pytest

from heirlog.controller.recovery.decision import quorum_members
from heirlog.metadata.apply import apply
from heirlog.metadata.basis import Basis
from heirlog.metadata.image import Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.records import PartitionChangeRecord
from heirlog.protocol.types import BrokerId
from heirlog.testing.conformance.controller_layer import directory

from .cluster import alter, state_of
from .recovering import STRATEGY, Cluster

BROKERS = (1, 2, 3, 4)
STRATEGIES = ("Balanced", "Aggressive", "None")
ELECTIONS = {2: "Balanced", 3: "Aggressive"}
EMPTY = (-1, 0)
STEPS = 100
Log = tuple[int, int]


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.min_isr = self.random.choice((1, 2, 2, 3))
        self.strategy = self.random.choice(STRATEGIES)
        self.wish: str | None = None
        self.logs: dict[int, Log] = dict.fromkeys(BROKERS, EMPTY)
        self.disks = dict.fromkeys(BROKERS, 0)
        self.committed: Log = EMPTY
        self.recovered = 0
        self.seen = Image()
        self.batches = 0
        self.cluster = Cluster(brokers=len(BROKERS))
        self.cluster.topic(min_insync_replicas=str(self.min_isr), unclean_recovery_strategy=self.strategy)
        self.judge()

    @property
    def state(self) -> PartitionRegistration:
        return state_of(self.cluster.harness)

    def is_up(self, broker: int) -> bool:
        return not self.cluster.image.brokers[broker].fenced

    # what may happen

    def step(self) -> None:
        may = {
            self.write: 4,
            self.catch_up: 4,
            self.answer: 6,
            self.come_back: 6,
            self.stop: 2,
            self.crash: 3,
            self.replace_disk: 1,
            self.leave_unanswered: 1,
            self.wait: 1,
            self.configure: 2,
            self.elect: 1,
            self.fail_over: 1,
            self.reassign: 1,
        }
        self.random.choices(list(may), list(may.values()))[0]()
        self.judge()
        if self.state.has_leader:
            self.wish = None

    def write(self) -> None:
        state = self.state
        if not state.has_leader:
            return
        log = (int(state.leader_epoch), self.logs[state.leader][1] + self.random.randrange(1, 20))
        behind = [member for member in state.isr if member != state.leader and not self.random.randrange(0, 10)]
        self.logs |= {member: log for member in state.isr if member not in behind}
        if not behind and len(state.isr) >= min(self.min_isr, len(state.replicas)):
            self.committed = log

    def catch_up(self) -> None:
        state = self.state
        if not state.has_leader:
            return
        isr = [broker for broker in state.replicas if broker in state.isr or self.is_up(broker)]
        self.logs |= dict.fromkeys(isr, self.logs[state.leader])
        alter(self.cluster.harness, [int(broker) for broker in isr])

    def answer(self) -> None:
        asked = sorted(set(self.cluster.asked()))
        if asked:
            self.answer_of(self.random.choice(asked))

    def answer_of(self, broker: int) -> None:
        self.cluster.reply(broker, *self.logs[broker])
        self.judge()

    def leave_unanswered(self) -> None:
        for broker in self.cluster.asked()[:1]:
            self.cluster.fail(broker)

    def come_back(self) -> None:
        self.cluster.unfence(self.random.choice(BROKERS))

    def stop(self) -> None:
        self.begin_anew(self.random.choice(BROKERS), clean=True)

    def crash(self) -> None:
        broker = self.random.choice(BROKERS)
        epoch, end = self.logs[broker]
        if end and self.random.randrange(0, 2):
            self.logs[broker] = (epoch, self.random.randrange(max(1, end - 15), end + 1))
        self.begin_anew(broker)

    def replace_disk(self) -> None:
        broker = self.random.choice(BROKERS)
        self.logs[broker] = EMPTY
        self.disks[broker] += 1
        self.begin_anew(broker)

    def begin_anew(self, broker: int, clean: bool = False) -> None:
        self.cluster.fence(broker)
        self.cluster.lives[broker] += 1
        self.cluster.register(broker, clean, log_dirs=[directory(broker, self.disks[broker])])

    def wait(self) -> None:
        self.cluster.advance(self.random.choice((10, 3_000, 6_000, 310_000)))

    def configure(self) -> None:
        before = self.strategy
        self.strategy, self.min_isr = self.random.choice(STRATEGIES), self.random.choice((1, 2, 3))
        if self.strategy != before:
            self.wish = None
        self.cluster.set(**{"min.insync.replicas": str(self.min_isr), STRATEGY: self.strategy})

    def elect(self) -> None:
        if not self.state.has_leader:
            kind = self.random.choice(list(ELECTIONS))
            self.wish = ELECTIONS[kind]
            self.cluster.outcome(kind, skip_wait=bool(self.random.randrange(0, 2)))

    def fail_over(self) -> None:
        self.wish = None
        self.cluster.harness.lose()
        self.cluster.harness.lead()
        self.cluster.harness.commit()

    def reassign(self) -> None:
        self.cluster.reassign(self.random.choice((None, self.random.sample(BROKERS, 3))))

    # what must hold

    def judge(self) -> None:
        log = self.cluster.harness.quorum.log
        for batch in log[self.batches :]:
            for offset, record in enumerate(batch.records, batch.base_offset):
                before = self.seen.partition_named("foo", 0)
                apply(self.seen, record, offset, batch.epoch)
                after = self.seen.partition_named("foo", 0)
                if before is not None and after is not None and after.leader_epoch > before.leader_epoch:
                    self.judge_election(before, after, record)
        self.batches = len(log)

    def judge_election(
        self, before: PartitionRegistration, after: PartitionRegistration, record: PartitionChangeRecord
    ) -> None:
        if not after.has_leader:
            return
        if record.election_basis is None:
            # with a leader, the record that elects another one may also have taken it into the ISR
            assert after.leader in (*before.isr, *before.elr) or before.has_leader
            assert self.logs[after.leader] >= self.committed, "a clean election loses nothing"
            return
        self.committed = min(self.committed, self.logs[after.leader])
        assert after.basis is not None
        if before.has_leader:
            # an operator who gives up a reassignment together with its leader
            assert after.basis.basis is Basis.UNCLEAN
            return
        assert after.basis.basis is Basis.RECOVERED
        self.recovered += 1
        valid = {
            answer.broker: (answer.last_written_epoch, answer.end_offset)
            for answer in after.basis.replicas
            if answer.answered and self.may_lead(before, answer.broker)
        }
        assert valid == {broker: self.logs[broker] for broker in valid}, "answers are of the logs that there are"
        longest = [broker for broker in before.replicas if valid.get(broker) == max(valid.values())]
        assert after.leader == longest[0]
        counts = self.wish or self.strategy
        assert counts == "Aggressive" or not (before.isr or before.elr), "who has everything is waited for"
        if counts == "Balanced":
            assert set(quorum_members(before, min(self.min_isr, len(before.replicas)))) <= set(valid)
        assert counts != "None"

    def may_lead(self, state: PartitionRegistration, broker: BrokerId) -> bool:
        known = self.seen.brokers[broker]
        return known.is_active and known.has_online(state.directory_of(broker))

    def ends_well(self) -> bool:
        """Everybody is back and answers: somebody leads, or it is said why not."""
        for broker in BROKERS:
            self.cluster.unfence(broker)
        for _ in range(100):
            self.judge()
            state = self.state
            if state.has_leader:
                return True
            for broker in sorted(set(self.cluster.asked())):
                self.answer_of(broker)
            self.cluster.advance(4_000)
        waits_for_a_disk = any(not self.may_lead(state, broker) for broker in state.last_known_elr)
        return waits_for_a_disk or (self.wish or self.strategy) == "None"


@pytest.mark.parametrize("seed", range(1, 16))
def test_whatever_happens_meanwhile_nobody_with_less_is_elected_and_somebody_is_in_the_end(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    assert walk.ends_well(), walk.state


def test_the_walks_recover() -> None:
    recovered = 0
    seed = 1
    while not recovered:
        walk = Walk(seed)
        for _ in range(STEPS):
            walk.step()
        recovered += walk.recovered
        seed += 1
    assert seed <= 10
