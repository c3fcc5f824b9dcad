"""A member of a group of the consumer protocol; it commits as `member.Member` does, so each answer shows a commit.

Now and then it leaves and comes back as a new member, or falls silent for longer than its session, and continues as if
nothing had happened: then the group has given its partitions to others, and its commits must be refused. A static
member leaves for a while and comes back under another id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heirlog.client import offsets
from heirlog.client.call import Send
from heirlog.client.consumer_groups import NOT_COMMITTED, ConsumerProtocolMember
from heirlog.client.groups import Step
from heirlog.client.offsets import NEWEST_COMMIT_BY_NAME, CommittedOffset, TopicPartition
from heirlog.env import Cancel
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import CoordinatorType, Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_S, RETRY_MS
from heirlog.sim.clients.member import COMMIT_MS, SESSION_MS, Participant
from heirlog.sim.consumer_group_history import AnsweredEpoch, ConsumerGroupHistory, Term
from heirlog.sim.env import SimEnv
from heirlog.sim.group_history import Commit, Read

REBALANCE_MS = 2500
HEARTBEAT_MS = 400
STAYS_MS = 4000
REVOKES_MS = 600
LATE_COMMIT_MS = 3000
CONFIG = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}


class ConsumerMember(Participant):
    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topic: str,
        group_history: ConsumerGroupHistory,
        now_ms: Callable[[], int],
        instance_id: str | None = None,
        *,
        by_regex: bool = False,
        also: Sequence[str] = (),
    ) -> None:
        """now_ms: the run's own time. by_regex: it subscribes by a regular expression. also: topics that it subscribes
        to and leaves alone.
        """
        super().__init__(env, name, bootstrap, topic, group_history)
        self.consumer_history = group_history
        self._now_ms = now_ms
        self._instance_id = instance_id
        self._by_regex = by_regex
        self._subscribed = [topic, *also]
        self._lives = 0
        self._membership = self._new_member()
        self._tokens = 0
        self._terms: dict[int, Term] = {}
        self._epoch_before = 0
        """That of the last answer but one; a slow part of the application may still name it."""
        self.owned: dict[int, int] = {}
        """What this member owns, and the offset that it committed or found last."""
        self._timers: list[Cancel] = []
        self._settled = False
        self._unconfirmed: list[Read] = []

    @property
    def _passing(self) -> tuple[ErrorCode, ...]:
        """Errors that pass by themselves."""
        switched_off = (ErrorCode.UNSUPPORTED_VERSION,) if self.consumer_history.is_mixed else ()
        return (ErrorCode.UNRELEASED_INSTANCE_ID, *switched_off)

    def _new_member(self) -> ConsumerProtocolMember:
        self._lives += 1
        return ConsumerProtocolMember(
            self.group_history.group,
            f"{self.name}.{self._lives}",
            topics=self._subscribed,
            rebalance_timeout_ms=REBALANCE_MS,
            instance_id=self._instance_id,
        )

    @property
    def epoch(self) -> int:
        return self._membership.epoch

    @property
    def has(self) -> list[int]:
        """Partitions, by what the coordinator said last."""
        known = self.cluster.view.topics.get(self.topic)
        return sorted(self._membership.owned.get(bytes((known and known.topic_id) or b""), ()))

    def start(self) -> None:
        self.find_topics(self._begin)

    def _begin(self) -> None:
        self._plan_leave()
        self._send()

    # the membership

    def _send(self) -> None:
        if self.stopped or self._silent:
            return
        endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(self.group_history.group)
        if endpoint is None:
            self._find()
            return
        member = self._membership
        request = member.request()
        if self._by_regex and request.subscribed_topic_names is not None:
            request.subscribed_topic_names, request.subscribed_topic_regex = [], "|".join(self._subscribed)
        sent, sent_ms = self.group_history.tick(), self._now_ms()

        def answered(response: Any) -> None:
            if member is not self._membership:
                return
            if isinstance(response, OSError):
                self._next(member.unanswered(request))
                return
            try:
                step = member.answered(request, response)
            except KafkaError as error:
                if error.code is ErrorCode.FENCED_INSTANCE_ID:
                    # a lossy election may have brought its former process back
                    self.consumer_history.fenced.append(member.member_id)
                    self._membership = self._new_member()
                    self._settle()
                elif error.code is ErrorCode.GROUP_ID_NOT_FOUND and self.consumer_history.is_mixed:
                    # its session ended, and the group of those that were left is a classic one
                    self._membership = self._new_member()
                    self._settle()
                else:
                    # its former process may still have the instance, or an operator has switched the protocol off
                    assert error.code in self._passing, str(error)
                step = Step.PAUSE
            if step is Step.HEARTBEAT:
                self._epoch_before = request.member_epoch
                one = AnsweredEpoch(member.member_id, member.epoch, sent, self.group_history.tick(), sent_ms)
                self.consumer_history.answers.append(one)
            self._follow()
            self._next(step)

        self.driver.send(Send(endpoint, request, REQUEST_TIMEOUT_S), "group", answered)

    def _next(self, step: Step | None) -> None:
        if step is None:
            return
        self._step_number += 1
        if step is Step.SEND:
            self._send()
            return
        if step is Step.FIND_COORDINATOR:
            self.cluster.coordinators[CoordinatorType.GROUP].pop(self.group_history.group, None)
        self._send_in((self._membership.interval_ms or RETRY_MS) if step is Step.HEARTBEAT else RETRY_MS)

    def _follow(self) -> None:
        """Give up what the group wants back after a moment; begin with what is new."""
        member = self._membership
        if member.revoking:
            number = self._step_number

            def give_up() -> None:
                if member is self._membership and member.revoking:
                    member.revoked()
                    self._settle()
                    if number <= self._step_number:
                        self._step_number += 1
                        self._send()

            self.env.call_later(self.env.random.randrange(0, REVOKES_MS), give_up)
        self._settle()

    def _settle(self) -> None:
        has = set(self.has)
        for index in sorted(set(self._terms) - has):
            term, offset = self._terms.pop(index), self.owned.pop(index, None)
            if offset is not None and not self.env.random.randrange(0, 3):
                self._commit_late(index, term, offset)
        new = sorted(has - set(self._terms))
        tick, now_ms = self.group_history.tick(), self._now_ms()
        for index in new:
            self._terms[index] = Term(index, self._membership.member_id, tick, now_ms)
        if new:
            self._fetch_positions(new)

    def _plan_leave(self) -> None:
        stays_ms = self.env.random.randrange(STAYS_MS // 2, STAYS_MS * 3)
        self._timers.append(self.env.call_later(stays_ms, self._leave))

    def _leave(self) -> None:
        if self.stopped or self._settled:
            return
        self._plan_leave()
        what = self.env.random.randrange(0, 4)
        if what == 0:
            self._fall_silent()
            return
        endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(self.group_history.group)
        request = self._membership.leave(for_a_while=self._instance_id is not None and what < 3)
        if what != 1:
            self._membership = self._new_member()
        self._settle()
        self._step_number += 1
        if endpoint is not None and what != 3:
            # nothing depends on the answer: without it the session ends
            self.driver.send(Send(endpoint, request, REQUEST_TIMEOUT_S), "group", lambda _: None)
        self._send_in(RETRY_MS)

    def settle_down(self) -> None:
        """Stay in the group from now on."""
        self._settled = True

    def stop(self) -> None:
        super().stop()
        for cancel in self._timers:
            cancel()

    # its offsets

    def _fetch_positions(self, indexes: Sequence[int]) -> None:
        terms = {index: self._terms[index] for index in indexes}

        def answered(reads: list[Read] | None) -> None:
            current = [index for index, term in terms.items() if self._terms.get(index) is term]
            if reads is None:
                if current and not self.stopped:
                    self._fetch_positions(current)
                return
            self._unconfirmed += [read for read in reads if read.partition in current]
            for read in reads:
                if read.partition in current:
                    self.owned[read.partition] = max(read.offset, 0)
            self._commit_later()

        self.fetch_offsets(indexes, answered)

    def _commit_later(self) -> None:
        self._timers.append(self.env.call_later(COMMIT_MS, self._commit))

    def _commit(self) -> None:
        if self.stopped or not self.owned:
            return
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
            self.consumer_history.term_of[token] = self._terms[index]
            committing[self.topic, index] = CommittedOffset(self.owned[index], metadata=token)
        member, unconfirmed = self._membership, list(self._unconfirmed)
        request = member.commit(committing)

        def answered(response: Any) -> None:
            if not isinstance(response, OSError):
                self._record_commits(response, made, unconfirmed)
            self._commit_later()

        self.driver.send(Send(endpoint, request, REQUEST_TIMEOUT_S, NEWEST_COMMIT_BY_NAME), "commit", answered)

    def _commit_late(self, index: int, term: Term, offset: int) -> None:
        """A slow part of the application commits a partition after the member has given it up."""
        member, epoch = self._membership, self._membership.epoch or self._epoch_before

        def commit() -> None:
            endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(self.group_history.group)
            if endpoint is None or self.stopped:
                return
            self._tokens += 1
            token = f"{self.name}/{self._tokens}"
            made = Commit(index, offset + 1, self.group_history.tick(), self._now_ms())
            self.group_history.commits[token], self.consumer_history.term_of[token] = made, term
            request = member.commit({(self.topic, index): CommittedOffset(offset + 1, metadata=token)})
            request.generation_id_or_member_epoch, request.member_id = epoch, term.member
            self.driver.send(
                Send(endpoint, request, REQUEST_TIMEOUT_S, NEWEST_COMMIT_BY_NAME),
                "commit",
                lambda got: None if isinstance(got, OSError) else self._record_commits(got, {index: made}, []),
            )

        self.env.call_later(self.env.random.randrange(0, LATE_COMMIT_MS), commit)

    def _record_commits(self, response: Any, made: dict[int, Commit], unconfirmed: list[Read]) -> None:
        for (_, index), code, _ in offsets.commit_codes(response):
            if code == ErrorCode.NONE:
                made[index].answered = self.group_history.tick()
                for read in unconfirmed:
                    read.confirmed = True
            else:
                made[index].refused = code in NOT_COMMITTED
