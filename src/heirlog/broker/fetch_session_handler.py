"""A follower's side of a fetch session (KIP-227): what the leader remembers about us, and what we still have to send.

    unsent --next request--> member --forget--> forgotten --next request--> gone
       ^------------------------'  add: something about it has changed
                                   fetch again: forget and add

    start    a full request (epoch 0) names every partition; its answer brings the session's id, or 0: this leader keeps
             no session for us, and every request is a full one
    continue incremental requests 1, 2, 3, ... name only partitions that are unsent or forgotten
    lost     the leader does not know the session, or an answer did not come: everything is unsent again. The next full
             request names the lost session if the leader may still have it, so that it ends

The next request of a session may be sent before the answer of the first has come. A leader of this project then ends
the wait of the first (`fetch_session.py`); one of Apache Kafka answers them in order. So a new partition need not wait
for the end of a long poll.

Traps. If one request forgets and fetches the same partition, the leader forgets it. So a forgotten partition is named
by the request after that. And a leader repeats nothing: an answer that was dropped may have held a high watermark that
no later answer has. So the leader has to forget the partition before it is fetched again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

NO_SESSION = 0
_INITIAL_EPOCH = 0
_LAST_EPOCH = 2**31 - 1

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class FetchRequestData(Generic[Key]):
    """The partitions of one request. Never changed, and not frozen for the sake of speed."""

    session_id: int
    session_epoch: int
    named: list[Key]
    forgotten: list[Key]

    @property
    def is_full(self) -> bool:
        return self.session_epoch == _INITIAL_EPOCH


class FetchSessionHandler(Generic[Key]):
    """Requests are known by ascending numbers that the caller gives."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = _INITIAL_EPOCH
        self._full_request_number = 0
        """Number of the last full request."""
        self._members: dict[Key, None] = {}
        self._unsent: dict[Key, None] = {}
        self._forgotten: dict[Key, None] = {}
        self.is_kept = True
        """Whether the leader keeps a session for us, as far as we know."""

    @property
    def is_established(self) -> bool:
        return self._epoch != _INITIAL_EPOCH and self._id != NO_SESSION

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def is_empty(self) -> bool:
        """There is nothing to fetch."""
        return not self._unsent and not self._members

    def add(self, key: Key) -> None:
        """The next request names the partition; if the next one forgets it, the one after that."""
        self._unsent[key] = None

    def forget(self, key: Key) -> None:
        """Do not fetch the partition; harmless if it is not being fetched."""
        self._unsent.pop(key, None)
        if key in self._members:
            del self._members[key]
            self._forgotten[key] = None

    def fetch_again(self, key: Key) -> None:
        """An answer for the partition was dropped: fetch it again. Harmless if it is not being fetched."""
        if key in self._members:
            self.forget(key)
            self.add(key)

    def next_request(self, number: int) -> FetchRequestData[Key]:
        if self._epoch == _INITIAL_EPOCH:
            self._forgotten = {}
        named: dict[Key, None] = self._unsent
        later: dict[Key, None] = {}
        if self._forgotten:
            later = {key: None for key in named if key in self._forgotten}
            named = {key: None for key in named if key not in later}
        epoch = self._epoch
        request = FetchRequestData(self._id, epoch, list(named), list(self._forgotten))
        self._members |= named
        self._unsent, self._forgotten = later, {}
        if epoch == _INITIAL_EPOCH:
            self._full_request_number = number
        else:
            self._epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return request

    def answered(self, number: int, session_id: int) -> None:
        if number < self._full_request_number:
            return
        if number > self._full_request_number:
            if session_id == NO_SESSION:
                self.lost(is_over=True)
            return
        self.is_kept = session_id != NO_SESSION
        if self.is_kept:
            self._id, self._epoch = session_id, 1
        else:
            self.lost(is_over=True)

    def is_current(self, number: int) -> bool:
        """Whether that request belongs to the current session."""
        return number >= self._full_request_number

    def lost(self, is_over: bool) -> None:
        """The session is lost. `is_over`: the leader has forgotten it as well."""
        self._unsent = {**self._members, **self._unsent}
        self._members, self._forgotten = {}, {}
        self._epoch = _INITIAL_EPOCH
        if is_over:
            self._id = NO_SESSION
