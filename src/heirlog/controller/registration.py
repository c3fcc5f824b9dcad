"""BrokerRegistration: how a broker process joins the cluster, and what its restart means for its replicas.

    same incarnation again     its epoch, fencing and shutdown state stay; no partition changes
    new incarnation, clean     like a fencing: it leaves ISRs, may become eligible, and stays in its ELRs
    new incarnation, unclean   it leaves every ISR and every ELR *before* its registration record

A stop counts as clean only if it is proven: the request can carry the proof (version 3+), and the epoch from the
clean-shutdown file is exactly the epoch of the stored registration. Everything else - no file, an older epoch, an old
request, a first registration - is unclean. The records are not atomic. Partition changes come first, so that a prefix
of the batch leaves a broker out of ISR and ELR rather than an unproven broker in them.

One older epoch is a proof, too. A process may give up, or be killed, after the controller has stored its registration
and before the answer arrives. Its clean-shutdown file then still names the epoch before. So a registration stores the
epoch with which it proved a clean stop, until the broker is unfenced, and the same proof counts once more. This is
safe: a process durably removes the file before it changes a log, and while the broker is fenced no record needs its log
to be committed.

A new incarnation may lack a log directory that the broker had (a replaced disk). Then its stop was not clean, and
replicas in such a directory must move to another one. Otherwise the broker could be in every ISR and lead nothing,
because an acceptable leader needs an online directory. The moved replica is empty. So a replica is not moved if it
could then be elected with its empty log, or be taken for the replica that a partition without a leader waits for. The
first condition that holds decides:

    1  it is still in the ISR: the last member, ELR is off           stays
    2  the partition has a leader                                    moves: it copies the leader's log
    3  it is not on LastKnownELR                                     moves: the partition does not wait for it
    4  the recovery manager is off: it is the last known leader      stays
    5  no other replica is in ISR, ELR or LastKnownELR               stays: no other replica may have the lost records
    6  the broker has fewer new directories than it lacks            stays: a failed directory may come back
    7  otherwise                                                     moves: other replicas may have the lost records

A replica that moves leaves LastKnownELR. For one that stays, the partition waits, or an operator decides.

A broker that accepted metadata older than its own says so (`NewestLeaderEpoch`), and its stop counts as unclean. The
metadata may name an ISR that was replaced long ago, including other brokers in it. So in each partition of the broker
ISR, ELR and LastKnownELR are emptied (`reset_partition.py`), and every assigned replica is asked. Each such broker
causes this again: no state says which of the lists are newer. A replica whose directory is gone then stays in it:
nothing says what other replicas have.

The broker epoch is the offset of the RegisterBroker record itself; hence `next_offset`.

Source: KIP-631, KIP-858, KIP-966 "Unclean shutdown".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.producer_ids import after_older_metadata
from heirlog.controller.reset_partition import reset_partition
from heirlog.controller.sessions import Sessions
from heirlog.controller.turns import PARTITIONS_PER_TURN, in_turns
from heirlog.metadata.apply import merged
from heirlog.metadata.as_records import partition_record
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import METADATA_VERSION, RECOVERY_VERSION, Image
from heirlog.metadata.state import (
    MIGRATING_DIRECTORY,
    RESERVED_DIRECTORIES,
    UNASSIGNED_DIRECTORY,
    BrokerRegistration,
    PartitionRegistration,
)
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import BrokerRegistrationRequest, BrokerRegistrationResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import PartitionChangeRecord, RegisterBrokerRecord
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, PartitionKey, Uuid

_Replica = tuple[Uuid, int, PartitionRegistration]
_CLEAN_STOP_VERSION = 3
"""The first version of the request that can name the previous broker epoch."""


def stopped_cleanly(registered: BrokerRegistration | None, version: int, previous_epoch: int) -> bool:
    """Guard 9: an unclean registration leaves ISR and ELR before it can be unfenced.

    Without it a replica that lost records before they were flushed would stay in a list of complete replicas.
    """
    if registered is None or version < _CLEAN_STOP_VERSION or previous_epoch == NO_BROKER_EPOCH:
        return False
    return previous_epoch in (registered.epoch, registered.clean_stop_epoch)


def register_broker(
    image: Image,
    static: StaticConfig,
    sessions: Sessions,
    request: BrokerRegistrationRequest,
    version: int,
    cluster_id: str,
    next_offset: Callable[[], int],
    *,
    at_once: bool = False,
) -> ControllerResult[BrokerRegistrationResponse]:
    """Returns the records of one registration; the answer is the broker's epoch.

    at_once: in one turn, however many partitions change.
    """
    broker_id = BrokerId(request.broker_id)
    registered = image.brokers.get(broker_id)
    try:
        _check(image, sessions, request, registered, cluster_id)
    except KafkaError as error:
        return answer(BrokerRegistrationResponse(error_code=error.code), str(error))
    if registered is not None and registered.incarnation_id == request.incarnation_id:
        record = _record(request, registered.epoch, registered.fenced, registered.in_controlled_shutdown)
        record.clean_stop_epoch = registered.clean_stop_epoch
        return ControllerResult(_respond(request, registered.epoch), [record])
    try:
        reset = _reset_partitions(image, broker_id, request.newest_leader_epoch)
    except ValueError as error:
        return answer(BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REGISTRATION), str(error))
    in_missing = [replica for replica in _in_missing_directories(image, broker_id, request) if replica[:2] not in reset]
    accepts_older = request.newest_leader_epoch >= 0
    clean = not in_missing and not accepts_older and stopped_cleanly(registered, version, request.previous_broker_epoch)
    leadership = Leadership(image, static)
    keeps_data = clean or not image.elr_enabled
    partitions = image.in_isr.of(broker_id) + ([] if keeps_data else image.in_elr.of(broker_id))

    def change(some: Sequence[PartitionKey]) -> Changes:
        maker = Leadership(image, static)
        return (
            maker.broker_leaves(broker_id, partitions=some) if keeps_data else maker.broker_lost_data(broker_id, some)
        )

    def last(*_: object) -> ControllerResult[BrokerRegistrationResponse]:
        return register_broker(image, static, sessions, request, version, cluster_id, next_offset, at_once=True)

    if len(partitions) > PARTITIONS_PER_TURN and not (at_once or reset or in_missing):
        # a broker that registers meanwhile is another one, which `last` looks at
        return in_turns(partitions, change, last, is_wanted=lambda: image.brokers.get(broker_id) == registered)
    changes = change([key for key in partitions if key not in reset])
    leaves_last_known = leadership.manager_enabled and _has_replaced_disks(registered, in_missing, request)
    records: list[Message] = [partition_record(*key, state) for key, state in reset.items()]
    records += [
        *changes.records,
        *_moved_to_new_directories(image, broker_id, in_missing, request, changes, leaves_last_known),
    ]
    if accepts_older:
        records.append(after_older_metadata(image))
    epoch = BrokerEpoch(next_offset() + len(records))
    record = _record(request, epoch, fenced=True, in_controlled_shutdown=False)
    if clean:
        record.clean_stop_epoch = request.previous_broker_epoch
    return ControllerResult(_respond(request, epoch), [*records, record], changes.elections)


def _reset_partitions(
    image: Image, broker_id: BrokerId, newest_leader_epoch: int
) -> dict[tuple[Uuid, int], PartitionRegistration]:
    """New states for the partitions of a broker that knew newer metadata. Raises ValueError."""
    if newest_leader_epoch < 0:
        return {}
    return {
        (topic_id, partition): reset_partition(state, newest_leader_epoch)
        for topic_id, partition, state in image.replicas_on(broker_id)
    }


def _in_missing_directories(image: Image, broker_id: BrokerId, request: BrokerRegistrationRequest) -> list[_Replica]:
    """The broker's replicas in directories that it no longer has.

    Looks at every partition: an earlier heartbeat may have removed the directory from the registration already.
    """
    usable = (*(request.log_dirs or ()), UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
    return [replica for replica in image.replicas_on(broker_id) if replica[2].directory_of(broker_id) not in usable]


def _has_replaced_disks(
    registered: BrokerRegistration | None, in_missing: Iterable[_Replica], request: BrokerRegistrationRequest
) -> bool:
    """Whether the missing directories were replaced by new ones, and have not just failed.

    Directories that an earlier registration lacked count, too. A new directory may replace any of them, and one that
    has just failed may come back with the only copy. If that cannot be distinguished, an operator decides.
    """
    known = () if registered is None else registered.directories
    new = [directory for directory in request.log_dirs or () if directory not in known]
    gone = {state.directory_of(BrokerId(request.broker_id)) for _, _, state in in_missing}
    return len(new) >= len(gone)


def _moved_to_new_directories(
    image: Image,
    broker_id: BrokerId,
    in_missing: Iterable[_Replica],
    request: BrokerRegistrationRequest,
    changes: Changes,
    leaves_last_known: bool,
) -> Iterator[PartitionChangeRecord]:
    """Move the replicas to the broker's directories, in rotation. Apply these records after `changes`.

    leaves_last_known: the replica need not stay on LastKnownELR.
    """
    directories = sorted(Uuid(directory) for directory in request.log_dirs or ())
    changed = {(Uuid(record.topic_id), record.partition_id): record for record in changes.records}
    for position, (topic_id, partition, state) in enumerate(in_missing):
        change = changed.get((topic_id, partition))
        after = state if change is None else merged(image, state, change)
        listed = [replica for replica in after.last_known_elr if replica != broker_id]
        is_listed = len(listed) < len(after.last_known_elr)
        if broker_id not in after.replicas or broker_id in after.isr or broker_id in after.elr:
            continue
        if is_listed and not after.has_leader and not (leaves_last_known and (after.isr or after.elr or listed)):
            continue
        directory = directories[position % len(directories)]
        record = PartitionChangeRecord(topic_id=topic_id, partition_id=partition)
        record.directories = [directory if each == broker_id else after.directory_of(each) for each in after.replicas]
        if is_listed:
            record.last_known_elr = [*listed]
        yield record


def _respond(request: BrokerRegistrationRequest, epoch: BrokerEpoch) -> Callable[[int], BrokerRegistrationResponse]:
    response = BrokerRegistrationResponse(broker_epoch=epoch, incarnation_id=request.incarnation_id)
    return lambda base_offset: response


def _record(
    request: BrokerRegistrationRequest, epoch: BrokerEpoch, fenced: bool, in_controlled_shutdown: bool
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=sorted(request.log_dirs or ()),
    )


def _check(
    image: Image,
    sessions: Sessions,
    request: BrokerRegistrationRequest,
    registered: BrokerRegistration | None,
    cluster_id: str,
) -> None:
    """Raises KafkaError with the first reason to refuse."""
    broker_id = BrokerId(request.broker_id)
    if request.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {broker_id} belongs to cluster {request.cluster_id}, this is cluster {cluster_id}",
        )
    if (
        registered is not None
        and registered.incarnation_id != request.incarnation_id
        and sessions.is_live(broker_id, registered.epoch)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another process is registered as broker {broker_id} and its session is live; stop it or wait",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "brokers that migrate from ZooKeeper are not supported")
    _check_directories(image, request)
    _check_features(image, request)


def _check_directories(image: Image, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs or []
    if not directories:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "no log directory was named")
    if len(set(directories)) != len(directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "a log directory was named twice")
    if any(directory in RESERVED_DIRECTORIES for directory in directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "a log directory has a reserved id")
    for other in image.brokers.values():
        if other.id != request.broker_id and any(directory in other.directories for directory in directories):
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION, f"a log directory is registered by broker {other.id} already"
            )


def _check_features(image: Image, request: BrokerRegistrationRequest) -> None:
    supported = {feature.name: feature for feature in request.features}
    if METADATA_VERSION not in supported:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "the broker names no range for metadata.version")
    # a broker that does not serve recovery requests may join: it counts as one that has not answered
    for name in sorted(image.features.keys() - {RECOVERY_VERSION}):
        level, feature = image.features[name], supported.get(name)
        if feature is None or not feature.min_supported_version <= level <= feature.max_supported_version:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster runs {name} at level {level}, which broker {request.broker_id} does not support",
            )
