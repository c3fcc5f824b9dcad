"""What `heirlog recover plan --watch` shows: a row for each partition without a leader.

A partition that gets a leader keeps its row, so that the outcome can be seen. What only counts time, such as the age of
an answer, is in no row: a row changes when something has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from heirlog.cli import elections
from heirlog.cli.elections import TopicPartition
from heirlog.cli.recovery_plan import loss_text, partition_as_json
from heirlog.protocol.types import NO_LEADER

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.client.recovery import Described, RecoveryPartition

KEY: Final = ("topic", "partition")
COLUMNS: Final = {
    "topic": "Topic",
    "partition": "Partition",
    "leader": "Leader",
    "leader_epoch": "LeaderEpoch",
    "end_offsets": "EndOffsets",
    "would_lead": "WouldLead",
    "loss": "RecordsLost",
    "state": "State",
}
"""WouldLead and RecordsLost: of an election that does not wait for more answers."""


class Leaderless:
    """The partitions that have no leader, and those that had none in an earlier look.

    describe: asks once, as `recover plan` does.
    """

    def __init__(self, client: Client, describe: Callable[[], Described], as_json: bool) -> None:
        self._client = client
        self._describe = describe
        self._as_json = as_json
        self._seen: set[TopicPartition] = set()

    def rows(self) -> list[dict[str, Any]]:
        """Raises CommandError, KafkaError, OSError."""
        found = self._describe()
        leaderless = {
            (topic.name or "", each.partition_index): each
            for topic in found.topics
            for each in topic.partitions
            if each.leader_id == NO_LEADER
        }
        others = sorted(self._seen - leaderless.keys())
        self._seen |= leaderless.keys()
        partitions = {**leaderless, **dict(self._again(others))}
        row = _as_json if self._as_json else _as_text
        return [row(name, partitions[name, number], found.manager_enabled) for name, number in sorted(partitions)]

    def _again(self, places: list[TopicPartition]) -> Iterator[tuple[TopicPartition, RecoveryPartition]]:
        """Without those that were deleted."""
        if places:
            _, found = elections.described(self._client, places)
            for place, partition in found.items():
                if partition is not None:
                    yield place, partition


def _as_json(topic: str, partition: RecoveryPartition, manager_enabled: bool) -> dict[str, Any]:
    row = {"manager_enabled": manager_enabled, **partition_as_json(topic, partition, manager_enabled)}
    row["leader"] = _leader(partition)
    if row["leader"] is not None:
        row["choices"] = []
    del row["runs_for_ms"], row["wait_ends_in_ms"]
    for replica in row["replicas"]:
        del replica["answer_age_ms"]
    return row


def _as_text(topic: str, partition: RecoveryPartition, manager_enabled: bool) -> dict[str, Any]:
    from heirlog.client.recovery import choices

    at_once = "aggressive" if manager_enabled else "unclean"
    leader = _leader(partition)
    choice = next(each for each in choices(partition, manager_enabled) if each.name == at_once)
    has_choice = leader is None and choice.leader is not None
    return {
        "topic": topic,
        "partition": partition.partition_index,
        "leader": leader,
        "leader_epoch": partition.leader_epoch,
        "end_offsets": [
            f"{replica.broker_id}:{replica.log_end_offset}"
            for replica in partition.replicas
            if replica.answer_age_ms >= 0 and not replica.error_code
        ],
        "would_lead": choice.leader if has_choice else "-",
        "loss": loss_text(choice.loss) if has_choice else "-",
        "state": elections.lasting_state_sentence(partition),
    }


def _leader(partition: RecoveryPartition) -> int | None:
    return None if partition.leader_id == NO_LEADER else partition.leader_id
