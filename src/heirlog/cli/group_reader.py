"""Reading as a member of a consumer group (classic protocol, the range strategy), in one thread.

    join --> positions from the group's offsets --> rounds of reading --heartbeat due--> still a member: next round
      ^                                                 |                 rebalance: commit what was written
      +-------------------------------------------------+-----------------------+

A position is committed only after its records were written to the output: each record is written at least once, and
again by the next member if this one ends without its last commit. At the end, also after Ctrl-C, the position is
committed and the member leaves, so that the others need not wait for its session to end.

An output that is not read stops the heartbeats too. Then the group continues without this member, whose commit is
refused; it joins again.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.record_reader import Reader
from heirlog.client import offsets
from heirlog.client.groups import COORDINATOR_LOST, REJOIN, GroupMember, State, Step
from heirlog.client.offsets import CommittedOffset, TopicPartition
from heirlog.protocol.batch import Record
from heirlog.protocol.consumer_protocol import (
    CONSUMER,
    assigned_partitions,
    range_assignment,
    subscribed_topics,
    subscription,
)
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 60_000
HEARTBEAT_S = 3.0
PAUSE_S = 0.1
ANSWER_S = 30.0
LEAVE_S = 5.0


class GroupReader:
    def __init__(
        self,
        client: Client,
        group: str,
        topics: Sequence[str],
        *,
        from_beginning: bool,
        until_end: bool,
        isolation: int = 0,
        left: int | None = None,
    ) -> None:
        """from_beginning: where the group has no offset; otherwise it begins at the end. left: as of `Reader`."""
        self._client = client
        self._group = group
        self._from_beginning = from_beginning
        self._until_end = until_end
        self._isolation = isolation
        self._left = left
        self._handed_out: dict[TopicPartition, int] = {}
        self._written: dict[TopicPartition, int] = {}
        """Positions after what was written to the output, of this generation's partitions."""
        self._committed: dict[TopicPartition, int] = {}
        self._next_heartbeat_s = 0.0
        self._member = GroupMember(
            group,
            protocol_type=CONSUMER,
            protocols={"range": subscription(topics)},
            assign=self._assign,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        )

    def rounds(self) -> Generator[list[tuple[TopicPartition, list[Record]]]]:
        """As `Reader.rounds`, of the partitions that this member is assigned. Close it: then the member leaves.

        Raises CommandError, KafkaError, OSError.
        """
        try:
            yield from self._generations()
        except BaseException:
            # the failure is what counts, and records without a commit are read again
            with suppress(CommandError, KafkaError, OSError):
                self._leave()
            raise
        self._leave()

    def wrote(self) -> None:
        """The records of the last round are written to the output."""
        self._written = self._handed_out

    def _generations(self) -> Iterator[list[tuple[TopicPartition, list[Record]]]]:
        while True:
            while self._member.state is not State.STABLE:
                self._ask()
            reader = self._reader()
            self._handed_out = self._written = self._committed = dict(reader.positions)
            while self._is_member():
                for found in reader.rounds():
                    self._handed_out = dict(reader.positions)
                    yield found
                    if not self._is_member():
                        break
                else:
                    if self._until_end or reader.left == 0:
                        return
                    # without a partition it is a member all the same, and may get one
                    time.sleep(PAUSE_S)
            self._left = reader.left

    def _ask(self) -> None:
        """One request of the membership; the caller looks at its state afterwards."""
        request = self._member.request()
        within_s = self._member.answer_within_ms / 1000 + ANSWER_S
        response = self._client.send_to_coordinator(
            self._group, request, error_code=lambda answer: int(answer.error_code), timeout_s=within_s
        )
        step = self._member.answered(request, response)
        if step in (Step.PAUSE, Step.FIND_COORDINATOR):
            time.sleep(PAUSE_S)
        self._next_heartbeat_s = time.monotonic() + HEARTBEAT_S

    def _is_member(self) -> bool:
        """Whether the generation is still the same. When a heartbeat is due, what was written is committed before it:
        the answer may be that there is a rebalance, which ends the generation.
        """
        if time.monotonic() >= self._next_heartbeat_s:
            self._commit(ANSWER_S)
            if self._member.state is State.STABLE:
                self._ask()
        return self._member.state is State.STABLE

    def _reader(self) -> Reader:
        partitions = [
            (topic, number)
            for topic, numbers in assigned_partitions(self._member.assignment).items()
            for number in numbers
        ]
        from heirlog.blocking import EARLIEST, LATEST

        committed = self._client.committed(self._group, partitions) if partitions else {}
        begins = self._client.list_offsets(dict.fromkeys(partitions, EARLIEST)) if partitions else {}
        ends = self._client.list_offsets(dict.fromkeys(partitions, LATEST), self._isolation) if partitions else {}
        positions = {}
        for at in partitions:
            if at in committed and committed[at].offset < begins[at].offset:
                raise CommandError(
                    f"group {self._group} stopped at offset {committed[at].offset} of {at[0]}-{at[1]}, which begins at "
                    f"{begins[at].offset} now: the records between were deleted. To go on behind them: heirlog groups "
                    f"reset-offsets --group {self._group} --topic {at[0]} --to-earliest --execute"
                )
            unread = begins[at] if self._from_beginning else ends[at]
            positions[at] = committed[at].offset if at in committed else unread.offset
        stops = {at: ends[at].offset for at in partitions} if self._until_end else None
        return Reader(self._client, positions, stops, self._isolation, self._left)

    def _assign(self, protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        topics = sorted(set[str]().union(*(subscribed_topics(data) or () for data in members.values())))
        described = self._client.metadata(topics).topics if topics else []
        counts = {topic.name: len(topic.partitions) for topic in described if topic.name and not topic.error_code}
        return range_assignment(members, counts)

    def _commit(self, timeout_s: float) -> None:
        committing = {at: CommittedOffset(to) for at, to in self._written.items() if to != self._committed[at]}
        if not committing:
            return
        request = self._member.commit(committing)

        def code(response: Any) -> int:
            codes = {error_code(found) for _, found, _ in offsets.commit_codes(response)}
            return next((int(found) for found in codes if found in COORDINATOR_LOST), 0)

        response = self._client.send_to_coordinator(
            self._group, request, error_code=code, newest=offsets.NEWEST_COMMIT_BY_NAME, timeout_s=timeout_s
        )
        for at, found, _ in offsets.commit_codes(response):
            failure = error_code(found)
            if failure is ErrorCode.NONE:
                self._committed = {**self._committed, at: committing[at].offset}
            elif failure not in REJOIN | COORDINATOR_LOST:
                refused = f"the offset of group {self._group} in {at[0]}-{at[1]} is not committed: {failure.name}"
                raise CommandError(with_next_step(refused, failure))
        self._member.committed(request, response)

    def _leave(self) -> None:
        if self._member.state is State.STABLE:
            self._commit(LEAVE_S)
        if self._member.member_id:
            self._client.send_to_coordinator(
                self._group,
                self._member.leave(),
                error_code=lambda answer: int(answer.error_code),
                timeout_s=LEAVE_S,
            )
