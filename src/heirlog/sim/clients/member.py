"""A member of a consumer group, and a client that asks what the group has committed.

The product handles the membership and the requests to the coordinator (`heirlog.client.groups`). The members divide the
partitions of one topic among them. They read nothing: each commit of an owner is one higher than the offset that it
found or committed before, and has a token that no other commit has. So every answer to OffsetFetch shows which commit
it contains. Now and then a member leaves and comes back as a new member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heirlog.client import coordinators, offsets
from heirlog.client.call import Send
from heirlog.client.groups import REJOIN, GroupMember, State, Step
from heirlog.client.offsets import NEWEST_COMMIT_BY_NAME, CommittedOffset, TopicPartition
from heirlog.env import Cancel
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetFetchRequest, SyncGroupRequest
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import CoordinatorType, Endpoint
from heirlog.sim.clients.client import CALL_TIMEOUT_S, REQUEST_TIMEOUT_MS, REQUEST_TIMEOUT_S, RETRY_MS, Client
from heirlog.sim.env import SimEnv
from heirlog.sim.group_history import Commit, GroupHistory, Owned, Read

SESSION_MS = 3000
REBALANCE_MS = 2500
HEARTBEAT_MS = 600
COMMIT_MS = 700
STAYS_MS = 3000
PROTOCOL = "shared out"


class GroupClient(Client):
    """A client of one group. `topic`: whose offsets are committed."""

    def __init__(
        self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topic: str, group_history: GroupHistory
    ) -> None:
        super().__init__(env, name, bootstrap, [topic])
        self.topic = topic
        self.group_history = group_history

    def partitions(self) -> list[int]:
        return sorted(self.cluster.view.topics[self.topic].partitions)

    def fetch_offsets(self, indexes: Sequence[int], then: Callable[[list[Read] | None], None]) -> None:
        """then(None) where no coordinator answered in time."""
        sent = 0

        def sending(message: Message) -> None:
            nonlocal sent
            if isinstance(message, OffsetFetchRequest):
                sent = self.group_history.tick()

        def answered(found: Mapping[TopicPartition, CommittedOffset]) -> None:
            reads = [self._read(index, found.get((self.topic, index)), sent) for index in indexes]
            self.group_history.reads.extend(reads)
            then(reads)

        wanted = [(self.topic, index) for index in indexes]
        call = coordinators.committed(self.cluster, self.group_history.group, wanted, CALL_TIMEOUT_S)
        self.driver.run(call, answered, lambda _: then(None), sending)

    def _read(self, index: int, found: CommittedOffset | None, sent: int) -> Read:
        return Read(index, None, -1, sent) if found is None else Read(index, found.metadata, found.offset, sent)


class OffsetsReader(GroupClient):
    """Asks what the group has committed, until a coordinator answers: then it is `done`."""

    done = False

    def start(self) -> None:
        self.find_topics(lambda: self.fetch_offsets(self.partitions(), self._answered))

    def _answered(self, reads: list[Read] | None) -> None:
        if reads is None:
            self.start()
            return
        # asked when all is quiet: all nodes know the coordinator
        for read in reads:
            read.confirmed = True
        self.done = True


class Participant(GroupClient):
    """Asks the coordinator, step by step, for what its membership needs next; now and then it may fall silent."""

    def __init__(
        self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topic: str, group_history: GroupHistory
    ) -> None:
        super().__init__(env, name, bootstrap, topic, group_history)
        self._step_number = 0
        """Grows with each step of the membership, so that a step that was planned earlier is dropped."""
        self._silent = False

    def _send(self) -> None:
        """What the membership asks next, of the coordinator."""
        raise NotImplementedError

    def _send_in(self, pause_ms: int) -> None:
        step_number = self._step_number
        self.env.call_later(pause_ms, lambda: self._send() if step_number == self._step_number else None)

    def _find(self) -> None:
        step_number, retry_timer = self._step_number, self.cluster.retry_timer(CALL_TIMEOUT_S)
        self.driver.run(
            coordinators.find_coordinator(self.cluster, self.group_history.group, retry_timer),
            lambda _: self._send() if step_number == self._step_number else None,
            lambda _: self._find() if step_number == self._step_number else None,
        )

    def _fall_silent(self) -> None:
        """No heartbeats for a while; the application continues."""
        self._silent = True

        def wake() -> None:
            self._silent = False
            self._step_number += 1
            self._send()

        self.env.call_later(self.env.random.randrange(SESSION_MS // 2, SESSION_MS * 2), wake)


class Member(Participant):
    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topic: str,
        group_history: GroupHistory,
        now_ms: Callable[[], int],
    ) -> None:
        """now_ms: the run's own time."""
        super().__init__(env, name, bootstrap, topic, group_history)
        self._now_ms = now_ms
        self._membership = self._new_membership()
        self._membership_number = 0
        """Grows each time the member leaves or is removed from the group. Answers to its earlier requests do not count.
        """
        self._tokens = 0
        self.owned: dict[int, int] = {}
        """What this member owns, and the offset that it committed or found last."""
        self._timers: list[Cancel] = []
        """Of this membership."""
        self._unconfirmed: list[Owned | Read] = []
        """What coordinators answered in this membership, until a commit is answered."""

    def _new_membership(self) -> GroupMember:
        return GroupMember(
            self.group_history.group,
            protocol_type="simulated",
            protocols=lambda: {PROTOCOL: b""},
            assign=self._assign_partitions,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )

    @property
    def generation(self) -> int:
        """-1 while it is in none."""
        return self._membership.generation if self._membership.state is State.STABLE else -1

    def start(self) -> None:
        self.find_topics(self._send)

    def _assign_partitions(self, _: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The member that leads the group decides."""
        names = sorted(members)
        shares: dict[str, list[int]] = {name: [] for name in names}
        for index in self.partitions():
            shares[names[index % len(names)]].append(index)
        return {name: bytes(share) for name, share in shares.items()}

    # the membership

    def _send(self) -> None:
        if self._silent:
            return
        if self.stopped and self._membership.state is State.JOINING:
            return
        endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(self.group_history.group)
        if endpoint is None:
            self._find()
            return
        request = self._membership.request()
        timeout_s = (self._membership.answer_within_ms + REQUEST_TIMEOUT_MS) / 1000
        sent, sent_ms = self.group_history.tick(), self._now_ms()

        def answered(response: Any) -> None:
            if isinstance(response, OSError):
                self._next(self._membership.unanswered(request))
                return
            step = self._membership.answered(request, response)
            if step is Step.HEARTBEAT and isinstance(request, SyncGroupRequest):
                self._settle(sent, sent_ms)
            self._next(step)

        self.driver.send(Send(endpoint, request, timeout_s), "group", answered)

    def _next(self, step: Step | None) -> None:
        """None: that was about an earlier generation."""
        if step is None:
            return
        self._step_number += 1
        if self._membership.state is not State.STABLE:
            self._membership_ended()
        if step is Step.SEND:
            self._send()
            return
        if step is Step.FIND_COORDINATOR:
            self.cluster.coordinators[CoordinatorType.GROUP].pop(self.group_history.group, None)
        self._send_in(HEARTBEAT_MS if step is Step.HEARTBEAT else RETRY_MS)

    def _membership_ended(self) -> None:
        self._membership_number += 1
        self.owned = {}
        for cancel in self._timers:
            cancel()
        self._timers = []

    def _settle(self, sent: int, sent_ms: int) -> None:
        one = self._membership
        mine = self._assigned()
        owned = Owned(one.generation, one.member_id, mine, sent, self.group_history.tick(), sent_ms)
        self.group_history.owned.append(owned)
        self._unconfirmed = [owned]
        stays_ms = self.env.random.randrange(STAYS_MS // 2, STAYS_MS * 3)
        self._timers.append(self.env.call_later(stays_ms, self._leave))
        if mine:
            self._fetch_positions(mine)

    def _assigned(self) -> tuple[int, ...]:
        return tuple(self._membership.assignment)

    def _leave(self) -> None:
        if self.stopped:
            return
        endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(self.group_history.group)
        request = self._membership.leave()
        self._membership_ended()
        if endpoint is None:
            self._next(Step.FIND_COORDINATOR)
        else:
            self._step_number += 1
            # nothing depends on the answer: without it the session ends
            send = Send(endpoint, request, REQUEST_TIMEOUT_S)
            self.driver.send(send, "group", lambda _: self._next(Step.PAUSE))

    # its offsets

    def _fetch_positions(self, mine: tuple[int, ...]) -> None:
        """Find the offset at which the former owner stopped."""
        membership_number = self._membership_number

        def answered(reads: list[Read] | None) -> None:
            if membership_number != self._membership_number:
                return
            if reads is None:
                self._fetch_positions(mine)
                return
            self._unconfirmed += reads
            self.owned = {read.partition: max(read.offset, 0) for read in reads}
            self._commit_later()

        self.fetch_offsets(mine, answered)

    def _commit_later(self) -> None:
        self._timers.append(self.env.call_later(COMMIT_MS, self._commit))

    def _commit(self) -> None:
        endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(self.group_history.group)
        if endpoint is None:  # the next heartbeat finds it
            self._commit_later()
            return
        made: dict[int, Commit] = {}
        committing: dict[TopicPartition, CommittedOffset] = {}
        for index in sorted(self.owned):
            self.owned[index] += 1
            self._tokens += 1
            token = f"{self.name}/{self._tokens}"
            made[index] = Commit(index, self.owned[index], self.group_history.tick(), self._now_ms())
            self.group_history.commits[token] = made[index]
            self._committing(index, token)
            committing[self.topic, index] = CommittedOffset(self.owned[index], metadata=token)
        request = self._membership.commit(committing)
        unconfirmed, membership_number = list(self._unconfirmed), self._membership_number

        def answered(response: Any) -> None:
            # also of an earlier membership: the answer counts all the same
            if isinstance(response, OSError):
                step = Step.FIND_COORDINATOR if membership_number == self._membership_number else None
            else:
                self._record_commits(response, made, unconfirmed)
                step = self._membership.committed(request, response)
            if step is not None and step is not Step.HEARTBEAT:
                self._next(step)
            if membership_number == self._membership_number:
                self._commit_later()

        self.driver.send(Send(endpoint, request, REQUEST_TIMEOUT_S, NEWEST_COMMIT_BY_NAME), "commit", answered)

    def _committing(self, index: int, token: str) -> None:
        """An offset of the partition is being committed."""

    def _record_commits(self, response: Any, made: dict[int, Commit], unconfirmed: list[Owned | Read]) -> None:
        for (_, index), code, _ in offsets.commit_codes(response):
            if code == ErrorCode.NONE:
                made[index].answered = self.group_history.tick()
                for said in unconfirmed:
                    said.confirmed = True
            else:
                made[index].refused = code in REJOIN
