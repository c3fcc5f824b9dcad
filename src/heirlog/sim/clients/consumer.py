"""A consumer: reads every partition of its topics from the start, and asks for their ends.

Each fetch names the leader epoch of the record before its position (KIP-320), so that a leader whose log has left the
one that was read before that position says so, also where its own log is longer by now. The consumer goes back to where
they part, and remembers that it was told (`History.rewound`): what an election has given up is never skipped unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from heirlog.env import Env, SendFailure
from heirlog.protocol.batch import Record, decode_records, walk
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest, ListOffsetsRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_MS, Client, Leader
from heirlog.sim.compacted import number_in
from heirlog.sim.history import History, Latest, Observed, Rewound

LATEST_TIMESTAMP = -1
CONSUMER = -1
"""As a replica id: none."""
NO_EPOCH = -1


class Consumer(Client):
    """Reads every partition from the start, and asks now and then for the latest offset.

    remade: topics that are deleted and made again. Their latest offsets are not asked for: ListOffsets knows names
    only, and an answer may be the other topic's.
    """

    def __init__(
        self,
        env: Env,
        name: str,
        bootstrap: Sequence[Endpoint],
        topics: Sequence[str],
        history: History,
        *,
        interval_ms: int = 100,
        latest_interval_ms: int = 700,
        remade: Collection[str] = (),
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.history = history
        self.interval_ms = interval_ms
        self.latest_interval_ms = latest_interval_ms
        self.remade = remade
        self.positions: dict[str, int] = {}
        """Per partition as histories name it: the next offset to read."""
        self._epochs: dict[str, list[tuple[int, int]]] = {}
        """Per partition, (leader epoch, first offset) of what was read below the position."""
        self.last_of_key: dict[str, dict[int, int]] = {}
        """Per partition and key, the number of the last record that was read there."""

    def start(self) -> None:
        self.refresh(self._begin)

    def _begin(self) -> None:
        if not self.knows_its_topics:
            self.later(self._begin)
            return
        for name in sorted(self.leaders):
            self._fetch(name)
            if self.leaders[name].topic not in self.remade:
                self._ask_latest(name)

    def _fetch(self, name: str) -> None:
        if self.stopped:
            return
        leader = self.leaders[name]
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            self.later(lambda: self._fetch(name))
            return
        partition = FetchRequest.FetchPartition(
            partition=leader.index,
            current_leader_epoch=leader.epoch,
            fetch_offset=self.positions.setdefault(leader.partition, 0),
            last_fetched_epoch=self._last_epoch(leader.partition),
            partition_max_bytes=1 << 20,
        )
        topic = FetchRequest.FetchTopic(topic_id=leader.topic_id, topic=leader.topic, partitions=[partition])
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[topic])
        self.env.send(
            endpoint, f"fetch-{name}", request, lambda response: self._fetched(leader, response), REQUEST_TIMEOUT_MS
        )

    def _fetched(self, leader: Leader, response: Any) -> None:
        name = leader.name
        if isinstance(response, SendFailure) or response.error_code != ErrorCode.NONE or not response.responses:
            self.later(lambda: self._fetch(name))
            return
        answer = response.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(leader)
        elif answer.error_code != ErrorCode.NONE:
            self.later(lambda: self._fetch(name))
        elif answer.diverging_epoch.end_offset >= 0:
            self._rewind(leader.partition, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
            self.env.call_later(self.interval_ms, lambda: self._fetch(name))
        else:
            if answer.records:
                self._read(leader.partition, answer.records)
            self.env.call_later(self.interval_ms, lambda: self._fetch(name))

    def _read(self, partition: str, records: Any) -> None:
        position = self.positions[partition]
        for start, header in walk(records, partial_tail=True):
            if header.next_offset <= position:
                continue
            epochs = self._epochs.setdefault(partition, [])
            if not epochs or epochs[-1][0] != header.leader_epoch:
                epochs.append((header.leader_epoch, position))
            for record in decode_records(records, start):
                if record.offset >= position:
                    self._observe(partition, record, header.leader_epoch)
            position = header.next_offset
        self.positions[partition] = position

    def _observe(self, partition: str, record: Record, leader_epoch: int) -> None:
        number = number_in(record)
        if number is None:
            return
        self.history.observed.append(Observed(partition, record.offset, number, leader_epoch, self.name))
        if record.key is not None:
            self.last_of_key.setdefault(partition, {})[int(record.key)] = number

    def _last_epoch(self, partition: str) -> int:
        epochs = self._epochs.get(partition)
        return epochs[-1][0] if epochs else NO_EPOCH

    def _rewind(self, partition: str, epoch: int, end_offset: int) -> None:
        """The leader's log parts from ours where its records of `epoch`, or of the next lower one that it has, end."""
        epochs = self._epochs[partition]
        end = self.positions[partition]
        while epochs and (epochs[-1][0] > epoch or epochs[-1][1] >= end_offset):
            end = epochs.pop()[1]
        self._go_to(partition, min(end, end_offset))

    def _go_to(self, partition: str, position: int) -> None:
        before = self.positions[partition]
        self.positions[partition] = min(position, before)
        if position < before:
            self.history.rewound.append(Rewound(partition, self.name, before, position))

    def _reset(self, leader: Leader) -> None:
        """The leader cannot say where its log and what we read part: read everything again."""
        self._epochs.pop(leader.partition, None)
        self._go_to(leader.partition, 0)
        self.env.call_later(self.interval_ms, lambda: self._fetch(leader.name))

    def _ask_latest(self, name: str) -> None:
        if self.stopped:
            return

        def told(offset: int, leader_epoch: int) -> None:
            self.history.latest.append(Latest(self.leaders[name].partition, offset, leader_epoch, self.name))
            again()

        def again() -> None:
            self.env.call_later(self.latest_interval_ms, lambda: self._ask_latest(name))

        self._list_latest(name, told, again)

    def _list_latest(self, name: str, told: Callable[[int, int], None], failed: Callable[[], None]) -> None:
        leader = self.leaders[name]
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            failed()
            return
        partition = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=leader.index, current_leader_epoch=leader.epoch, timestamp=LATEST_TIMESTAMP
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=leader.topic, partitions=[partition])
        request = ListOffsetsRequest(replica_id=CONSUMER, topics=[topic])
        asked_epoch = leader.epoch

        def answered(response: Any) -> None:
            if isinstance(response, SendFailure):
                failed()
                return
            answer = response.topics[0].partitions[0]
            if answer.error_code != ErrorCode.NONE:
                failed()
            else:
                # the epoch we asked under: the leader answered because it was the current one there
                told(answer.offset, asked_epoch)

        self.env.send(endpoint, f"list-{name}", request, answered, REQUEST_TIMEOUT_MS)
