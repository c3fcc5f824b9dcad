"""The guards of the protocol, and how to take one away in a simulation.

A guard is one named predicate in the module of its rule, called through that module's global name: a name that another
module imports would stay in force when the guard is taken away. A run without the guard must lose something that a run
with it does not; otherwise the guard is not needed. Numbers are those of docs/internals/simulation.md, which says why
guard 2 is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Guard:
    """`predicate` of `module` says whether to continue; without the guard it is always true, and seeds of `scenario`
    fail.
    """

    number: int
    module: str
    predicate: str
    rule: str
    scenario: str
    restated_by: str = ""
    """The invariant that says the same as the guard. A run without the guard does not check it: the run has to show
    what is lost.
    """
    not_needed: str = ""
    """Why nothing is lost without it. Then no seed of the scenario may fail."""

    def passes_always(self) -> Callable[..., bool]:
        """The replacement of the predicate."""

        def always(*_: Any, **__: Any) -> bool:
            return True

        return always


GUARDS: Mapping[int, Guard] = {
    guard.number: guard
    for guard in (
        Guard(
            1,
            "heirlog.broker.broker_lifecycle_manager",
            "answers_this_incarnation",
            "a registration response must match the incarnation that asked",
            "late-registration",
        ),
        Guard(
            2,
            "heirlog.broker.partition",
            "is_newer_epoch",
            "a fetcher (re)starts only for a higher leader epoch",
            "late-fetch-answer",
            not_needed="a start changes no record, and guard 5 drops the answers to requests before it",
        ),
        Guard(
            3,
            "heirlog.broker.partition",
            "keeps_fetched_offsets",
            "a new leader epoch forgets what followers fetched before",
            "leader-epoch-jump",
        ),
        Guard(
            4,
            "heirlog.broker.isr",
            "has_reached",
            "a follower joins the ISR at or above the high watermark and the start of the leader epoch",
            "moves",
        ),
        Guard(
            5,
            "heirlog.broker.partition_fetch_state",
            "answers_current_end",
            "a fetch response is applied only to the in-flight offset and current epoch",
            "late-fetch-answer",
        ),
        Guard(
            6,
            "heirlog.controller.alter_partition",
            "member_is_eligible",
            "AlterPartition: members unfenced and with the registered broker epoch (KIP-903)",
            "kip-903-race",
        ),
        Guard(
            7,
            "heirlog.controller.alter_partition",
            "partition_epoch_is_current",
            "AlterPartition: the partition epoch equals the stored one",
            "overtaken-isr-change",
        ),
        Guard(
            8,
            "heirlog.broker.high_watermark",
            "committed_isr_is_large_enough",
            "the high watermark needs a committed ISR of at least the effective min ISR (KIP-966)",
            "last-replica-standing",
        ),
        Guard(
            9,
            "heirlog.controller.registration",
            "stopped_cleanly",
            "an unclean registration leaves ISR and ELR before it can be unfenced (KIP-966)",
            "U11",
        ),
        Guard(
            10,
            "heirlog.controller.recovery.replica_log_info",
            "is_of_this_registration",
            "a GetReplicaLogInfo answer carries the registered broker epoch (KIP-966)",
            "U3",
        ),
        Guard(
            11,
            "heirlog.controller.recovery.replica_log_info",
            "knows_the_leader_epoch",
            "a GetReplicaLogInfo answer carries the controller's current leader epoch (KIP-966)",
            "U13-old-leader",
        ),
        Guard(
            12,
            "heirlog.controller.recovery.replica_log_info",
            "length_may_decide",
            "the last written leader epoch decides before the length of a log (KIP-966)",
            "U1",
        ),
        Guard(
            13,
            "heirlog.controller.recovery.decision",
            "quorum_is_complete",
            "Balanced waits for every member of its quorum (KIP-966)",
            "U2",
        ),
        Guard(
            14,
            "heirlog.raft.commit",
            "flush_reached",
            "an acknowledgement by the quorum waits for the flush",
            "controller-power-cut",
        ),
        Guard(
            15,
            "heirlog.controller.recovery.decision",
            "wait_is_over",
            "Balanced waits for every assigned replica, fenced or not, up to unclean.recovery.timeout.ms",
            "whole-power-cut",
        ),
        Guard(
            16,
            "heirlog.broker.partition",
            "is_committed",
            "acks=all is answered, also to a repeated batch, once the high watermark has reached it",
            "repeated-batches",
        ),
        Guard(
            17,
            "heirlog.raft.quorum_state",
            "is_flushed",
            "a vote is answered, and an epoch begun, once the vote and the epoch are flushed",
            "forgotten-vote",
            "Q2",
        ),
        Guard(
            18,
            "heirlog.raft.commit",
            "ends_in_own_epoch",
            "a leader commits records of older epochs together with one of its own epoch",
            "older-epoch-commit",
            "Q7",
        ),
        Guard(
            19,
            "heirlog.raft.candidacy",
            "is_still_asked",
            "a vote counts only in the candidacy that asked for it",
            "late-vote",
        ),
        Guard(
            20,
            "heirlog.raft.replica_states",
            "is_disk_of",
            "a fetch counts for a commit only if it comes from the disk of a voter (KIP-853)",
            "replaced-voter",
            "Q6",
        ),
        Guard(
            21,
            "heirlog.raft.voter_changes",
            "may_begin",
            "the voters change one at a time, each change after the one before is committed (KIP-853)",
            "two-voter-changes",
            "Q12",
        ),
        Guard(
            22,
            "heirlog.broker.transactions.add_partitions",
            "is_current_epoch",
            "a coordinator accepts requests of the current epoch of a transactional id only",
            "transactions",
        ),
        Guard(
            23,
            "heirlog.broker.transactions.shard",
            "accepts_changes",
            "a transactional id with a pending change, or a decided transaction, accepts no other change",
            "transactions",
        ),
        Guard(
            24,
            "heirlog.broker.internal_topic_writer",
            "takes_effect",
            "what a coordinator writes takes effect once it is below the high watermark",
            "transactions",
        ),
        Guard(
            25,
            "heirlog.storage.verification",
            "is_current_guard",
            "a verification is void once a marker or another batch of the producer was appended (KIP-890)",
            "late-verifications",
        ),
        Guard(
            26,
            "heirlog.broker.groups.offset_requests",
            "is_stable",
            "an offset that an open transaction has written is not a stable one (KIP-447)",
            "zombie-copiers",
        ),
        Guard(
            27,
            "heirlog.broker.groups.txn_offset_requests",
            "is_current_generation",
            "a member commits offsets in a transaction only in the current generation (KIP-447)",
            "zombie-copiers",
        ),
        Guard(
            28,
            "heirlog.broker.transactions.state",
            "has_next_epoch",
            "a producer id is replaced once its epoch is 32766",
            "used-up-ids",
        ),
        Guard(
            29,
            "heirlog.storage.producers",
            "is_of_newest_coordinator",
            "a marker is of the newest coordinator epoch that the partition knows",
            "zombie-markers",
        ),
        Guard(
            30,
            "heirlog.storage.producers",
            "ends_own_epoch",
            "from transaction.version 2 on, a marker of the epoch of an open transaction does not end it (KIP-890)",
            "late-markers",
        ),
        Guard(
            31,
            "heirlog.storage.transactions",
            "is_decided",
            "a transaction is undecided until its marker is below the high watermark",
            "lost-markers",
        ),
        Guard(
            32,
            "heirlog.broker.groups.transactional_offsets",
            "is_newest",
            "an offset of a transaction does not replace one that was written later",
            "overtaken-offsets",
        ),
        Guard(
            33,
            "heirlog.storage.cleaning.transactions",
            "is_without_batches",
            "a marker is removed only after the last batch of its transaction",
            "cleaned-transactions",
        ),
        Guard(
            34,
            "heirlog.broker.transactions.records",
            "has_no_room_for_successor",
            "the producer id that follows a used-up one is stored with the outcome",
            "used-up-ids",
        ),
        Guard(
            35,
            "heirlog.broker.groups.consumer.offset_rules",
            "is_current_epoch",
            "a member of the consumer protocol commits offsets only in its current epoch (KIP-848)",
            "consumer-groups",
        ),
        Guard(
            36,
            "heirlog.broker.groups.consumer.reconciliation",
            "is_free",
            "a member takes a partition only if no other member has it, or must still give it up (KIP-848)",
            "consumer-groups",
        ),
        Guard(
            37,
            "heirlog.storage.boot_mark",
            "kept_page_cache",
            "ids of a coordinator that a machine's stop may have set back are in doubt",
            "forgotten-epochs",
        ),
        Guard(
            38,
            "heirlog.broker.share_coordinator.state",
            "is_newest_leader",
            "only the newest leader of a partition reads and writes the state of its share partitions (KIP-932)",
            "replaced-share-leaders",
        ),
    )
}


class UnknownGuard(ValueError):
    """There is no guard of that number."""


def guard(number: int) -> Guard:
    """Raises UnknownGuard, naming those that exist."""
    found = GUARDS.get(number)
    if found is None:
        known = ", ".join(map(str, sorted(GUARDS)))
        raise UnknownGuard(f"there is no guard {number} here; there are {known}")
    return found


@contextmanager
def without(number: int | None) -> Iterator[None]:
    """Take a guard away while the block runs; None takes nothing away."""
    if number is None:
        yield
        return
    chosen = guard(number)
    module = import_module(chosen.module)
    before = getattr(module, chosen.predicate)
    setattr(module, chosen.predicate, chosen.passes_always())
    try:
        yield
    finally:
        setattr(module, chosen.predicate, before)
