"""The voters of this node's log as it knows them now: with its own current address, and whether it is one of them."""

from __future__ import annotations

from heirlog.protocol.types import Endpoint
from heirlog.raft.configured_controllers import ConfiguredControllers
from heirlog.raft.control import Voter
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.replay import Replay


class CurrentVoters:
    def __init__(
        self, replica: LocalReplica, controllers: ConfiguredControllers, log: MetadataLog, replay: Replay
    ) -> None:
        self._replica = replica
        self._controllers = controllers
        self._log = log
        self._replay = replay
        self._in_log: tuple[Voter, ...] = ()
        self._voters: tuple[Voter, ...] = ()
        """`_in_log` with this node's current address: a leader needs them for each fetch."""

    def all(self) -> tuple[Voter, ...]:
        in_log = self._log.voters
        if self._in_log is not in_log:
            self._voters = self._controllers.current(self._replica, in_log)
            self._in_log = in_log
        return self._voters

    def candidate(self) -> Voter | None:
        """This node, if it may ask for votes: a voter, or one whose removal may not be committed.

        The voters that lack the removal still count this node, and its log may be the only one that they cannot refuse.
        Without its candidacy they could never elect a leader. It does not count itself, so it is elected by the others
        alone, commits its removal, and resigns.
        """
        if not self._replica.is_controller:
            return None
        me = self._replica.among(self.all())
        removed = self._log.removed_voter(self._replica.key)
        committed_offset = max(self._log.committed_offset, self._replay.high_watermark)
        if me is not None or removed is None or removed.offset < committed_offset:
            return me
        return self._controllers.me or removed.voter

    def endpoints(self) -> list[Endpoint]:
        """Where this node asks for the leader while it does not know it."""
        return self._controllers.endpoints(self._replica, self._log.voters)
