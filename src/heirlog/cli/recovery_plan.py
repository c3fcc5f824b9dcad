"""What `heirlog recover plan` says of one partition: its state, what each replica holds, each choice and its price."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heirlog.cli.elections import lasting_state_sentence, seconds, state_sentence
from heirlog.cli.render import show_rows
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.client.recovery import Choice, RecoveryPartition, Replica
    from heirlog.metadata.loss_report import Loss

_CONNECT_FAILED = re.compile(r"Connect call failed \([^)]*\)")


def show_all(partitions: Sequence[tuple[str, RecoveryPartition]], manager_enabled: bool) -> None:
    """All plans of a cluster that has lost brokers: first which brokers to start, then internal topics last. Partitions
    whose plans differ only in times and leader epochs are one plan."""
    if len(partitions) > 1:
        print(summary([partition for _, partition in partitions]), end="\n\n")
    alike: dict[str, list[tuple[str, RecoveryPartition]]] = {}
    for name, partition in sorted(partitions, key=lambda one: one[0].startswith("__")):
        alike.setdefault(_without_times(partition, manager_enabled), []).append((name, partition))
    for plans in alike.values():
        show(plans, manager_enabled)


def show(alike: Sequence[tuple[str, RecoveryPartition]], manager_enabled: bool) -> None:
    """The plan of each of these partitions."""
    from heirlog.client.recovery import choices

    partition = alike[0][1]
    situation = _state(partition) if manager_enabled else f"recovery manager off: {state_sentence(partition)}"
    epochs = sorted({one.leader_epoch for _, one in alike})
    epoch = f"{epochs[0]} to {epochs[-1]}" if len(epochs) > 1 else str(epochs[0])
    print(f"{_names(alike)}: no leader, leader epoch {epoch}; {situation}")
    if partition.quorum_reason and manager_enabled and not (partition.isr_nodes or partition.eligible_leader_replicas):
        print(f"  quorum {', '.join(map(str, partition.quorum))}: {partition.quorum_reason}")
    columns = {
        "broker": "Broker",
        "list": "List",
        "state": "State",
        "last_epoch": "LastEpoch",
        "end_offset": "EndOffset",
        "answered": "Answered",
    }
    lacking = [replica.broker_id for replica in partition.replicas if replica.may_lack_records]
    if lacking:
        columns["may_lack_records"] = "MayLackRecords"
    show_rows(columns, [_replica_row(partition, replica) for replica in partition.replicas], as_json=False)
    found = list(choices(partition, manager_enabled))
    columns = {"choice": "Choice", "leader": "Leader", "loss": "RecordsLost", "note": "Note"}
    show_rows(columns, [choice_row(choice) for choice in found], as_json=False)
    if lacking:
        print(
            f"  records may be missing from the end of the log of {', '.join(map(str, lacking))}, after a stop of the "
            "machine or damage: RecordsLost counts only what another replica has"
        )
    print()


def _without_times(partition: RecoveryPartition, manager_enabled: bool) -> str:
    """Equal for partitions whose plans say the same."""
    from heirlog.client.recovery import choices

    rows = [_replica_row(partition, replica) | {"answered": _outcome(replica)} for replica in partition.replicas]
    given = [choice_row(choice) for choice in choices(partition, manager_enabled)]
    situation = (partition.strategy, partition.is_requested, lasting_state_sentence(partition))
    quorum = (sorted(partition.quorum), partition.quorum_reason)
    return repr((situation, quorum, sorted(rows, key=lambda row: int(row["broker"])), given))


def _outcome(replica: Replica) -> str:
    """`_answered` without the age."""
    return "valid" if replica.is_valid and not replica.error_code else _answered(replica)


def _names(alike: Sequence[tuple[str, RecoveryPartition]]) -> str:
    """orders-0, or orders-0, 2 to 7."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in alike:
        by_topic.setdefault(topic, []).append(partition.partition_index)
    return ", ".join(f"{topic}-{_numbers(sorted(indexes))}" for topic, indexes in by_topic.items())


def _numbers(ascending: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in ascending:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    pairs = (([first] if first == last else [first, last], last - first > 1) for first, last in runs)
    return ", ".join((" to " if is_long else ", ").join(map(str, ends)) for ends, is_long in pairs)


def summary(partitions: Sequence[RecoveryPartition]) -> str:
    """Which brokers to start: that is what an operator looks for first, and a cluster may have thousands of plans."""
    brokers = sorted({broker for partition in partitions for broker in partition.waits_for})
    waits = f"; brokers for which they wait: {', '.join(map(str, brokers))}" if brokers else ""
    return f"{len(partitions)} partitions have no leader{waits}"


def _state(partition: RecoveryPartition) -> str:
    text = (
        f"strategy {partition.strategy}{' (asked for)' if partition.is_requested else ''}: {state_sentence(partition)}"
    )
    if partition.runs_for_ms >= 0:
        text += f", for {seconds(partition.runs_for_ms)} now"
    return text


def _replica_row(partition: RecoveryPartition, replica: Replica) -> dict[str, Any]:
    answered = replica.answer_age_ms >= 0
    return {
        "broker": replica.broker_id,
        "list": _list_of(partition, replica.broker_id),
        "state": _replica_state(replica),
        "last_epoch": replica.last_written_leader_epoch if answered and not replica.error_code else None,
        "end_offset": replica.log_end_offset if answered and not replica.error_code else None,
        "answered": _answered(replica),
        "may_lack_records": "yes" if replica.may_lack_records else "-",
    }


def _list_of(partition: RecoveryPartition, broker: int) -> str:
    for name, members in (
        ("ISR", partition.isr_nodes),
        ("ELR", partition.eligible_leader_replicas),
        ("LastKnownELR", partition.last_known_elr),
    ):
        if broker in members:
            return name
    return "-"


def _replica_state(replica: Replica) -> str:
    if not replica.is_registered:
        return "not registered"
    if replica.is_fenced:
        return "fenced"
    if not replica.serves_recovery:
        return "cannot be asked"
    return "can lead" if replica.is_acceptable else "cannot lead"


def _answered(replica: Replica) -> str:
    if replica.error_code:
        # asyncio adds the address once more
        message = _CONNECT_FAILED.sub("no process listens", replica.error_message or "")
        return f"{error_code(replica.error_code).name} {message}".strip()
    if replica.answer_age_ms < 0:
        return replica.error_message or "no"
    age = f"{seconds(replica.answer_age_ms)} ago"
    return age if replica.is_valid else f"{age}, no longer counts"


def choice_row(choice: Choice) -> dict[str, Any]:
    return {
        "choice": choice.name,
        "leader": choice.leader,
        "loss": "-" if choice.leader is None else loss_text(choice.loss),
        "note": _note(choice),
    }


def _note(choice: Choice) -> str:
    if choice.waits_for:
        brokers = ", ".join(map(str, choice.waits_for))
        return f"waits for {'one of ' if choice.waits_for_one and len(choice.waits_for) > 1 else ''}{brokers}"
    if choice.leader is None:
        return "no replica can lead"
    if choice.loss.silent:
        *others, last = map(str, choice.loss.silent)
        return f"not known: what {', '.join(others)} and {last} hold" if others else f"not known: what {last} holds"
    return ""


def loss_text(loss: Loss) -> str:
    """`0`, `1012 (988 to 1999)`, `at most 1012`, or `unknown`."""
    records = loss.records_max
    if records is None:
        return "unknown"
    if not loss.is_exact:
        return f"at most {records}"
    if not records:
        return "0"
    return f"{records} ({loss.first_offset} to {(loss.end_offset or 0) - 1})"


def partition_as_json(topic: str, partition: RecoveryPartition, manager_enabled: bool) -> dict[str, Any]:
    from heirlog.client.recovery import choices

    return {
        "topic": topic,
        "partition": partition.partition_index,
        "leader_epoch": partition.leader_epoch,
        "state": partition.state,
        "strategy": partition.strategy,
        "strategy_is_requested": partition.is_requested,
        "min_isr": partition.min_isr,
        "isr": list(partition.isr_nodes),
        "elr": list(partition.eligible_leader_replicas),
        "last_known_elr": list(partition.last_known_elr),
        "quorum": list(partition.quorum),
        "quorum_reason": partition.quorum_reason,
        "waits_for": list(partition.waits_for),
        "runs_for_ms": _known(partition.runs_for_ms),
        "wait_ends_in_ms": _known(partition.wait_ends_in_ms),
        "replicas": [_replica_as_json(replica) for replica in partition.replicas],
        "choices": [_choice_as_json(choice) for choice in choices(partition, manager_enabled)],
    }


def _replica_as_json(replica: Replica) -> dict[str, Any]:
    answered = replica.answer_age_ms >= 0
    return {
        "broker": replica.broker_id,
        "registered": replica.is_registered,
        "fenced": replica.is_fenced,
        "can_lead": replica.is_acceptable,
        "can_be_asked": replica.serves_recovery,
        "registered_epoch": _known(replica.registered_epoch),
        "answer_counts": replica.is_valid,
        "answer_age_ms": _known(replica.answer_age_ms),
        "broker_epoch": _known(replica.broker_epoch),
        "current_leader_epoch": replica.current_leader_epoch if answered else None,
        "last_written_leader_epoch": replica.last_written_leader_epoch if answered else None,
        "end_offset": _known(replica.log_end_offset),
        "may_lack_records": replica.may_lack_records if answered else None,
        "error": error_code(replica.error_code).name if replica.error_code else None,
        "error_message": replica.error_message,
    }


def _choice_as_json(choice: Choice) -> dict[str, Any]:
    loss = choice.loss
    return {
        "choice": choice.name,
        "leader": choice.leader,
        "waits_for": list(choice.waits_for),
        "waits_for_one": choice.waits_for_one,
        "records_lost_max": loss.records_max,
        "first_offset": loss.first_offset,
        "end_offset": loss.end_offset,
        "exact": loss.is_exact,
        "held_by": [answer.broker for answer in loss.held_by],
        "silent": list(loss.silent),
    }


def _known(number: int) -> int | None:
    return None if number < 0 else number
