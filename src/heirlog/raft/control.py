"""Control records of the metadata log and of snapshots.

A control record's key is two int16 (version 0, type), its value a flexible message body that starts with its own
version. They come in batches with attribute bit 5 set and never reach the state machine.

    LEADER_CHANGE     the first record of an epoch       SNAPSHOT_HEADER   the first record of a snapshot
    KRAFT_VERSION     level of the quorum's own protocol SNAPSHOT_FOOTER   the last one; marks it as complete
    KRAFT_VOTERS      who votes, and where they listen

At kraft.version 0 the log names no voters: they come from `controller.quorum.voters` on every node, without directory
ids. KRaftVersion and Voters are written together, first when the level is raised or the quorum is formatted with it. So
a set of voters shows its level.

Trap: LeaderChange is version 0, even at kraft.version 1. Kafka's reader expects version 0 and crashes on version 1.

Source: KIP-595, KIP-630 (snapshots), KIP-853 (voters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from heirlog.env import Buffer
from heirlog.protocol.batch import NewRecord, decode_records, encode_batch
from heirlog.protocol.metadata_record import UnknownRecord, decode_control, encode_control
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    VotersRecord,
)
from heirlog.protocol.types import ZERO_UUID, BrokerId, Endpoint, Uuid
from heirlog.raft.replica_key import ReplicaKey

KRAFT_VERSION = 1
"""The newest level: voters in the log, with their directory ids (KIP-853)."""


@dataclass(frozen=True, slots=True)
class Voter:
    """One member of the quorum. Its identity is (id, directory id): a replaced disk makes it another voter."""

    id: BrokerId
    directory_id: Uuid
    """Zero at kraft.version 0: then the id alone is its identity."""
    endpoint: Endpoint
    listener: str = "CONTROLLER"
    key: ReplicaKey = field(init=False, repr=False, compare=False)
    """Made once, because every fetch of a replica compares it with the keys of all voters."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", ReplicaKey(self.id, self.directory_id))


def kraft_version_of(voters: Iterable[Voter]) -> int:
    """The level of kraft.version at which these are the voters; 0 if none are known."""
    return KRAFT_VERSION if any(voter.directory_id != ZERO_UUID for voter in voters) else 0


def encode_controls(records: Iterable[Message], base_offset: int, epoch: int, wall_ms: int) -> bytearray:
    """One control batch."""
    batch: list[NewRecord] = [(*encode_control(record), (), wall_ms) for record in records]
    return encode_batch(batch, base_offset, epoch, control=True)


def decode_controls(data: Buffer, position: int) -> Iterator[Message]:
    """The records of one control batch; types that this release does not know are left out.

    Raises InvalidBatch or Malformed.
    """
    for record in decode_records(data, position):
        if record.key is not None and record.value is not None:
            try:
                yield decode_control(record.key, record.value)
            except UnknownRecord:
                continue


def leader_change(leader_id: int, voters: Sequence[int], granting: Sequence[int]) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        leader_id=leader_id,
        voters=[LeaderChangeMessage.Voter(voter_id=voter) for voter in voters],
        granting_voters=[LeaderChangeMessage.Voter(voter_id=voter) for voter in granting],
    )


def snapshot_header(last_contained_log_timestamp_ms: int) -> SnapshotHeaderRecord:
    return SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp_ms)


def kraft_version() -> KRaftVersionRecord:
    return KRaftVersionRecord(k_raft_version=KRAFT_VERSION)


def voters_record(voters: Iterable[Voter]) -> VotersRecord:
    return VotersRecord(voters=[_voter_out(voter) for voter in sorted(voters, key=lambda v: v.id)])


def read_voters(record: VotersRecord) -> tuple[Voter, ...]:
    """The voters with their first endpoints; a voter without an endpoint is an error.

    Raises ValueError.
    """
    return tuple(_voter_in(voter) for voter in record.voters)


def _voter_out(voter: Voter) -> VotersRecord.Voter:
    endpoint = VotersRecord.Endpoint(name=voter.listener, host=voter.endpoint.host, port=voter.endpoint.port)
    return VotersRecord.Voter(
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        endpoints=[endpoint],
        k_raft_version_feature=VotersRecord.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=KRAFT_VERSION
        ),
    )


def _voter_in(voter: VotersRecord.Voter) -> Voter:
    if not voter.endpoints:
        raise ValueError(f"voter {voter.voter_id} has no endpoint")
    first = voter.endpoints[0]
    endpoint = Endpoint(first.host, first.port)
    return Voter(BrokerId(voter.voter_id), Uuid(voter.voter_directory_id), endpoint, first.name)
