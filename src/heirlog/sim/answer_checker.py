"""What controllers promise by their answers, checked when each answer leaves.

Q2     a voter grants its vote in an epoch to one candidate, and the vote is flushed
Q10    what an answer says was done is committed: the registration of a broker, a change of an ISR, a block of producer
       ids

The answer leaves within the event that commits. So Q10 is judged after the event, when the checker knows what that
event has committed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from heirlog.metadata.image import Image
from heirlog.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerRegistrationRequest,
    VoteRequest,
)
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.raft.quorum_state import QuorumState
from heirlog.raft.replica_key import ReplicaKey


class AnsweringQuorum(Protocol):
    """What is read of `heirlog.raft.quorum.Quorum`."""

    @property
    def key(self) -> ReplicaKey: ...

    @property
    def durable_state(self) -> QuorumState | None: ...


class AnswerChecker:
    """broken(rule, sentence): called for each broken rule. image: what is committed now."""

    def __init__(self, image: Callable[[], Image], broken: Callable[[str, str], None]) -> None:
        self._image = image
        self._broken = broken
        self._votes: dict[tuple[ReplicaKey, int], int] = {}
        """The candidate, by voter and epoch."""
        self._promised: list[Callable[[], str | None]] = []
        self.rules: dict[type, Callable[[str, AnsweringQuorum, Any, Any], None]] = {}
        """By the class of the request, called when an answer leaves the controller: (its name, its quorum, request,
        response).
        """
        self.rules[VoteRequest] = self._check_vote
        self.rules[BrokerRegistrationRequest] = self._registration_answered
        self.rules[AlterPartitionRequest] = self._alteration_answered
        self.rules[AllocateProducerIdsRequest] = self._allocation_answered

    def _registration_answered(
        self, name: str, _: AnsweringQuorum, request: BrokerRegistrationRequest, response: Any
    ) -> None:
        if not response.error_code:
            self._promised.append(lambda: self._registered(name, request.broker_id, response.broker_epoch))

    def _alteration_answered(self, name: str, _: AnsweringQuorum, __: AlterPartitionRequest, response: Any) -> None:
        if not response.error_code:
            self._promised += [
                partial(self._altered, name, Uuid(topic.topic_id), partition)
                for topic in response.topics
                for partition in topic.partitions
                if not partition.error_code
            ]

    def _allocation_answered(
        self, name: str, _: AnsweringQuorum, __: AllocateProducerIdsRequest, response: Any
    ) -> None:
        if not response.error_code:
            end = response.producer_id_start + response.producer_id_len
            self._promised.append(lambda: self._allocated(name, end))

    def judge(self) -> None:
        """After an event of a controller: what it has committed is known."""
        if not self._promised:
            return
        promised, self._promised = self._promised, []
        for broken in promised:
            sentence = broken()
            if sentence is not None:
                self._broken("Q10", sentence)

    def _check_vote(self, name: str, quorum: AnsweringQuorum, request: VoteRequest, response: Any) -> None:
        for topic, answers in zip(request.topics, response.topics, strict=False):
            for asked, answer in zip(topic.partitions, answers.partitions, strict=True):
                if not answer.vote_granted or asked.pre_vote:
                    continue
                epoch, candidate = asked.replica_epoch, asked.replica_id
                first = self._votes.setdefault((quorum.key, epoch), candidate)
                if first != candidate:
                    self._broken("Q2", f"{name} votes for {first} and for {candidate} in epoch {epoch}")
                durable = quorum.durable_state
                if durable is None or (durable.leader_epoch, durable.voted_id) != (epoch, candidate):
                    self._broken("Q2", f"{name} grants {candidate} its vote in epoch {epoch}; on its disk is {durable}")

    def _registered(self, name: str, broker: int, epoch: int) -> str | None:
        known = self._image().brokers.get(BrokerId(broker))
        if epoch <= self._image().offset and known is not None and known.epoch >= epoch:
            return None
        return f"{name} has confirmed the registration {epoch} of broker {broker}; committed is {known}"

    def _altered(self, name: str, topic_id: Uuid, answer: Any) -> str | None:
        state = self._image().partition(topic_id, answer.partition_index)
        if state is None or state.partition_epoch >= answer.partition_epoch:
            return None
        return f"{name} has confirmed {answer}; committed is {state}"

    def _allocated(self, name: str, end: int) -> str | None:
        if end <= self._image().next_producer_id:
            return None
        return f"{name} has allocated producer ids below {end}; committed is {self._image().next_producer_id}"
