"""Calls to the coordinator of a group or of a transactional id: found by any broker, remembered, and looked up again
when it has moved.

    FindCoordinator --> request --> answer --> done
          ^                           |
          +---- pause, forget it <----+   no answer, or a code in FIND_COORDINATOR_AGAIN

Source: KIP-447 (stable offsets), KIP-699 (FindCoordinator for several groups).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heirlog.client import offsets
from heirlog.client.call import Call, Send
from heirlog.client.cluster import Cluster
from heirlog.client.errors import Unsupported
from heirlog.client.offsets import CommittedOffset, TopicPartition
from heirlog.client.retriable import FIND_COORDINATOR_AGAIN
from heirlog.client.retry_timer import RetryTimer
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import CoordinatorType, Endpoint

COORDINATORS_MAX = 10_000
"""Keys whose coordinator is remembered; a client that asks about more looks them up again."""
_NAMES: dict[int, str] = {CoordinatorType.GROUP: "group", CoordinatorType.TRANSACTION: "transactional id"}


def ask_coordinator(
    cluster: Cluster,
    key: str,
    message: Message,
    timeout_s: float,
    *,
    code_of: Callable[[Any], int],
    newest: int | None = None,
    attempt_s: float | None = None,
    held_s: float = 0.0,
    key_type: int = CoordinatorType.GROUP,
) -> Call[Any]:
    """The response of the coordinator of a group, or of another type of key; asked again while its code may pass.

    newest: the newest version to use. attempt_s: timeout of each answer. held_s: how much longer an answer may take
    that the coordinator holds back: no limit for a coordinator that refuses. After the total timeout the last response
    is returned. Raises KafkaError if the group has no coordinator, and OSError.
    """
    retry_timer = cluster.retry_timer(timeout_s)
    while True:
        failure: Exception
        endpoint = yield from find_coordinator(cluster, key, retry_timer, key_type)
        try:
            answer_s = min(retry_timer.remaining_s(), attempt_s or timeout_s) + held_s
            response = yield Send(endpoint, message, answer_s, newest)
        except Unsupported:
            raise
        except OSError as error:
            failure = error
        else:
            code = code_of(response)
            if code not in FIND_COORDINATOR_AGAIN or retry_timer.is_expired:
                return response
            failure = KafkaError(error_code(code), f"the coordinator of {_NAMES[key_type]} {key} refused the request")
        cluster.coordinators[key_type].pop(key, None)
        yield from retry_timer.back_off(failure)


def find_coordinator(
    cluster: Cluster, key: str, retry_timer: RetryTimer, key_type: int = CoordinatorType.GROUP
) -> Call[Endpoint]:
    """Where the coordinator of this key is, as far as known. Raises KafkaError, OSError."""
    known = cluster.coordinators[key_type]
    while key not in known:
        with retry_timer.raising_earlier_failure():
            response = yield from cluster.ask_any(
                offsets.find_coordinator(key, key_type), retry_timer.remaining_s(), retry_timer.attempt_s()
            )
        code, message, endpoint = offsets.found_coordinator(response)
        if not code:
            if len(known) >= COORDINATORS_MAX:
                known.clear()
            known[key] = endpoint
            break
        failure = KafkaError(error_code(code), f"{_NAMES[key_type]} {key} has no coordinator now: {message or ''}")
        if code not in FIND_COORDINATOR_AGAIN:
            raise failure
        yield from retry_timer.back_off(failure)
    return known[key]


def committed(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None, timeout_s: float
) -> Call[dict[TopicPartition, CommittedOffset]]:
    """What the group has committed for these partitions (None: all), without those that have nothing. Raises
    KafkaError.
    """

    def code_of(response: Any) -> int:
        code, found = offsets.found_committed(response)
        return code or next((failed for _, failed, _ in found if failed), 0)

    response = yield from ask_coordinator(
        cluster,
        group,
        offsets.committed(group, partitions),
        timeout_s,
        code_of=code_of,
        newest=offsets.NEWEST_OFFSET_FETCH_BY_NAME,
        attempt_s=cluster.retry_timer(timeout_s).attempt_s(),
    )
    _raise_refusal(group, code_of(response))
    return {key: offset for key, _, offset in offsets.found_committed(response)[1] if offset.offset >= 0}


def commit(
    cluster: Cluster,
    group: str,
    committing: Mapping[TopicPartition, CommittedOffset],
    timeout_s: float,
    retention_ms: int | None = None,
) -> Call[None]:
    """Commit without being a member. Raises UNKNOWN_MEMBER_ID while the group has members.

    retention_ms: how long the brokers keep the offsets; None: as they are configured.
    """

    def code_of(response: Any) -> int:
        return next((code for _, code, _ in offsets.commit_codes(response) if code), 0)

    if not committing:
        return
    response = yield from ask_coordinator(
        cluster,
        group,
        offsets.commit(group, committing, retention_ms),
        timeout_s,
        code_of=code_of,
        newest=offsets.NEWEST_COMMIT_BY_NAME if retention_ms is None else offsets.NEWEST_COMMIT_WITH_RETENTION,
        attempt_s=cluster.retry_timer(timeout_s).attempt_s(),
    )
    _raise_refusal(group, code_of(response))


def _raise_refusal(group: str, code: int) -> None:
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        reason = "it has members now, and only they commit; use another group or stop them"
    else:
        reason = "were refused"
    if code:
        raise KafkaError(error_code(code), f"the offsets of group {group}: {reason}")
