"""Reading as a member of a consumer group (classic protocol), in one thread.

    join --> positions from the group's offsets --> rounds of reading --heartbeat due--> still a member: next round
      ^                                                 |           rebalance, other topics: commit what was written
      +-------------------------------------------------+-----------------------+

With the cooperative strategy a generation may take partitions away: the member joins once more without them, so that
the next generation can give them to another member.

A position is committed only after its records were written to the output: each record is written at least once, and
again by the next member if this one ends without its last commit. At the end, also after Ctrl-C, the position is
committed and the member leaves, so that the others need not wait for its session to end.

An output that is not read stops the heartbeats too. Then the group continues without this member, whose commit is
refused; it joins again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from heirlog.cli.coordinator_state import LOST_S, Explain
from heirlog.cli.described_groups import share_group
from heirlog.cli.errors import CommandError
from heirlog.cli.group_options import GroupOptions
from heirlog.cli.group_topics import GroupTopics
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.record_reader import Reader, Recreated, topic_ids
from heirlog.cli.waiting import Saying, once, say
from heirlog.client import offsets
from heirlog.client.assignment import is_cooperative, member_metadata
from heirlog.client.groups import COORDINATOR_LOST, NO_MEMBER_ID, REJOIN, GroupMember, State, Step
from heirlog.client.offsets import CommittedOffset, TopicPartition
from heirlog.protocol.batch import Record
from heirlog.protocol.consumer_protocol import CONSUMER, OwnedPartitions, assigned_partitions
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

PAUSE_S = 0.1
ROUNDS_AT_ONCE = 3
"""A coordinator that cannot write the assignment of members asks them to join again, each time at once."""
ANSWER_S = 30.0
LEAVE_S = 5.0


class GroupReader:
    def __init__(
        self,
        client: Client,
        group: str,
        topics: GroupTopics,
        *,
        options: GroupOptions,
        from_beginning: bool,
        until_end: bool,
        isolation: int = 0,
        left: int | None = None,
        explain: Explain,
    ) -> None:
        """explain: why the coordinator does not answer.

        from_beginning: where the group has no offset; otherwise it begins at the end. left: as of `Reader`."""
        self._client = client
        self._group = group
        self._topics = topics
        self._options = options
        self._from_beginning = from_beginning
        self._until_end = until_end
        self._isolation = isolation
        self._left = left
        self._explain = explain
        self._handed_out: dict[TopicPartition, int] = {}
        self._written: dict[TopicPartition, int] = {}
        """Positions after what was written to the output, of this generation's partitions."""
        self._committed: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, bytes | None] = {}
        """Of the topics that it has read: a committed offset means nothing in another topic of the same name."""
        self._next_heartbeat_s = 0.0
        self._last_error = ErrorCode.NONE
        self._owned = OwnedPartitions()
        """What the last generation of this member assigned to it."""
        self._member = GroupMember(
            group,
            protocol_type=CONSUMER,
            protocols=self._protocols,
            assign=topics.assign,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            instance_id=options.instance_id,
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
            self._join()
            if self._gives_up_partitions():
                continue
            try:
                if (yield from self._reading()):
                    return
            except Recreated as error:
                if self._until_end:
                    raise
                say(f"topic {error.topic} was deleted and created again: reading the new one from its beginning")
                self._written = {at: to for at, to in self._written.items() if at[0] != error.topic}
                self._rejoin()
            except (CommandError, KafkaError):
                gone = self._topics.missing_of(self._owned.partitions)
                if not gone or self._until_end:
                    raise
                print(f"topic {', '.join(gone)} does not exist any more: waiting for it", file=sys.stderr, flush=True)
                self._rejoin()

    def _reading(self) -> Generator[list[tuple[TopicPartition, list[Record]]], None, bool]:
        """Whether it is the end; otherwise the generation is over. Raises CommandError, KafkaError, OSError."""
        reader = self._reader()
        self._handed_out = self._written = dict(reader.positions)
        while self._is_member():
            for found in reader.rounds():
                self._handed_out = dict(reader.positions)
                self._left = reader.left
                yield found
                if not self._is_member():
                    break
            else:
                if self._until_end or self._left == 0:
                    return True
                # without a partition it is a member all the same, and may get one
                time.sleep(PAUSE_S)
        return False

    def _protocols(self) -> dict[str, bytes]:
        self._topics.joins()
        if self._member.member_id == NO_MEMBER_ID:
            # the group continues without this member: what it had belongs to others
            self._owned = OwnedPartitions()
        return member_metadata(self._options.strategies, self._topics.names, self._owned)

    def _gives_up_partitions(self) -> bool:
        """Notes what the new generation assigns; whether the member has joined again because of it."""
        assigned = assigned_partitions(self._member.assignment)
        lost = any(
            number not in assigned.get(topic, ())
            for topic, numbers in self._owned.partitions.items()
            for number in numbers
        )
        self._owned = OwnedPartitions(assigned, self._member.generation)
        if not (lost and is_cooperative(self._options.strategies)):
            return False
        self._member.rejoin()
        return True

    def _join(self) -> None:
        # around all requests: a coordinator that cannot store the group's state answers each of them soon
        since_s, rounds = time.monotonic(), 0
        with self._waiting():
            while self._member.state is not State.STABLE:
                rounds += self._member.state is State.JOINING
                if rounds > ROUNDS_AT_ONCE:
                    time.sleep(PAUSE_S)
                try:
                    self._ask()
                except KafkaError as error:
                    if error.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                        self._refuse_share_group()
                    if self._until_end:
                        self._refuse_to_wait()
                    raise
                if self._until_end and time.monotonic() - since_s >= LOST_S:
                    since_s = time.monotonic()
                    self._refuse_to_wait()

    def _refuse_share_group(self) -> None:
        """Raises CommandError if it is one."""
        if share_group(self._client, self._group) is not None:
            raise CommandError(
                f"{self._group} is a share group: consume --share-group {self._group} reads as a member of it"
            )

    def _refuse_to_wait(self) -> None:
        """Raises CommandError if the coordinator cannot work; for other members it is worth waiting."""
        why = self._explain(self._group)
        if why is not None:
            raise CommandError(f"group {self._group} had no coordinator for {LOST_S:.0f} s: {why}")

    def _rejoin(self) -> None:
        """With other topics. What was written is committed before, as the other members may get its partitions."""
        if self._member.state is State.STABLE:
            self._commit(ANSWER_S)
        if self._member.state is State.STABLE:
            self._member.rejoin()

    def _ask(self) -> None:
        """One request of the membership; the caller looks at its state afterwards."""
        request = self._member.request()
        held_s = self._member.answer_within_ms / 1000
        response = self._client.send_to_coordinator(
            self._group,
            request,
            error_code=lambda answer: int(answer.error_code),
            timeout_s=LOST_S if self._until_end else held_s + ANSWER_S,
            held_s=held_s if self._until_end else 0.0,
        )
        self._last_error = error_code(response.error_code)
        step = self._member.answered(request, response)
        if step in (Step.PAUSE, Step.FIND_COORDINATOR):
            time.sleep(PAUSE_S)
        self._next_heartbeat_s = time.monotonic() + self._options.heartbeat_interval_ms / 1000

    def _waiting(self) -> Saying:
        return Saying(once(self._waits_for))

    def _waits_for(self) -> str:
        why = self._explain(self._group)
        if why is not None:
            return f"waiting for the coordinator of group {self._group}: {why}"
        sentence = f"waiting for the coordinator of group {self._group}, or for its other members"
        if self._last_error not in COORDINATOR_LOST:
            return sentence
        return f"{sentence} ({self._last_error.name}); heirlog topics describe __consumer_offsets shows its replicas"

    def _is_member(self) -> bool:
        """Whether the generation is still the same. When a heartbeat is due, what was written is committed before it:
        the answer may be that there is a rebalance, which ends the generation.
        """
        if time.monotonic() >= self._next_heartbeat_s:
            self._commit(ANSWER_S)
            if self._member.state is State.STABLE:
                with self._waiting():
                    self._ask()
        if self._member.state is State.STABLE and self._topics.have_changed():
            self._rejoin()
        return self._member.state is State.STABLE

    def _reader(self) -> Reader:
        partitions = [
            (topic, number)
            for topic, numbers in assigned_partitions(self._member.assignment).items()
            for number in numbers
        ]
        from heirlog.blocking import EARLIEST, LATEST

        ids = topic_ids(self._client, partitions)
        anew = {name for name, topic_id in ids.items() if self._topic_ids.get(name, topic_id) != topic_id}
        committed = self._client.committed(self._group, partitions) if partitions else {}
        # the first position in a partition is committed too, as Kafka's consumers do: a member that begins at the end
        # would otherwise begin at the end again, and skip what was appended between two runs
        self._committed = {at: found.offset for at, found in committed.items()}
        begins = self._client.list_offsets(dict.fromkeys(partitions, EARLIEST)) if partitions else {}
        ends = self._client.list_offsets(dict.fromkeys(partitions, LATEST), self._isolation) if partitions else {}
        positions = {}
        for at in partitions:
            if at[0] in anew:
                positions[at] = begins[at].offset
                continue
            if at in committed and committed[at].offset < begins[at].offset:
                raise CommandError(
                    f"group {self._group} stopped at offset {committed[at].offset} of {at[0]}-{at[1]}, which begins at "
                    f"{begins[at].offset} now: the records between were deleted. To go on behind them: "
                    f"{self._to_earliest(at)}"
                )
            unread = begins[at] if self._from_beginning else ends[at]
            positions[at] = committed[at].offset if at in committed else unread.offset
        stops = {at: ends[at].offset for at in partitions} if self._until_end else None
        self._topic_ids |= ids
        return Reader(self._client, positions, ids, stops, self._isolation, self._left, self._to_earliest)

    def _to_earliest(self, at: TopicPartition) -> str:
        return f"heirlog groups reset-offsets --group {self._group} --topic {at[0]} --to-earliest --execute"

    def _commit(self, timeout_s: float) -> None:
        committing = {at: CommittedOffset(to) for at, to in self._written.items() if to != self._committed.get(at)}
        if not committing:
            return
        request = self._member.commit(committing)

        def code(response: Any) -> int:
            codes = {error_code(found) for _, found, _ in offsets.commit_codes(response)}
            return next((int(found) for found in codes if found in COORDINATOR_LOST), 0)

        with self._waiting():
            response = self._client.send_to_coordinator(
                self._group, request, error_code=code, newest=offsets.NEWEST_COMMIT_BY_NAME, timeout_s=timeout_s
            )
        for at, found, _ in offsets.commit_codes(response):
            failure = error_code(found)
            if failure is ErrorCode.NONE:
                self._committed = {**self._committed, at: committing[at].offset}
            elif failure is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # the topic is deleted, and so is what could be read twice
                self._written = {to: offset for to, offset in self._written.items() if to != at}
            elif failure not in REJOIN | COORDINATOR_LOST:
                refused = f"the offset of group {self._group} in {at[0]}-{at[1]} is not committed: {failure.name}"
                raise CommandError(with_next_step(refused, failure))
        self._member.committed(request, response)

    def _leave(self) -> None:
        if self._member.state is State.STABLE:
            self._commit(LEAVE_S)
            if any(to != self._committed.get(at) for at, to in self._written.items()):
                say(f"the last positions of group {self._group} are not committed: it reads those records again")
        if self._member.member_id and self._options.instance_id is None:
            # a static member keeps its place until its session ends (KIP-345)
            self._client.send_to_coordinator(
                self._group,
                self._member.leave(),
                error_code=lambda answer: int(answer.error_code),
                timeout_s=LEAVE_S,
            )
