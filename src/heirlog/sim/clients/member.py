"""A member of a consumer group, and whoever asks what the group has committed.

    find the coordinator --> JoinGroup --> SyncGroup --> OffsetFetch --> [ Heartbeat | OffsetCommit ] ...
          ^                     ^                                              |              |
          |                     +---- rebalance, unknown member, old generation+--------------+
          +-------------------------- no answer, not the coordinator ----------+--------------+

The members share out the partitions of one topic. They read nothing: each commit of an owner is one further than what
it found or committed before, with a token that nobody else uses, so that every answer to OffsetFetch says which commit
it stems from. Now and then a member leaves and comes back as a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heirlog.env import Cancel, Env, SendFailure
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_MS, RETRY_MS, Client, Leader
from heirlog.sim.groups import Commit, GroupBook, Owned, Read

SESSION_MS = 3000
REBALANCE_MS = 2500
HEARTBEAT_MS = 600
COMMIT_MS = 700
STAYS_MS = 6000
PROTOCOL = "shared out"
GROUP_KEY = 0
_STRANGER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})
"""Answers that say: join again. Nothing was stored."""


class GroupClient(Client):
    """Knows the coordinator of one group. `topic`: whose offsets are committed."""

    def __init__(self, env: Env, name: str, bootstrap: Sequence[Endpoint], topic: str, book: GroupBook) -> None:
        super().__init__(env, name, bootstrap, [topic])
        self.topic = topic
        self.book = book
        self.coordinator: Endpoint | None = None

    def find(self, then: Callable[[], None]) -> None:
        """Ask any broker who the coordinator is, until one says it."""

        def told(response: Any) -> None:
            if isinstance(response, SendFailure):
                self.brokers = {}
            elif response.coordinators[0].error_code == ErrorCode.NONE:
                found = response.coordinators[0]
                self.coordinator = Endpoint(found.host, found.port)
                then()
                return
            self.env.call_later(RETRY_MS, lambda: self.find(then))

        request = FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=[self.book.group])
        self.env.send(self.any_endpoint(), "find", request, told, REQUEST_TIMEOUT_MS)

    def ask(self, channel: str, request: Any, answered: Callable[[Any], None], timeout_ms: int) -> None:
        assert self.coordinator is not None
        self.env.send(self.coordinator, channel, request, answered, timeout_ms)

    def partitions(self) -> list[Leader]:
        return [leader for _, leader in sorted(self.leaders.items())]

    def fetch_offsets(self, indexes: Sequence[int], then: Callable[[list[Read] | None], None]) -> None:
        """then(None) if nobody could tell."""
        sent = self.book.tick()

        def answered(response: Any) -> None:
            if isinstance(response, SendFailure) or response.groups[0].error_code != ErrorCode.NONE:
                then(None)
                return
            found = [partition for topic in response.groups[0].topics for partition in topic.partitions]
            if any(partition.error_code != ErrorCode.NONE for partition in found):
                then(None)
                return
            reads = [
                Read(
                    partition.partition_index,
                    partition.metadata if partition.committed_offset >= 0 else None,
                    partition.committed_offset,
                    sent,
                )
                for partition in found
            ]
            self.book.reads.extend(reads)
            then(reads)

        topic_id = self.partitions()[0].topic_id
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopics(
                name=self.topic, topic_id=topic_id, partition_indexes=list(indexes)
            )
        ]
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=self.book.group, topics=topics)
        self.ask("offsets", OffsetFetchRequest(groups=[group]), answered, REQUEST_TIMEOUT_MS)


class OffsetsReader(GroupClient):
    """Asks once what the group has committed, until it is told. `done` says that it was."""

    done = False

    def start(self) -> None:
        self.refresh(self._begin)

    def _begin(self) -> None:
        if not self.knows_its_topics:
            self.later(self._begin)
            return
        self.find(lambda: self.fetch_offsets([leader.index for leader in self.partitions()], self._answered))

    def _answered(self, reads: list[Read] | None) -> None:
        if reads is None:
            self.env.call_later(RETRY_MS, self._begin)
            return
        # asked when all is quiet: everybody knows who the coordinator is
        for read in reads:
            read.confirmed = True
        self.done = True


class Member(GroupClient):
    def __init__(
        self, env: Env, name: str, bootstrap: Sequence[Endpoint], topic: str, book: GroupBook, now_ms: Callable[[], int]
    ) -> None:
        """now_ms: the run's own time."""
        super().__init__(env, name, bootstrap, topic, book)
        self._now_ms = now_ms
        self._member_id = ""
        self._generation = -1
        self._life = 0
        """Grows with each new attempt to join: whatever was under way for a former one is over."""
        self._tokens = 0
        self.owned: dict[int, int] = {}
        """What this member owns, and the offset that it committed or found last."""
        self._timers: list[Cancel] = []
        self._unconfirmed: list[Owned | Read] = []
        """What this life was told, until a commit is answered."""

    @property
    def generation(self) -> int:
        """-1 while it is in none."""
        return self._generation

    def start(self) -> None:
        self.refresh(self._begin)

    def _begin(self) -> None:
        if not self.knows_its_topics:
            self.later(self._begin)
        else:
            self._join_anew()

    def _join_anew(self, *, forget: bool = False) -> None:
        """Give up the place in this generation, find the coordinator, join. forget: as a new member."""
        self._life += 1
        self._generation = -1
        self.owned = {}
        for cancel in self._timers:
            cancel()
        self._timers = []
        if forget:
            self._member_id = ""
        if self.stopped:
            return
        life = self._life
        self.find(lambda: self._join() if life == self._life else None)

    def _again(self, *, forget: bool = False) -> None:
        self._life += 1
        life = self._life
        self.env.call_later(RETRY_MS, lambda: self._join_anew(forget=forget) if life == self._life else None)

    def _unless_over(self, fn: Callable[[Any], None]) -> Callable[[Any], None]:
        """An answer to this life only."""
        life = self._life

        def guarded(response: Any) -> None:
            if life != self._life:
                return
            fn(response)

        return guarded

    def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.book.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            protocol_type="simulated",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"")],
        )
        self.ask("group", request, self._unless_over(self._joined), REBALANCE_MS + SESSION_MS + REQUEST_TIMEOUT_MS)

    def _joined(self, response: Any) -> None:
        if isinstance(response, SendFailure):
            self._again()
        elif response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = response.member_id
            self._join()
        elif response.error_code != ErrorCode.NONE:
            self._again(forget=response.error_code == ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self._member_id = response.member_id
            members = sorted(member.member_id for member in response.members)
            self._sync(response.generation_id, self._shared_out(members) if members else [])

    def _shared_out(self, members: list[str]) -> list[SyncGroupRequest.SyncGroupRequestAssignment]:
        """Whoever leads the group decides."""
        shares: dict[str, list[int]] = {member: [] for member in members}
        for leader in self.partitions():
            shares[members[leader.index % len(members)]].append(leader.index)
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=bytes(share))
            for member, share in shares.items()
        ]

    def _sync(self, generation: int, assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]) -> None:
        sent, sent_ms = self.book.tick(), self._now_ms()
        request = SyncGroupRequest(
            group_id=self.book.group,
            generation_id=generation,
            member_id=self._member_id,
            protocol_type="simulated",
            protocol_name=PROTOCOL,
            assignments=assignments,
        )

        def synced(response: Any) -> None:
            if isinstance(response, SendFailure):
                self._again()
            elif response.error_code != ErrorCode.NONE:
                self._again(forget=response.error_code == ErrorCode.UNKNOWN_MEMBER_ID)
            else:
                mine = tuple(response.assignment)
                owned = Owned(generation, self._member_id, mine, sent, self.book.tick(), sent_ms)
                self.book.owned.append(owned)
                self._unconfirmed = [owned]
                self._settle(generation, mine)

        self.ask("group", request, self._unless_over(synced), REBALANCE_MS + REQUEST_TIMEOUT_MS)

    def _settle(self, generation: int, mine: tuple[int, ...]) -> None:
        self._generation = generation
        self._every(HEARTBEAT_MS, self._beat)
        stays_ms = self.env.random.randrange(STAYS_MS // 2, STAYS_MS * 3)
        self._timers.append(self.env.call_later(stays_ms, self._leave))
        if mine:
            self._take_over(mine)

    def _take_over(self, mine: tuple[int, ...]) -> None:
        """Where did the former owner stop?"""

        def told(reads: list[Read] | None) -> None:
            if reads is None:
                self._timers.append(self.env.call_later(RETRY_MS, lambda: self._take_over(mine)))
                return
            self._unconfirmed += reads
            self.owned = {read.partition: max(read.offset, 0) for read in reads}
            self._every(COMMIT_MS, self._commit)

        life = self._life
        self.fetch_offsets(mine, lambda reads: told(reads) if life == self._life else None)

    def _every(self, interval_ms: int, fn: Callable[[Callable[[], None]], None]) -> None:
        """fn(again): once more, `interval_ms` after `again` was called."""
        self._timers.append(self.env.call_later(interval_ms, lambda: fn(lambda: self._every(interval_ms, fn))))

    def _beat(self, again: Callable[[], None]) -> None:
        request = HeartbeatRequest(group_id=self.book.group, generation_id=self._generation, member_id=self._member_id)
        self.ask(
            "group", request, self._unless_over(lambda response: self._beaten(response, again)), REQUEST_TIMEOUT_MS
        )

    def _beaten(self, response: Any, again: Callable[[], None]) -> None:
        if isinstance(response, SendFailure):
            self._again()
        elif response.error_code == ErrorCode.NONE:
            again()
        else:
            self._again(forget=response.error_code == ErrorCode.UNKNOWN_MEMBER_ID)

    def _commit(self, again: Callable[[], None]) -> None:
        made: dict[int, Commit] = {}
        places = []
        for index in sorted(self.owned):
            self.owned[index] += 1
            self._tokens += 1
            token = f"{self.name}/{self._tokens}"
            made[index] = Commit(index, self.owned[index], self.book.tick(), self._now_ms())
            self.book.commits[token] = made[index]
            places.append(
                OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=self.owned[index], committed_metadata=token
                )
            )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=self.topic, topic_id=self.partitions()[0].topic_id, partitions=places
        )
        request = OffsetCommitRequest(
            group_id=self.book.group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=[topic],
        )
        committed = self._unless_over(lambda response: self._committed(response, again))
        unconfirmed = list(self._unconfirmed)

        def answered(response: Any) -> None:
            # also for a life that is over: what was answered was answered
            if not isinstance(response, SendFailure):
                self._write_down(response, made, unconfirmed)
            committed(response)

        self.ask("commit", request, answered, REQUEST_TIMEOUT_MS)

    def _write_down(self, response: Any, made: dict[int, Commit], unconfirmed: list[Owned | Read]) -> None:
        for partition in response.topics[0].partitions:
            commit = made[partition.partition_index]
            if partition.error_code == ErrorCode.NONE:
                commit.answered = self.book.tick()
                for told in unconfirmed:
                    told.confirmed = True
            else:
                commit.refused = partition.error_code in _STRANGER

    def _committed(self, response: Any, again: Callable[[], None]) -> None:
        if isinstance(response, SendFailure):
            self._again()
            return
        codes = {partition.error_code for partition in response.topics[0].partitions}
        if codes <= {ErrorCode.NONE}:
            again()
        else:
            self._again(forget=ErrorCode.UNKNOWN_MEMBER_ID in codes)

    def _leave(self) -> None:
        if self.stopped:
            return
        member = LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        request = LeaveGroupRequest(group_id=self.book.group, members=[member])
        self.ask("group", request, self._unless_over(lambda _: self._again(forget=True)), REQUEST_TIMEOUT_MS)
