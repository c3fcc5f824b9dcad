"""This node's replica of the metadata log: what identifies it in requests and among voters, and where it is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from heirlog.protocol.types import Uuid
from heirlog.raft import bootstrap
from heirlog.raft.control import Voter
from heirlog.raft.replica_key import ReplicaKey


@dataclass(frozen=True, slots=True)
class LocalReplica:
    node_id: int
    directory_id: Uuid
    """Id of the log directory in `metadata_log_dir`. With the node id it identifies a voter (KIP-853)."""
    cluster_id: str
    """Cluster of that directory; requests of another cluster are refused."""
    metadata_log_dir: str
    """metadata.log.dir; the log has a directory of its own in it."""
    is_controller: bool
    """This node has the controller role: it leads if the voters name its id and directory id."""
    key: ReplicaKey = field(init=False, repr=False, compare=False)
    """Its node and its disk, as the voters know it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", ReplicaKey(self.node_id, self.directory_id))

    @property
    def log_directory(self) -> str:
        return bootstrap.log_directory(self.metadata_log_dir)

    def is_voter(self, voter: Voter) -> bool:
        """Whether `voter` is this replica. The id alone is not enough: a replaced disk makes it another voter.

        At kraft.version 0 voters have no directory id, so there it is enough.
        """
        return voter.key.covers(self.key)

    def among(self, voters: Iterable[Voter]) -> Voter | None:
        """This replica in the voters, None if it is not one of them."""
        return next((voter for voter in voters if self.is_voter(voter)), None)
