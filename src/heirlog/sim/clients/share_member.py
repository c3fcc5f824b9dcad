"""A member of a share group: it acknowledges in every way, late and not at all; sometimes it leaves or is silent.

The product has the membership and the sessions (`heirlog.client.share_groups`). The requests to a broker take turns, as
those of `heirlog.blocking.share_consumer` do, so acknowledgements leave with the next fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heirlog.client import coordinators
from heirlog.client.call import Send
from heirlog.client.groups import Step
from heirlog.client.share_groups import Acknowledge, DeliveredRecords, ShareGroupMember, ShareSessionHandler
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareFetchRequest
from heirlog.protocol.types import CoordinatorType, Endpoint, PartitionKey, Uuid
from heirlog.sim.clients.client import CALL_TIMEOUT_S, REQUEST_TIMEOUT_S, RETRY_MS, Client
from heirlog.sim.env import SimEnv
from heirlog.sim.share_group_history import Acceptance, Delivery, SessionLife, ShareGroupHistory

LOCK_MS = 1500
MAX_WAIT_MS = 300
STAYS_MS = 5000
PROCESSES_MS = 700
COUNT_LIMIT = 5
CONFIG = {
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "400",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.delivery.count.limit": str(COUNT_LIMIT),
    "share.coordinator.state.topic.num.partitions": "1",
}


class ShareMember(Client):
    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topic: str,
        history: ShareGroupHistory,
        now_ms: Callable[[], int],
        leader_epoch: Callable[[Endpoint, PartitionKey], int],
        clock_rate: float = 1.0,
    ) -> None:
        """now_ms: the run's own time. leader_epoch: the one that the broker itself knows. clock_rate: of the fastest
        clock by which a broker may measure a lock.
        """
        super().__init__(env, name, bootstrap, [topic])
        self._topic = topic
        self._share_history = history
        self._now_ms = now_ms
        self._leader_epoch = leader_epoch
        self._clock_rate = clock_rate
        self._lives = 0
        self._membership = self._new_member()
        self._sessions: dict[Endpoint, ShareSessionHandler] = {}
        self._fetching: set[Endpoint] = set()
        self._lives_of: dict[ShareSessionHandler, SessionLife] = {}
        self._settled = False

    def _new_member(self) -> ShareGroupMember:
        self._lives += 1
        return ShareGroupMember(self._share_history.group, f"{self.name}.{self._lives}", topics=[self._topic])

    @property
    def is_member(self) -> bool:
        return self._membership.epoch > 0

    def settle_down(self) -> None:
        """Stay in the group, and accept what comes, from now on."""
        self._settled = True

    def start(self) -> None:
        self.find_topics(self._begin)

    def _begin(self) -> None:
        self._heartbeat()
        self._plan_leave()

    # the membership

    def _heartbeat(self) -> None:
        if self.stopped:
            return
        group = self._share_history.group
        endpoint = self.cluster.coordinators[CoordinatorType.GROUP].get(group)
        if endpoint is None:
            retry_timer = self.cluster.retry_timer(CALL_TIMEOUT_S)
            found = coordinators.find_coordinator(self.cluster, group, retry_timer)
            self.driver.run(found, lambda _: self._heartbeat(), lambda _: self._heartbeat())
            return
        member = self._membership

        def answered(response: Any) -> None:
            step = Step.FIND_COORDINATOR
            if member is self._membership and not isinstance(response, OSError):
                step = member.answered(response)
            if step is Step.FIND_COORDINATOR:
                self.cluster.coordinators[CoordinatorType.GROUP].pop(group, None)
            self._fetch_all()
            self.env.call_later(member.interval_ms if step is Step.HEARTBEAT else RETRY_MS, self._heartbeat)

        self.driver.send(Send(endpoint, member.request(), REQUEST_TIMEOUT_S), "share-group", answered)

    def _plan_leave(self) -> None:
        self.env.call_later(self.env.random.randrange(STAYS_MS // 2, STAYS_MS * 3), self._leave)

    def _leave(self) -> None:
        """Close the sessions and come back as another member; or only the latter, and the broker has to notice."""
        if self.stopped or self._settled:
            return
        self._plan_leave()
        closes = bool(self.env.random.randrange(0, 2))
        for endpoint, session in self._sessions.items():
            if closes and session.is_open and endpoint not in self._fetching:
                self.driver.send(Send(endpoint, session.close(), REQUEST_TIMEOUT_S), "share-fetch", lambda _: None)
        self._sessions = {}
        self._membership = self._new_member()

    # its sessions

    def _fetch_all(self) -> None:
        leaders: dict[Endpoint, set[PartitionKey]] = {}
        topic = self.cluster.view.topics.get(self._topic)
        if topic is None or self.stopped:
            return
        for key in self._membership.assigned:
            if key[0] != topic.topic_id:
                continue
            try:
                leaders.setdefault(self.cluster.view.leader(self._topic, key[1]).endpoint, set()).add(key)
            except KafkaError:
                self.refresh_then(self._fetch_all)
        for endpoint, keys in sorted(leaders.items()):
            self._fetch(endpoint, frozenset(keys))

    def _fetch(self, endpoint: Endpoint, keys: frozenset[PartitionKey]) -> None:
        if endpoint in self._fetching:
            return
        member = self._membership
        session = self._sessions.get(endpoint)
        if session is None:
            session = self._sessions[endpoint] = ShareSessionHandler(member.group, member.member_id)
        self._fetching.add(endpoint)
        request = session.fetch(
            keys,
            max_records=self.env.random.randrange(1, 8) if not self._settled else 20,
            max_bytes=1 << 16,
            max_wait_ms=MAX_WAIT_MS,
            is_exact=bool(self.env.random.randrange(0, 2)),
        )
        asked_ms, epochs = self._now_ms(), {key: self._leader_epoch(endpoint, key) for key in keys}

        def answered(response: Any) -> None:
            self._fetching.discard(endpoint)
            if self._sessions.get(endpoint) is session:
                self._answered(endpoint, session, request, response, asked_ms, epochs)

        self.driver.send(Send(endpoint, request, REQUEST_TIMEOUT_S), "share-fetch", answered)

    def _answered(
        self,
        endpoint: Endpoint,
        session: ShareSessionHandler,
        request: ShareFetchRequest,
        response: Any,
        asked_ms: int,
        epochs: dict[PartitionKey, int],
    ) -> None:
        try:
            if isinstance(response, OSError):
                raise response
            found = session.answered(response)
        except (KafkaError, OSError):
            # it may have ended before: the next request begins another one
            self._sessions.pop(endpoint, None)
            self.refresh_then(self._fetch_all)
            return
        self._note_acceptances(endpoint, request, response)
        life = self._lives_of.setdefault(session, SessionLife())
        life.alive_until_ms = asked_ms
        now_ms = self._now_ms()
        for each in found:
            delivery = Delivery(
                self._membership.member_id,
                each.key[1],
                each.first,
                each.last,
                each.delivery_count,
                asked_ms,
                now_ms,
                endpoint.host,
                epochs.get(each.key, -1),
                self._leader_epoch(endpoint, each.key),
                # the lock began before the answer came, and not before the request was sent
                asked_ms + int(response.acquisition_lock_timeout_ms / self._clock_rate),
                session=life,
            )
            self._share_history.deliveries.append(delivery)
            self._process(session, each, delivery)
        if any(data.error_code for topic in response.responses for data in topic.partitions):
            self.refresh_then(self._fetch_all)
        else:
            self.env.call_later(0 if self._settled else self.env.random.randrange(0, 200), self._fetch_all)

    def _process(self, session: ShareSessionHandler, delivered: DeliveredRecords, delivery: Delivery) -> None:
        what = 0 if self._settled else self.env.random.randrange(0, 20)
        if what == 19:
            # its application has forgotten it: the lock ends
            return
        kind = Acknowledge.REJECT if what == 18 else Acknowledge.RELEASE if what >= 14 else Acknowledge.ACCEPT

        def done() -> None:
            if session.acknowledge(delivered, kind):
                delivery.ended_ms = self._now_ms()

        slow = not self._settled and not self.env.random.randrange(0, 10)
        self.env.call_later(self.env.random.randrange(0, 2 * LOCK_MS if slow else PROCESSES_MS), done)

    def _note_acceptances(self, endpoint: Endpoint, request: ShareFetchRequest, response: Any) -> None:
        codes = {
            (topic.topic_id, data.partition_index): data.acknowledge_error_code
            for topic in response.responses
            for data in topic.partitions
        }
        for topic in request.topics:
            for asked in topic.partitions:
                if codes.get((topic.topic_id, asked.partition_index)) != ErrorCode.NONE:
                    continue
                for batch in asked.acknowledgement_batches:
                    types = batch.acknowledge_types * (
                        batch.last_offset - batch.first_offset + 1 if len(batch.acknowledge_types) == 1 else 1
                    )
                    key = (Uuid(topic.topic_id), asked.partition_index)
                    acceptance = Acceptance(self._now_ms(), self._leader_epoch(endpoint, key))
                    for offset, kind in enumerate(types, batch.first_offset):
                        if kind == Acknowledge.ACCEPT:
                            self._share_history.accepted.setdefault((asked.partition_index, offset), acceptance)
