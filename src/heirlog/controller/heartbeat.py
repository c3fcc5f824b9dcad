"""BrokerHeartbeat: the state that a broker wants, its current state, and its next state.

    FENCED               wants to shut down                                    -> SHUTDOWN_NOW
                         does not want to be fenced, has applied its own
                         registration, and has a log directory                 -> UNFENCED
    UNFENCED             wants to be fenced and to shut down                   -> SHUTDOWN_NOW
                         wants to be fenced, or has no log directory left      -> FENCED
                         wants to shut down, leads a partition                 -> CONTROLLED_SHUTDOWN
                         wants to shut down, leads none                        -> SHUTDOWN_NOW
    CONTROLLED_SHUTDOWN  leads none, and every active broker has applied
                         the offset at which the controlled shutdown began     -> SHUTDOWN_NOW
    (otherwise the state stays)

A broker waits in CONTROLLED_SHUTDOWN for the *new* leaders: if it stopped before they know that they lead, its
partitions would be unavailable. Only the session stores this state, as that offset. After a controller failover the
offset is unknown: the broker counts as UNFENCED until it asks again to shut down.

FENCED and SHUTDOWN_NOW run the fence handling, even if the broker is fenced already.

If log directories went offline, their replicas leave ISR and ELR, and the registration lists the remaining directories.
The replicas never enter an ELR: nothing can prove what a failed disk still holds. One batch does this together with a
fence or a shutdown. A broker that asks to be unfenced stays fenced for this heartbeat; otherwise it could become leader
of partitions whose replica it has just lost.

A heartbeat that changes nothing reads no partition state.

Source: KIP-631.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.sessions import Session, Sessions
from heirlog.controller.turns import in_turns
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import BrokerRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from heirlog.protocol.records import BrokerRegistrationChangeRecord
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid

_OFFSET_UNKNOWN: Final = 2**63 - 1
"""No broker has applied it: the controlled shutdown has not moved all leaderships yet."""

R = TypeVar("R")


class BrokerControlState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    SHUTDOWN_NOW = "shutdown-now"


def control_state(sessions: Sessions, broker: BrokerRegistration) -> BrokerControlState:
    if broker.fenced:
        return BrokerControlState.FENCED
    if sessions.shutdown_offset(broker.id, broker.epoch) is not None:
        return BrokerControlState.CONTROLLED_SHUTDOWN
    return BrokerControlState.UNFENCED


def next_state(
    image: Image, sessions: Sessions, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> BrokerControlState:
    """The table above."""
    current = control_state(sessions, broker)
    leads = image.leaders.any(broker.id)
    match current:
        case BrokerControlState.FENCED if request.want_shut_down:
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.FENCED if (
            not request.want_fence and _caught_up(broker, request) and _has_directory(broker, request)
        ):
            return BrokerControlState.UNFENCED
        case BrokerControlState.UNFENCED if request.want_fence and request.want_shut_down:
            return BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.UNFENCED if request.want_fence or not _has_directory(broker, request):
            return BrokerControlState.FENCED
        case BrokerControlState.UNFENCED if request.want_shut_down:
            return BrokerControlState.CONTROLLED_SHUTDOWN if leads else BrokerControlState.SHUTDOWN_NOW
        case BrokerControlState.CONTROLLED_SHUTDOWN if not leads and _other_brokers_know(image, sessions, broker):
            return BrokerControlState.SHUTDOWN_NOW
        case _:
            return current


def heartbeat(
    image: Image, static: StaticConfig, sessions: Sessions, request: BrokerHeartbeatRequest, now_ms: int, peer: object
) -> ControllerResult[BrokerHeartbeatResponse]:
    """Returns records and answer of one heartbeat; `peer` is its connection."""
    broker = image.brokers.get(BrokerId(request.broker_id))
    if broker is None:
        return answer(BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    if broker.epoch != request.broker_epoch:
        return answer(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    session = sessions.touch(broker.id, broker.epoch, now_ms, peer, request.current_metadata_offset)
    current, upcoming = control_state(sessions, broker), next_state(image, sessions, broker, request)
    failed = _newly_offline(broker, request)
    if failed and upcoming is BrokerControlState.UNFENCED:
        upcoming = current
    response = BrokerHeartbeatResponse(
        is_caught_up=_caught_up(broker, request),
        is_fenced=upcoming in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW),
        should_shut_down=upcoming is BrokerControlState.SHUTDOWN_NOW,
    )
    if current is upcoming:
        return _handle_offline_directories(image, static, broker, failed, response)
    _update_session(sessions, session, broker, upcoming)
    match upcoming:
        case BrokerControlState.UNFENCED:
            head = [_change_record(broker, (), fenced=-1)]
            return elect_leaderless(image, static, broker.id, response, head)
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            return _move_away(image, static, broker, session, failed, response)
        case _:
            return fence(image, static, broker, response, failed)


def fence(
    image: Image, static: StaticConfig, broker: BrokerRegistration, response: R, failed: Collection[Uuid] = ()
) -> ControllerResult[R]:
    """Fence a broker that is dead or wants to be fenced: partitions first, so that no prefix leaves it in an ISR.

    failed: directories that it has just lost; their replicas must not become eligible.

    Between two turns the broker may change. One that registered again has lost its partitions by that; a partition that
    made it leader or ISR member meanwhile is changed once more, by the last turn.
    """
    fenced = _change_record(broker, failed, fenced=1)
    if failed and _remaining_directories(broker, failed):
        return _outcome(response, Leadership(image, static).broker_leaves(broker.id, failed), fenced)

    def is_wanted() -> bool:
        return _is_unfenced(image, broker)

    def change(partitions: Iterable[PartitionKey] | None) -> Changes:
        leadership = Leadership(image, static)
        if failed:
            return leadership.broker_lost_data(broker.id, partitions)
        return leadership.broker_leaves(broker.id, partitions=partitions)

    def last(*_: object) -> ControllerResult[R]:
        return _outcome(response, change(None), fenced) if is_wanted() else answer(response)

    if broker.fenced:
        return _outcome(response, change(None), fenced)
    partitions = image.in_isr.of(broker.id) + (image.in_elr.of(broker.id) if failed else [])
    return in_turns(partitions, change, last, is_wanted=is_wanted)


def elect_leaderless(
    image: Image, static: StaticConfig, joining: BrokerId | None, response: R, head: Sequence[Any] = ()
) -> ControllerResult[R]:
    """Hold the elections that are missing, or become possible when the records in `head` unfence a broker."""
    partitions = Leadership(image, static).electable(joining)
    began_at = image.offset

    def change(some: Iterable[PartitionKey]) -> Changes:
        # after the first turn the image itself says whether the broker is active; it may be fenced again by then
        return Leadership(image, static).broker_joins(joining if image.offset == began_at else None, some)

    def last(first: Sequence[Any], left: Iterable[PartitionKey]) -> ControllerResult[R]:
        changes = change(left)
        return ControllerResult(lambda base_offset: response, [*first, *changes.records], changes.elections)

    return in_turns(partitions, change, last, is_wanted=lambda: True, first=head)


def _move_away(
    image: Image,
    static: StaticConfig,
    broker: BrokerRegistration,
    session: Session,
    failed: Collection[Uuid],
    response: R,
) -> ControllerResult[R]:
    """Begin the controlled shutdown of a broker: it says so, and leaves its ISRs."""
    head = [_change_record(broker, failed, in_controlled_shutdown=1)]
    if broker.in_controlled_shutdown and not failed:
        head = []
    partitions = [] if failed else image.in_isr.of(broker.id)

    def is_wanted() -> bool:
        return _is_unfenced(image, broker)

    def change(some: Iterable[PartitionKey]) -> Changes:
        return Leadership(image, static).broker_leaves(broker.id, partitions=some)

    def last(first: Sequence[Any], left: object) -> ControllerResult[R]:
        if not is_wanted():
            return answer(response)
        changes = Leadership(image, static).broker_leaves(broker.id, failed)
        if session.shutdown_offset is not None:
            session.shutdown_offset = image.offset + len(first) + len(changes.records)
        return ControllerResult(lambda base_offset: response, [*first, *changes.records], changes.elections)

    return in_turns(partitions, change, last, is_wanted=is_wanted, first=head)


def _is_unfenced(image: Image, broker: BrokerRegistration) -> bool:
    """Whether this registration is the broker's newest one, and active or in controlled shutdown."""
    known = image.brokers.get(broker.id)
    return known is not None and known.epoch == broker.epoch and not known.fenced


def _outcome(response: R, changes: Changes, then: BrokerRegistrationChangeRecord) -> ControllerResult[R]:
    return ControllerResult(lambda base_offset: response, [*changes.records, then], changes.elections)


def _change_record(
    broker: BrokerRegistration, failed: Collection[Uuid], fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    """The record names the directories only if some are lost and some remain."""
    return BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=_remaining_directories(broker, failed) if failed else [],
    )


def _remaining_directories(broker: BrokerRegistration, failed: Collection[Uuid]) -> list[bytes]:
    return [directory for directory in broker.directories if directory not in failed]


def _newly_offline(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> list[Uuid]:
    offline = request.offline_log_dirs or ()
    return [directory for directory in broker.directories if directory in offline]


def _update_session(
    sessions: Sessions, session: Session, broker: BrokerRegistration, upcoming: BrokerControlState
) -> None:
    if upcoming is BrokerControlState.CONTROLLED_SHUTDOWN:
        session.shutdown_offset = _OFFSET_UNKNOWN
    elif upcoming is BrokerControlState.FENCED:
        session.shutdown_offset = None
    elif upcoming is BrokerControlState.UNFENCED:
        # as on Apache Kafka: its applied offset counts only from its first heartbeat as an unfenced broker
        session.metadata_offset = -1
    elif upcoming is BrokerControlState.SHUTDOWN_NOW:
        # the controller allowed the stop: the broker's next process must not be refused as a duplicate
        sessions.end(broker.id)


def _caught_up(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    return request.current_metadata_offset >= broker.registration_offset


def _has_directory(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    """True also for a registration without directory ids (an old metadata.version): its directories are unknown."""
    offline = request.offline_log_dirs
    return not offline or not broker.directories or any(known not in offline for known in broker.directories)


def _other_brokers_know(image: Image, sessions: Sessions, broker: BrokerRegistration) -> bool:
    began = sessions.shutdown_offset(broker.id, broker.epoch)
    return began is None or all(
        sessions.metadata_offset(other.id, other.epoch) >= began
        for other in image.brokers.values()
        if control_state(sessions, other) is BrokerControlState.UNFENCED
    )


def _handle_offline_directories(
    image: Image, static: StaticConfig, broker: BrokerRegistration, failed: Collection[Uuid], response: R
) -> ControllerResult[R]:
    """The broker's state stays."""
    if not failed or not _remaining_directories(broker, failed):
        return answer(response)

    def is_wanted() -> bool:
        known = image.brokers.get(broker.id)
        return known is not None and known.epoch == broker.epoch and known.directories == broker.directories

    def change(partitions: Iterable[PartitionKey]) -> Changes:
        return Leadership(image, static).broker_lost_data(broker.id, partitions)

    def last(*_: object) -> ControllerResult[R]:
        if not is_wanted():
            return answer(response)
        left = Leadership(image, static).partitions_in(broker.id, failed)
        return _outcome(response, change(left), _change_record(broker, failed))

    partitions = Leadership(image, static).partitions_in(broker.id, failed)
    return in_turns(partitions, change, last, is_wanted=is_wanted)
