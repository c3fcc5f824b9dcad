"""The rules of one transactional id as text: a command per line, below it the answer and the state if it changed.

    id PID/EPOCH STATE [last N] [previous PID]     the state to begin with
    init [PID/EPOCH]                               InitProducerId; with the id and epoch that the producer names
    add PID/EPOCH a-0 b-1 [v2]                     AddPartitionsToTxn; v2: of a client with transaction.version 2
    verify PID/EPOCH a-0 b-1                       the same, only looked up
    commit PID/EPOCH [v5] [pending]                EndTxn; v5: the version that raises the epoch
    abort PID/EPOCH [v5] [pending]                 pending: while another change is not committed
    fence [v2]                                     the coordinator aborts the open transaction
    complete                                       every partition has its marker
    ids none | PID                                 which fresh producer id is at hand; 100 and up without it

Each change counts at once, as if its record were committed. Time passes by one second with each command.
"""

from __future__ import annotations

from dataclasses import replace

from textscript import ScriptError

from heirlog.broker.transactions.add_partitions import add_partitions, verify_partitions
from heirlog.broker.transactions.end import complete, end, end_with_new_epoch, fence
from heirlog.broker.transactions.initialize import FenceFirst, initialize
from heirlog.broker.transactions.state import (
    Outcome,
    ProducerIdAndEpoch,
    Transaction,
    TransactionChange,
    TransactionState,
)
from heirlog.protocol.errors import ErrorCode

STATES = {state.text: state for state in TransactionState}


class Script:
    def __init__(self) -> None:
        self._now = Transaction(transactional_id="t", producer_id=5, timeout_ms=60_000)
        self._fresh: int | None = 100
        self._wall_ms = 0

    def run(self, words: list[str]) -> list[str]:
        command = getattr(self, f"_do_{words[0]}", None)
        if command is None:
            raise ScriptError(f"there is no command {words[0]}")
        before = self._shown()
        self._wall_ms += 1000
        outcome = command(words[1:])
        lines = [] if outcome is None else [outcome]
        if self._shown() != before:
            lines.append(self._shown())
        return lines

    def _shown(self) -> str:
        now = self._now
        parts = [f"{now.state.text} {now.producer_id}/{now.producer_epoch}"]
        parts += [f"{topic}-{index}" for topic, index in sorted(now.partitions)]
        if now.last_producer_epoch != -1:
            parts.append(f" last {now.last_producer_epoch}")
        if now.next_producer_id != -1:
            parts.append(f" next {now.next_producer_id}")
        if now.previous_producer_id not in (-1, now.producer_id):
            parts.append(f" previous {now.previous_producer_id}")
        return " ".join(parts)

    def _settle(self, outcome: Outcome) -> str:
        if isinstance(outcome, ErrorCode):
            return outcome.name
        if isinstance(outcome, TransactionChange):
            self._now = outcome.after
            outcome = outcome.answer
        return "NONE" if outcome == ProducerIdAndEpoch() else f"NONE {outcome.producer_id}/{outcome.epoch}"

    def _take_id(self) -> int | None:
        taken = self._fresh
        if taken is not None:
            self._fresh = taken + 1
        return taken

    def _do_id(self, words: list[str]) -> None:
        producer, state, *more = words
        given = dict(zip(more[::2], more[1::2], strict=True))
        at = _producer(producer)
        self._now = replace(
            self._now,
            producer_id=at.producer_id,
            producer_epoch=at.epoch,
            state=STATES[state],
            partitions=frozenset({("a", 0)}) if state in ("Ongoing", "PrepareCommit", "PrepareAbort") else frozenset(),
            last_producer_epoch=int(given.get("last", -1)),
            previous_producer_id=int(given.get("previous", at.producer_id)),
            next_producer_id=int(given.get("next", -1)),
        )

    def _do_ids(self, words: list[str]) -> None:
        self._fresh = None if words == ["none"] else int(words[0])

    def _do_init(self, words: list[str]) -> str:
        given = _producer(words[0]) if words else None
        outcome = initialize(self._now, given, 60_000, self._wall_ms, self._take_id)
        return "abort it first" if isinstance(outcome, FenceFirst) else self._settle(outcome)

    def _do_add(self, words: list[str]) -> str:
        version = 2 if "v2" in words else 0
        partitions = [_partition(word) for word in words[1:] if word != "v2"]
        return self._settle(add_partitions(self._now, _producer(words[0]), partitions, version, self._wall_ms))

    def _do_verify(self, words: list[str]) -> str:
        found = verify_partitions(self._now, _producer(words[0]), [_partition(word) for word in words[1:]])
        if isinstance(found, ErrorCode):
            return found.name
        return " ".join(f"{topic}-{index}" for topic, index in sorted(found)) or "takes no part"

    def _do_commit(self, words: list[str]) -> str:
        return self._end(words, True)

    def _do_abort(self, words: list[str]) -> str:
        return self._end(words, False)

    def _end(self, words: list[str], commit: bool) -> str:
        producer, pending = _producer(words[0]), "pending" in words
        if "v5" not in words:
            return self._settle(end(self._now, producer, commit=commit, is_pending=pending, wall_ms=self._wall_ms))
        outcome = end_with_new_epoch(
            self._now,
            producer,
            commit=commit,
            is_pending=pending,
            wall_ms=self._wall_ms,
            fresh_producer_id=self._take_id,
        )
        return self._settle(outcome)

    def _do_fence(self, words: list[str]) -> str:
        return self._settle(fence(self._now, 2 if "v2" in words else 0, self._wall_ms, self._take_id))

    def _do_complete(self, words: list[str]) -> None:
        self._now = complete(self._now, self._wall_ms)


def _producer(text: str) -> ProducerIdAndEpoch:
    producer_id, _, epoch = text.partition("/")
    return ProducerIdAndEpoch(int(producer_id), int(epoch))


def _partition(text: str) -> tuple[str, int]:
    topic, _, index = text.rpartition("-")
    return topic, int(index)
