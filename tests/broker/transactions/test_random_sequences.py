"""Random requests, commits, markers and failovers of a whole coordinator; nothing may be decided twice or left open.

Upstream: TransactionCoordinatorConcurrencyTest, which does the same with threads.
"""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from heirlog.broker.transactions import end, initialize
from heirlog.broker.transactions import state as transaction_state
from heirlog.broker.transactions.marker_sender import CHANNEL
from heirlog.broker.transactions.records import read_record
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.env import SendFailure
from heirlog.metadata.state import TRANSACTION_VERSION
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import EndTxnRequest

from ..fakes import answer_of, context, state
from .test_coordinator import TRANSACTIONS, Coordinating

NAMES = ("t", "u", "v")
STEPS = 250
LAST = 32766


class Playing:
    def __init__(self, seed: int, last_producer_epoch: int) -> None:
        self.last_producer_epoch = last_producer_epoch
        self.random = random.Random(seed)
        self.rig = Coordinating([1, 2])
        self.rig.followed()
        self.level = 2
        self.set_level()
        self.epoch = 5
        self.known: dict[str, tuple[int, int]] = {}
        """What the producer of each id was answered last."""
        self.waiting: list[tuple[str, Any]] = []

    def set_level(self) -> None:
        self.rig.image.set_feature(TRANSACTION_VERSION, self.level or None, self.rig.journal)
        self.rig.publish()

    def step(self) -> None:
        getattr(self, "do_" + self.random.choice(STEP_NAMES))()
        for name, answer in list(self.waiting):
            response = answer_of(answer)
            if response is not None:
                self.waiting.remove((name, answer))
                if not response.error_code and response.producer_id >= 0:
                    self.known[name] = (response.producer_id, response.producer_epoch)
                    assert response.producer_epoch <= self.last_producer_epoch, "it is reserved to fence the last one"

    def do_init(self) -> None:
        name = self.random.choice(NAMES)
        given = self.known.get(name, (-1, -1)) if self.random.random() < 0.5 else (-1, -1)
        self.waiting.append((name, self.rig.init(name, given, v=4)))

    def do_add(self) -> None:
        name = self.random.choice(NAMES)
        if name in self.known:
            self.rig.add(self.known[name], self.random.randrange(2), name=name)

    def do_end(self) -> None:
        name = self.random.choice(NAMES)
        if name in self.known:
            who, commit = self.known[name], self.random.random() < 0.6
            request = EndTxnRequest(transactional_id=name, producer_id=who[0], producer_epoch=who[1], committed=commit)
            version = self.random.choice((4, 5, 5))
            self.waiting.append((name, self.rig.broker.transactions.end_txn(request, context(version))))

    def do_follow(self) -> None:
        if self.rig.partition(TRANSACTIONS).leader_epoch == self.epoch and self.leads:
            end = self.rig.partition(TRANSACTIONS).log.log_end_offset
            self.rig.fetch(
                end, replica=2, leader_epoch=self.epoch, last_fetched_epoch=self.last_epoch, topic=TRANSACTIONS
            )

    @property
    def leads(self) -> bool:
        return self.rig.partition(TRANSACTIONS).role.name == "LEADER"

    @property
    def last_epoch(self) -> int:
        headers = [header for _, header in walk(self.log())]
        return headers[-1].leader_epoch if headers else -1

    def do_markers(self) -> None:
        if self.rig.markers_in_flight():
            if self.random.random() < 0.3:
                self.rig.env.take(CHANNEL).on_result(SendFailure("disconnected"))
            else:
                codes = (ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_SERVER_ERROR)
                self.rig.answer_markers(foo_0=self.random.choice(codes), foo_1=self.random.choice(codes))

    def do_time(self) -> None:
        self.rig.env.advance(self.random.choice((1, 60, 1000, 6000, 70_000)))

    def do_level(self) -> None:
        self.level = self.random.randrange(3)
        self.set_level()

    def do_fail_over(self) -> None:
        if self.random.random() < 0.3:
            # everything is committed: this broker leads again with the same log
            self.do_follow()
            self.lead(leader=2)
            self.lead(leader=1)
            self.do_follow()
            self.rig.env.advance(20)

    def lead(self, leader: int) -> None:
        self.epoch += 1
        to = state([1, 2], leader=leader, leader_epoch=self.epoch, partition_epoch=self.epoch)
        self.rig.set_partition(to, TRANSACTIONS)
        self.rig.publish()
        self.rig.env.advance(1)

    def log(self) -> bytes:
        log = self.rig.partition(TRANSACTIONS).log
        return b"".join(region.read() for region in log.read(0, 1 << 24, log.log_end_offset).regions)

    def states(self) -> dict[str, list[Transaction]]:
        found: dict[str, list[Transaction]] = defaultdict(list)
        data = self.log()
        for position, _ in walk(data):
            for record in decode_records(data, position):
                read = read_record(record.key, record.value)
                if read is not None and read.transaction is not None:
                    found[read.transactional_id].append(read.transaction)
        return found

    def settle(self) -> None:
        """No faults any more: every transaction ends."""
        for _ in range(40):
            self.do_follow()
            while self.rig.markers_in_flight():
                self.rig.answer_markers()
                self.do_follow()
            self.rig.env.advance(10_000)


STEP_NAMES = (
    *("init", "add", "add", "add", "end", "end", "follow", "follow", "follow", "markers", "markers", "markers"),
    *("time", "time", "level", "fail_over"),
)


@pytest.mark.parametrize("last_producer_epoch", [LAST, 4])
@pytest.mark.parametrize("seed", range(25))
def test_no_id_is_decided_twice_and_every_transaction_ends(
    seed: int, last_producer_epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (transaction_state, end, initialize):
        monkeypatch.setattr(module, "LAST_PRODUCER_EPOCH", last_producer_epoch)
    playing = Playing(seed, last_producer_epoch)
    for _ in range(STEPS):
        playing.step()
    playing.settle()
    ended = 0
    owners: dict[int, str] = {}
    for name, states in playing.states().items():
        for before, after in pairwise(states):
            assert_follows(before, after)
        assert all(owners.setdefault(each.producer_id, name) == name for each in states), "ids share a producer id"
        decided = defaultdict(set)
        completed = 0
        for each in states:
            if each.state.is_prepared:
                # two transactions of one epoch may begin in the same millisecond
                decided[completed].add(each.state)
                ended += 1
            completed += each.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        assert all(len(outcomes) == 1 for outcomes in decided.values()), f"{name}: {decided}"
        last = states[-1]
        assert last.state not in (TransactionState.ONGOING, *PREPARED), f"{name} is left {last.state.text}"
        shard = playing.rig.broker.transactions.shard_of(name)
        kept = shard.get(name)  # type: ignore[union-attr]
        assert kept is not None
        assert (kept.producer_id, kept.producer_epoch, kept.state) == (
            last.producer_id,
            last.producer_epoch,
            last.state,
        ), "what the coordinator has in memory is in the log"
    assert ended, "no transaction was decided"


PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
MAY_FOLLOW = {
    TransactionState.EMPTY: {"Empty", "Ongoing", "PrepareAbort"},
    TransactionState.ONGOING: {"Ongoing", "PrepareCommit", "PrepareAbort"},
    TransactionState.PREPARE_COMMIT: {"CompleteCommit"},
    TransactionState.PREPARE_ABORT: {"CompleteAbort"},
    TransactionState.COMPLETE_COMMIT: {"Empty", "Ongoing", "PrepareAbort"},
    TransactionState.COMPLETE_ABORT: {"Empty", "Ongoing", "PrepareAbort"},
}


def assert_follows(before: Transaction, after: Transaction) -> None:
    assert after.state.text in MAY_FOLLOW[before.state], f"{after.state.text} after {before.state.text}"
    if after.producer_id == before.producer_id:
        assert after.producer_epoch >= before.producer_epoch, "epochs of a producer id do not fall"
    if before.state.is_prepared and after.producer_id == before.producer_id:
        assert after.producer_epoch == before.producer_epoch
