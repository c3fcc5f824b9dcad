"""The frozen values that an image is made of.

A value is never changed: applying a record replaces it. So the speculative image of a controller, the committed image
of a broker and a handler that still holds a state from before can share them.

Lists of broker ids are tuples: `replicas` in assignment order, `isr` in the order of the record, `elr` ascending (it is
a set; ascending so that equal sets are equal values), `last_known_elr` in the order in which the members were lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from heirlog.metadata.basis import ElectionBasis
from heirlog.protocol.types import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Endpoint,
    LeaderEpoch,
    PartitionEpoch,
    Uuid,
)

RECOVERED: Final = 0
RECOVERING: Final = 1
"""LeaderRecoveryState on the wire: the leader was elected on a basis that may have lost records, and has not yet
reported that it dealt with that."""

MIGRATING_DIRECTORY: Final = Uuid(bytes(16))
"""The replica was placed before directories had ids (Kafka's DirectoryId.MIGRATING)."""
UNASSIGNED_DIRECTORY: Final = Uuid(bytes(15) + b"\x01")
"""Which directory holds the replica is not known yet (Kafka's DirectoryId.UNASSIGNED)."""
LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
"""The replica's directory is known to be offline (Kafka's DirectoryId.LOST)."""
RESERVED_DIRECTORIES: Final = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY)

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
"""Level 1: the coordinator's records have tagged fields. Level 2: each transaction has an epoch of its own (KIP-890),
clients use Produce 12, TxnOffsetCommit 5 and EndTxn 5, and the coordinator aborts by these rules."""
GROUP_VERSION: Final = "group.version"
"""Level 1: groups may use the consumer protocol (KIP-848)."""
SHARE_VERSION: Final = "share.version"
"""Level 1: there are share groups (KIP-932)."""
RECOVERY_VERSION: Final = "heirlog.recovery.version"
"""Ours: a node that supports it takes part in unclean recovery; its finalized level says whether the recovery manager
is on (1) or off (0)."""

ScramKey: TypeAlias = tuple[str, int]
"""(user, number of the SCRAM mechanism)."""

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
RESOURCE_TYPES: Final = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)
"""The types of resources with configurations that Apache Kafka knows. The image has those of topics, brokers and
groups: loggers belong to their nodes, and client metrics do not exist yet.
"""

LEADER_UNCHANGED: Final = -2
RECOVERY_STATE_UNCHANGED: Final = -1

Ids = tuple[BrokerId, ...]


class PartitionRegistration(NamedTuple):
    """One partition as its last record left it (KIP-966, KIP-455 and KIP-858 fields).

    A tuple, because every record of a partition makes one in each image of each node, and a frozen dataclass takes four
    times as long to make.
    """

    replicas: Ids
    isr: Ids
    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    elr: Ids = ()
    last_known_elr: Ids = ()
    adding: Ids = ()
    removing: Ids = ()
    directories: tuple[Uuid, ...] = ()
    """One directory id per replica, in the order of `replicas`; empty where no record ever named them."""
    leader_recovery_state: int = RECOVERED
    basis: ElectionBasis | None = None
    """Of the newest election that may have lost records; None if there was none."""
    earlier: tuple[ElectionBasis, ...] = ()
    """Earlier ones, newest first, at most EARLIER_MAX: they may not be reported yet."""
    last_leader: BrokerId = NO_LEADER
    """Whose leadership ended when the partition lost its leader; NO_LEADER if it has one, or that is not known."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    def directory_of(self, broker: BrokerId) -> Uuid:
        """UNASSIGNED_DIRECTORY if no record has said where the replica lives."""
        if not self.directories:
            return UNASSIGNED_DIRECTORY
        return self.directories[self.replicas.index(broker)]


class ListenerState(NamedTuple):
    name: str
    endpoint: Endpoint
    security_protocol: int = 0
    """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


def places(listeners: Iterable[ListenerState]) -> str:
    """Where these listen, as in `advertised.listeners`; for lines that people read."""
    return ", ".join(f"{listener.name}://{listener.endpoint}" for listener in listeners)


class SupportedFeature(NamedTuple):
    name: str
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """One registration. `epoch` is the offset of the record that made this incarnation known."""

    id: BrokerId
    epoch: BrokerEpoch
    incarnation_id: Uuid
    listeners: tuple[ListenerState, ...] = ()
    features: tuple[SupportedFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()
    """Its online log directories."""
    clean_stop_epoch: BrokerEpoch = NO_BROKER_EPOCH
    """Previous broker epoch with which this registration proved a clean stop; -1 without proof, and once unfenced."""
    registration_offset: int = field(default=-1, compare=False)
    """Offset at which the newest registration was applied: a broker that has not applied it is not caught up.
    A snapshot forgets it, hence no part of equality."""

    @property
    def is_active(self) -> bool:
        """Registered, unfenced and not in controlled shutdown: may lead and may enter an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        for known in self.listeners:
            if known.name == listener:
                return known.endpoint
        return None

    def has_online(self, directory: Uuid) -> bool:
        """Whether a replica in `directory` can be served; True also if no directory is assigned yet."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        return not self.directories or directory in self.directories


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """A controller process that registered itself (RegisterController)."""

    id: BrokerId
    incarnation_id: Uuid
    listeners: tuple[ListenerState, ...] = ()
    features: tuple[SupportedFeature, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: Uuid
