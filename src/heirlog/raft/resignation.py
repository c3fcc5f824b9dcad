"""A leader that has resigned: it notifies the other voters, so that they elect the next leader without a timeout.

    EndQuorumEpoch to each voter, with the preferred successors -> acknowledged, or sent again after the back-off
    each voter has acknowledged, or its port refuses            -> `on_done`: this node may stop

The successors are ordered by what they had fetched: the first one asks for votes at once, the others a little later.

Source: KIP-595 "EndQuorumEpoch", KIP-853 for the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heirlog.env import Cancel, Env, SendFailure
from heirlog.protocol.messages import EndQuorumEpochResponse
from heirlog.raft import epoch_messages
from heirlog.raft.control import Voter
from heirlog.raft.epoch_messages import CHANNEL, Heard
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replica_key import ReplicaKey


class Resignation:
    def __init__(
        self,
        env: Env,
        cluster_id: str,
        me: Voter,
        epoch: int,
        successors: Sequence[Voter],
        config: QuorumConfig,
        on_heard: Callable[[Heard], bool],
        on_done: Callable[[], None],
    ) -> None:
        """successors: all other voters, the one with the longest log first. on_heard: as of `ContactEvents`."""
        self._env = env
        self._request = epoch_messages.end_request(cluster_id, me, epoch, [voter.key for voter in successors])
        self._successors = {voter.key: voter for voter in successors}
        self._config = config
        self._on_heard = on_heard
        self._on_done = on_done
        self._missing = set(self._successors)
        """Voters that may not know yet."""
        self._retries: dict[ReplicaKey, Cancel] = {}
        self._closed = False

    def start(self) -> None:
        for key in self._successors:
            self._notify(key)

    def close(self) -> None:
        self._closed = True
        for cancel in self._retries.values():
            cancel()

    def _notify(self, key: ReplicaKey) -> None:
        self._retries.pop(key, None)

        def answered(result: EndQuorumEpochResponse | SendFailure) -> None:
            if self._closed:
                return
            answer = None if isinstance(result, SendFailure) else epoch_messages.heard(result)
            if answer is None:
                self._retries[key] = self._env.call_later(self._config.retry_backoff_ms, lambda: self._notify(key))
            if answer is not None or (isinstance(result, SendFailure) and result.kind == "disconnected"):
                self._knows(key)
            if answer is not None:
                self._on_heard(answer)

        endpoint = self._successors[key].endpoint
        self._env.send(endpoint, CHANNEL, self._request, answered, self._config.request_timeout_ms)

    def _knows(self, key: ReplicaKey) -> None:
        if key in self._missing:
            self._missing.discard(key)
            if not self._missing:
                self._on_done()


def successor_delay_ms(successors: Sequence[ReplicaKey], me: ReplicaKey, backoff_max_ms: int) -> int:
    """How long this voter waits after EndQuorumEpoch before it asks for votes.

    The first successor does not wait, and each one after it twice as long as the one before; a voter that is not named
    waits longest.
    """
    rank = next((rank for rank, key in enumerate(successors) if key.covers(me)), None)
    if rank is None:
        return backoff_max_ms
    if rank == 0:
        return 0
    return min(backoff_max_ms, (backoff_max_ms >> (len(successors) - 1)) << (rank - 1))
