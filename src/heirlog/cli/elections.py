"""Asking for elections and waiting for those that cannot be held yet: what `elect` and `recover run` share.

If a longest-log election has to wait for replicas, the answer names them; the controller continues on its own, and this
command only watches. The request is in that controller's memory: a new active controller does not know it, so the
command sends it again. It does not if the request has ended because the strategy was configured again, or because a
leader was elected meanwhile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from heirlog.cli.errors import CommandError
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.types import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable

    from heirlog.blocking import Client
    from heirlog.client.admin import Elected
    from heirlog.client.recovery import Described, RecoveryPartition

TIMEOUT_MS = 30_000
POLL_S = 0.25

TopicPartition = tuple[str, int]


class ElectionType(StrEnum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"
    LONGEST_LOG_BALANCED = "longest_log_balanced"
    LONGEST_LOG_AGGRESSIVE = "longest_log_aggressive"
    DESIGNATION = "designation"

    @property
    def code(self) -> int:
        """On the wire (KIP-460; from 2 on KIP-966, heirlog's numbers)."""
        return list(ElectionType).index(self)

    @property
    def may_wait(self) -> bool:
        return self in (ElectionType.LONGEST_LOG_BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE)


def run(
    client: Client,
    kind: ElectionType,
    partitions: Sequence[TopicPartition] | None,
    *,
    desired: Mapping[TopicPartition, int] | None = None,
    skip_wait: bool = False,
    wait_s: float = 0.0,
) -> dict[TopicPartition, Elected]:
    """What became of each partition (None: of all that need it). Progress goes to stderr while it waits.

    Raises CommandError where the cluster refuses.
    """
    ask = partial(_asked, client, kind, desired=desired, skip_wait=skip_wait)
    results = ask(partitions)
    waiting = [
        partition
        for partition, result in results.items()
        if kind.may_wait and result.code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    ]
    if waiting:
        results.update(_watch(client, waiting, ask, time.monotonic() + wait_s))
    return results


def _asked(
    client: Client,
    kind: ElectionType,
    partitions: Sequence[TopicPartition] | None,
    *,
    desired: Mapping[TopicPartition, int] | None,
    skip_wait: bool,
) -> dict[TopicPartition, Elected]:
    """Raises CommandError where the cluster refuses."""
    from heirlog.client.admin import elect_leaders

    try:
        return client.run(elect_leaders(kind.code, partitions, TIMEOUT_MS, desired=desired, skip_wait=skip_wait))
    except KafkaError as error:
        why = ""
        if error.code is ErrorCode.INVALID_REQUEST and kind.code > ElectionType.UNCLEAN.code:
            why = f"; {kind} needs a cluster of heirlog whose feature heirlog.recovery.version has level 1"
        raise CommandError(f"the election was refused: {error.code.name}{why}") from error


class _SeenRequest(NamedTuple):
    """Where it was last seen."""

    controller_epoch: int
    leader_epoch: int


def _watch(
    client: Client,
    waiting: Sequence[TopicPartition],
    ask: Callable[[list[TopicPartition]], object],
    deadline: float,
) -> dict[TopicPartition, Elected]:
    """ask: have the controller know again what another one was asked for."""
    from heirlog.client.admin import Elected

    done: dict[TopicPartition, Elected] = {}
    shown: dict[TopicPartition, str] = {}
    left = dict.fromkeys(waiting, "")
    seen_requests: dict[TopicPartition, _SeenRequest] = {}
    ended: set[TopicPartition] = set()
    while left:
        lost: list[TopicPartition] = []
        epoch, current = described(client, list(left))
        for partition, found in current.items():
            if found is None or found.leader_id != NO_LEADER:
                del left[partition]
                done[partition] = (
                    Elected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it was deleted")
                    if found is None
                    else Elected(0, f"broker {found.leader_id}")
                )
                continue
            left[partition] = state_sentence(found)
            seen = _SeenRequest(epoch, found.leader_epoch)
            if found.is_requested:
                seen_requests[partition] = seen
            elif not _is_lost(seen_requests.get(partition), seen):
                ended.add(partition)
            elif partition not in ended:
                lost.append(partition)
            # with the time that is left, each look would be another line
            lasting = lasting_state_sentence(found)
            if shown.get(partition) != lasting:
                shown[partition] = lasting
                print(f"{partition[0]}-{partition[1]}: {left[partition]}", file=sys.stderr)
        if not left or time.monotonic() >= deadline:
            break
        if lost:
            ask(lost)
        time.sleep(POLL_S)
    done.update(
        (partition, Elected(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, state)) for partition, state in left.items()
    )
    return done


def _is_lost(seen: _SeenRequest | None, now: _SeenRequest) -> bool:
    """Whether a new controller has lost the request.

    Under one controller a request ends because the strategy was configured again. If the leader epoch has changed, a
    leader was elected.
    """
    return seen is None or (seen.leader_epoch == now.leader_epoch and seen.controller_epoch != now.controller_epoch)


def recovery_of(
    client: Client, wanted: Mapping[str, Sequence[int] | None] | None, *, ask_replicas: bool = False
) -> Described:
    """As `describe_recovery`. Raises CommandError where no controller is active, KafkaError."""
    from heirlog.client.recovery import describe_recovery

    try:
        return client.run(describe_recovery(wanted, ask_replicas=ask_replicas))
    except KafkaError as error:
        if error.code is ErrorCode.REQUEST_TIMED_OUT:
            raise CommandError(error.message) from error
        raise


def described(
    client: Client, partitions: Sequence[TopicPartition]
) -> tuple[int, dict[TopicPartition, RecoveryPartition | None]]:
    """The controller's epoch, and each partition as it sees it now; None: there is none."""
    from heirlog.client.offsets import by_topic

    found = recovery_of(client, {topic: sorted(indexes) for topic, indexes in by_topic(partitions).items()})
    by_place = {
        (topic.name or "", partition.partition_index): None if partition.error_code else partition
        for topic in found.topics
        for partition in topic.partitions
    }
    return found.controller_epoch, {partition: by_place.get(partition) for partition in partitions}


def state_sentence(partition: RecoveryPartition) -> str:
    """What the partition is in, and whom it waits for until when."""
    text = lasting_state_sentence(partition)
    if partition.waits_for and partition.wait_ends_in_ms >= 0:
        text += f" for at most {seconds(partition.wait_ends_in_ms)}"
    return text


def lasting_state_sentence(partition: RecoveryPartition) -> str:
    """The same without a time, so that it changes only with the state."""
    text = _STATES.get(partition.state, partition.state)
    if partition.waits_for:
        text += f"{':' if text.startswith('waits') else ', waits for'} {_brokers(partition.waits_for)}"
    return text


_STATES = {
    "Led": "has a leader",
    "CleanElection": "will soon have a leader, without loss",
    "WaitingForEligible": "waits for a replica that has every committed record",
    "WaitingForQuorum": "waits for replicas that may have every committed record",
    "Recovering": "compares the logs of its replicas",
    "ManualElectionRequired": "waits for an operator",
    "WaitingForLastKnownLeader": "waits for its last leader",
    "WaitingForAnyReplica": "waits for any replica",
}


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def seconds(ms: int) -> str:
    return f"{ms / 1000:.1f} s"


def rows_of(results: Mapping[TopicPartition, Elected]) -> list[dict[str, Any]]:
    return [
        {
            "topic": name,
            "partition": number,
            "result": error_code(result.code).name if result.code else "ELECTED",
            "message": result.message,
        }
        for (name, number), result in sorted(results.items())
    ]
