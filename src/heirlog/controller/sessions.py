"""Which brokers are alive: the controller's memory of heartbeats.

A session is only in memory, on the active controller. It belongs to one registration (broker id and epoch):

    none --heartbeat--> live --no heartbeat for broker.session.timeout.ms--> stale: fenced (if unfenced), session ends
                        live --its connection closes, and the grace passes--> the same, at once
                        live --its connection closes, and its port refuses connections--> the same, without the grace
                        live --answered SHUTDOWN_NOW--> ended: a restart need not wait for a timeout

* A new active controller does not know when the last heartbeats came. Every *unfenced* broker gets a new session, so
  that one that died at the failover is fenced in the end (KAFKA-18138). A fenced broker gets none, so that its restart
  is not refused as a duplicate for a whole session time (KAFKA-19130).
* A closed connection followed by the grace period means "the process is dead": its kernel closed the connection. If
  nothing listens at its address any more, the grace period is not waited for (`process_probe.py`). Missing heartbeats
  alone never shorten a session. -1 switches both off (Kafka's rule).
* A check finds at most one stale broker, the one without a heartbeat for the longest time, and the next check follows
  at once. So each fencing sees the elections of the one before, and a failed rack does not need a period per broker.
* A check that is late by more than its own period shows that this process was not running. Heartbeats may wait unread
  in its sockets. So the last contact of every broker is moved by the delay, and no healthy broker is fenced
  (KAFKA-17793).

Source: KIP-631.
"""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.protocol.types import BrokerEpoch, BrokerId


@dataclass(slots=True)
class Session:
    epoch: BrokerEpoch
    contact_ms: int
    connection: object = None
    """The connection of the newest heartbeat; None after a failover."""
    closed_at_ms: int | None = None
    """When that connection closed, if no heartbeat has come on another one since."""
    metadata_offset: int = -1
    """The newest metadata offset that the broker has reported as applied."""
    shutdown_offset: int | None = None
    """Set while it is in controlled shutdown: every active broker must have applied this offset before it may go."""


class Sessions:
    def __init__(self, session_timeout_ms: int, disconnect_grace_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.disconnect_grace_ms = disconnect_grace_ms
        self._sessions: dict[BrokerId, Session] = {}
        self.check_interval_ms = max(1, session_timeout_ms // 8)

    def get(self, broker: BrokerId, epoch: BrokerEpoch) -> Session | None:
        """The session of exactly this registration."""
        session = self._sessions.get(broker)
        return session if session is not None and session.epoch == epoch else None

    def is_live(self, broker: BrokerId, epoch: BrokerEpoch) -> bool:
        return self.get(broker, epoch) is not None

    def start(self, broker: BrokerId, epoch: BrokerEpoch, now_ms: int) -> Session:
        session = Session(epoch, now_ms)
        self._sessions[broker] = session
        return session

    def touch(
        self, broker: BrokerId, epoch: BrokerEpoch, now_ms: int, connection: object, metadata_offset: int
    ) -> Session:
        """Note a heartbeat of this registration."""
        session = self.get(broker, epoch) or self.start(broker, epoch, now_ms)
        session.contact_ms = now_ms
        session.connection = connection
        session.closed_at_ms = None
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        return session

    def end(self, broker: BrokerId) -> None:
        self._sessions.pop(broker, None)

    def clear(self) -> None:
        self._sessions.clear()

    def connection_closed(self, broker: BrokerId, epoch: BrokerEpoch, connection: object, now_ms: int) -> bool:
        """Whether this was the session's connection, so that the grace period begins now."""
        session = self.get(broker, epoch)
        if session is None or session.connection is not connection or self.disconnect_grace_ms < 0:
            return False
        session.closed_at_ms = now_ms
        return True

    def is_disconnected(self, broker: BrokerId, epoch: BrokerEpoch) -> bool:
        """Whether the connection closed and no heartbeat has come since."""
        session = self.get(broker, epoch)
        return session is not None and session.closed_at_ms is not None

    def grace_has_ended(self, broker: BrokerId, epoch: BrokerEpoch, now_ms: int) -> bool:
        """Whether the connection closed long enough ago and no heartbeat has come since."""
        session = self.get(broker, epoch)
        if session is None or session.closed_at_ms is None:
            return False
        return now_ms - session.closed_at_ms >= self.disconnect_grace_ms

    def since_heartbeat_ms(self, broker: BrokerId, now_ms: int) -> int | None:
        """Time since its last heartbeat; None without a session."""
        session = self._sessions.get(broker)
        return None if session is None else now_ms - session.contact_ms

    def longest_without_heartbeat(self, now_ms: int) -> BrokerId | None:
        """The broker whose last heartbeat is the oldest, if it is at least the session timeout old."""
        stale = [
            (session.contact_ms, broker)
            for broker, session in self._sessions.items()
            if now_ms - session.contact_ms >= self.session_timeout_ms
        ]
        return min(stale)[1] if stale else None

    def extend_all(self, delay_ms: int) -> None:
        """This process did not run for `delay_ms`: that time does not count as missing heartbeats."""
        for session in self._sessions.values():
            session.contact_ms += delay_ms
            if session.closed_at_ms is not None:
                session.closed_at_ms += delay_ms

    def metadata_offset(self, broker: BrokerId, epoch: BrokerEpoch) -> int:
        """The offset that it reported last; -1 if none yet."""
        session = self.get(broker, epoch)
        return -1 if session is None else session.metadata_offset

    def shutdown_offset(self, broker: BrokerId, epoch: BrokerEpoch) -> int | None:
        """The offset that every active broker must apply before it may stop; None: not in controlled shutdown."""
        session = self.get(broker, epoch)
        return None if session is None else session.shutdown_offset
