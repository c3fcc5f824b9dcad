"""An operator who changes the voters of the quorum: replaces lost disks, takes voters out and adds them again.

    settled --a voter leaves-----------> remove its key -----------------------> settled (it runs on as an observer)
    settled --it may come back---------> add its key --------------------------> settled
    settled --a controller lost its disk--> remove its former key -> add the new one -> settled

With `controller.quorum.auto.join.enable` the operator only replaces disks: a controller adds itself.

Each request goes through a broker, and is repeated until a controller has decided it. The next one waits for its
answer. A disk is lost only while the set is settled: a record may be on the disks of a bare majority of the voters, so
two that are lost one after the other could lose it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from heirlog.protocol.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from heirlog.raft.quorum import Quorum
from heirlog.raft.replica_key import ReplicaKey
from heirlog.sim.clients.admin import Operator
from heirlog.sim.cluster import CLUSTER_ID, CONTROLLER_PORT, SimCluster

INTERVAL_MS = 300
VOTERS_MIN = 2


class VoterOperator:
    def __init__(self, cluster: SimCluster, random: Random, replace_disk: Callable[[str], None], *, asks: bool) -> None:
        """replace_disk: gives a controller that is down an empty disk. asks: it adds and removes voters; otherwise the
        controllers add themselves.
        """
        self._cluster = cluster
        self._random = random
        self._replace_disk = replace_disk
        self._asks = asks
        self._wanted = set(cluster.controller_names)
        """Those that should vote."""
        self._is_asking = False
        self._client = cluster.run_client("voters", lambda env: Operator(env, "voters", cluster.bootstrap, []))
        self._look()

    @property
    def is_settled(self) -> bool:
        """The voters are the wanted ones, with their current disks, and the leader has committed that."""
        quorum = self._active()
        if quorum is None or quorum.log is None or self._is_asking:
            return False
        return quorum.log.voters_offset < quorum.high_watermark and {voter.key for voter in quorum.voters} == {
            self._key(name) for name in self._wanted
        }

    def disturb(self) -> None:
        """A voter leaves or comes back, or a controller loses its disk; nothing happens while a change is under way."""
        if not self.is_settled:
            return
        left = sorted(set(self._cluster.controller_names) - self._wanted)
        match self._random.randrange(0, 4):
            case 0 if left:
                self._wanted.add(left[0])
            case 0 if self._asks and len(self._wanted) > VOTERS_MIN:
                self._wanted.remove(self._any())
            case 1 if not left:
                self._lose_disk(self._any())

    def want_all(self) -> None:
        """Every controller is to vote in the end."""
        self._wanted = set(self._cluster.controller_names)

    def _any(self) -> str:
        names = sorted(self._wanted)
        return names[self._random.randrange(0, len(names))]

    def _lose_disk(self, name: str) -> None:
        self._cluster.kill(name)
        self._replace_disk(name)
        self._cluster.world.counters["voter.disk-lost"] += 1
        self._cluster.after(self._random.randrange(0, 3000), "new disk", lambda: self._cluster.start(name))

    def _key(self, name: str) -> ReplicaKey:
        return ReplicaKey(self._cluster.machine(name).node_id, self._cluster.metadata_directory_ids[name])

    def _active(self) -> Quorum | None:
        node = self._cluster.controller.running
        return node.quorum if node is not None and node.quorum.is_leader else None

    def _look(self) -> None:
        quorum = self._active()
        request = None if quorum is None or self._is_asking or not self._asks else self._next_request(quorum)
        if request is not None:
            self._is_asking = True
            self._client.ask(request, self._answered)
        self._cluster.after(INTERVAL_MS, "voters", self._look)

    def _answered(self, response: Any) -> None:
        self._is_asking = False

    def _next_request(self, quorum: Quorum) -> AddRaftVoterRequest | RemoveRaftVoterRequest | None:
        wanted = {name: self._key(name) for name in sorted(self._wanted)}
        for voter in quorum.voters:
            if voter.key not in wanted.values():
                self._cluster.say(f"remove voter {voter.id}")
                self._cluster.world.counters["voter.removed"] += 1
                return RemoveRaftVoterRequest(
                    cluster_id=CLUSTER_ID, voter_id=voter.id, voter_directory_id=voter.directory_id
                )
        voting = {voter.key for voter in quorum.voters}
        for name, key in wanted.items():
            if key not in voting:
                self._cluster.say(f"add voter {key.id}")
                self._cluster.world.counters["voter.added"] += 1
                listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host=name, port=CONTROLLER_PORT)
                return AddRaftVoterRequest(
                    cluster_id=CLUSTER_ID,
                    timeout_ms=2000,
                    voter_id=key.id,
                    voter_directory_id=key.directory_id,
                    listeners=[listener],
                )
        return None
