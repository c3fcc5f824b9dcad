"""Appends with acks=all that wait in the purgatory of produce requests until their records are committed.

waiting --the high watermark passes each offset--> answered
   |    --a leader epoch is over, or the disk failed--> that partition gets the error, the others go on waiting
   |    --the time limit--> REQUEST_TIMED_OUT for the rest: their records may still be committed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from heirlog.broker.partition import Partition
from heirlog.broker.purgatory import Purgatory
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import PartitionKey

Answer = TypeVar("Answer")


class ReplicationWait(Generic[Answer]):
    """One request, with those of its partitions that are not replicated yet.

    fail: puts an error into the answer of one partition. finish: sends the answer of the request; called once.
    """

    __slots__ = ("_answers", "_fail", "_finish", "number")

    def __init__(self, fail: Callable[[Answer, ErrorCode], None], finish: Callable[[], None]) -> None:
        self.number = -1
        self._answers: dict[PartitionKey, list[tuple[Partition, int, int, Answer]]] = {}
        self._fail = fail
        self._finish = finish

    def add(self, partition: Partition, required_offset: int, answer: Answer) -> None:
        waiting = self._answers.setdefault(partition.key, [])
        waiting.append((partition, required_offset, partition.leader_epoch, answer))

    def begin(self, purgatory: Purgatory[PartitionKey], timeout_ms: int, *, look_first: bool) -> None:
        """look_first: check before waiting, because the disk may have failed under another partition."""
        if look_first and any(self.try_complete(key) for key in self.keys):
            return
        if timeout_ms <= 0 or purgatory.is_full:
            self.on_expiration()
            return
        purgatory.watch(self, timeout_ms)

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        return tuple(self._answers)

    def _look_at(self, key: PartitionKey) -> None:
        waiting = self._answers.get(key)
        if waiting is None:
            return
        left = []
        for entry in waiting:
            partition, required_offset, leader_epoch, answer = entry
            outcome = partition.outcome_of(required_offset, leader_epoch)
            if outcome is None:
                left.append(entry)
            elif outcome is not ErrorCode.NONE:
                self._fail(answer, outcome)
        if left:
            self._answers[key] = left
        else:
            del self._answers[key]

    def try_complete(self, key: PartitionKey) -> bool:
        self._look_at(key)
        if self._answers:
            return False
        self._finish()
        return True

    def on_expiration(self) -> None:
        for waiting in self._answers.values():
            for _, _, _, answer in waiting:
                self._fail(answer, ErrorCode.REQUEST_TIMED_OUT)
        self._finish()
