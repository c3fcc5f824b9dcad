"""Sends ISR proposals to the controller: AlterPartition (KIP-497, KIP-903).

    submit --> waiting --request--> in flight --answer--> done
                  ^                     |
                  +---- failure, top-level error, missing from the answer: again after 50 ms

One request is in flight per broker, and it carries every proposal that waits. A partition has one slot. Its proposal
occupies the slot until it is answered, even if the partition has forgotten the proposal meanwhile. A second proposal is
refused; otherwise the controller could see the two in either order. What an answer means for a partition is not decided
here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.isr import IsrProposal
from heirlog.env import Env, SendFailure
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from heirlog.protocol.types import Endpoint, PartitionKey, Uuid

RETRY_BACKOFF_MS = 50
CHANNEL = "alter-partition"

OnAnswer: TypeAlias = Callable[[IsrProposal, AlterPartitionResponse.PartitionData], None]


class AlterPartitionSender:
    def __init__(
        self,
        env: Env,
        controller_endpoint: Callable[[], Endpoint | None],
        registered_brokers: RegisteredBrokers,
        timeout_ms: int,
        on_answer: OnAnswer,
    ) -> None:
        self._env = env
        self._controller_endpoint = controller_endpoint
        self._registered_brokers = registered_brokers
        self._timeout_ms = timeout_ms
        self._on_answer = on_answer
        self._slots: dict[PartitionKey, IsrProposal] = {}
        self._in_flight = False
        self._backing_off = False

    def submit(self, proposal: IsrProposal) -> bool:
        """False if an earlier proposal of this partition still occupies its slot (OPERATION_NOT_ATTEMPTED)."""
        key = (proposal.topic_id, proposal.partition)
        if key in self._slots:
            return False
        self._slots[key] = proposal
        self._send()
        return True

    def _send(self) -> None:
        if self._in_flight or self._backing_off or not self._slots:
            return
        controller = self._controller_endpoint()
        if controller is None:
            self._back_off()
            return
        self._in_flight = True
        sent = list(self._slots.values())
        self._env.send(
            controller, CHANNEL, self._request(sent), lambda result: self._answered(sent, result), self._timeout_ms
        )

    def _request(self, proposals: list[IsrProposal]) -> AlterPartitionRequest:
        topics: dict[Uuid, AlterPartitionRequest.TopicData] = {}
        for proposal in proposals:
            topic = topics.get(proposal.topic_id)
            if topic is None:
                topic = topics[proposal.topic_id] = AlterPartitionRequest.TopicData(topic_id=proposal.topic_id)
            topic.partitions.append(
                AlterPartitionRequest.PartitionData(
                    partition_index=proposal.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr=[member for member, _ in proposal.isr_with_epochs],
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(broker_id=member, broker_epoch=epoch)
                        for member, epoch in proposal.isr_with_epochs
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._registered_brokers.broker_id,
            broker_epoch=self._registered_brokers.broker_epoch,
            topics=list(topics.values()),
        )

    def _answered(self, sent: list[IsrProposal], result: AlterPartitionResponse | SendFailure) -> None:
        if isinstance(result, SendFailure) or result.error_code != ErrorCode.NONE:
            self._in_flight = False
            error = result.kind if isinstance(result, SendFailure) else error_code(result.error_code).name
            self._env.log("info", "alter-partition-failed", error=error)
            self._back_off()
            return
        answers = {
            (topic.topic_id, partition.partition_index): partition
            for topic in result.topics
            for partition in topic.partitions
        }
        missing = False
        for proposal in sent:
            key = (proposal.topic_id, proposal.partition)
            answer = answers.get(key)
            if answer is None:
                missing = True
                continue
            # free the slot before the partition gets the answer: it may propose again at once
            del self._slots[key]
            self._on_answer(proposal, answer)
        self._in_flight = False
        if missing:
            self._back_off()
        else:
            self._send()

    def _back_off(self) -> None:
        if self._backing_off:
            return
        self._backing_off = True
        self._env.call_later(RETRY_BACKOFF_MS, self._try_again)

    def _try_again(self) -> None:
        self._backing_off = False
        self._send()
