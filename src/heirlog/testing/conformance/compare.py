"""Compares the values that a file expects with the observed ones.

    lists that are sets     ELR, LastKnownELR, adding, removing; in the broker layer also both ISRs, in the recovery
                            layer the brokers that are asked
    ...AnyOf                one of the values, for the member of that name
    records                 in order, whole, only fields that are set; a run of PartitionChange records that touch
                            different partitions is a set, because Apache Kafka visits partitions in hash order
    partitions, brokers     all of them, complete; adding and removing are empty where the file leaves them out
    everything else         the members that the file names

A broker epoch that the run created and the file cannot know ("new") equals any number, as long as it is the same in all
places of the file that show that broker, until it registers again. An `error` that is a sentence equals any error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from heirlog.protocol.errors import ErrorCode

_SETS: Final = frozenset(
    ("elr", "lastKnownElr", "adding", "removing", "eligibleLeaderReplicas", "addingReplicas", "removingReplicas")
)
_SETS_OF: Final = {"broker": frozenset(("isr", "maximalIsr")), "recovery": frozenset(("brokers",))}
_EPOCHS: Final = ("epoch", "brokerEpoch")
_NEW: Final = "new"
_ANY_OF: Final = "AnyOf"
_CHANGE: Final = "PartitionChangeRecord"


class Comparison:
    """All steps of one scenario, one after another."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self._sets = _SETS | _SETS_OF.get(scenario["layer"], frozenset())
        brokers = scenario["setup"].get("brokers", [])
        self._taken = {broker.get("epoch", 100 + broker["id"]) for broker in brokers}
        self._bound: dict[int, int] = {}

    def step(self, event: Mapping[str, Any], expect: Mapping[str, Any], observed: Mapping[str, Any]) -> list[str]:
        """One sentence per member that differs."""
        broker = event.get("broker", -1)
        if event["type"] == "register_broker":
            self._bound.pop(broker, None)
        found = []
        for name, wanted in expect.items():
            if name.endswith(_ANY_OF):
                seen = observed.get(name.removesuffix(_ANY_OF))
                if seen not in wanted:
                    found.append(f"{name}: expected one of {_text(wanted)}, observed {_text(seen)}")
            elif name not in observed:
                found.append(f"{name}: expected {_text(wanted)}, there is none")
            elif not self._holds(name, wanted, observed[name], broker):
                found.append(f"{name}: expected {_text(wanted)}, observed {_text(observed[name])}")
        return found

    def _holds(self, name: str, wanted: Any, seen: Any, broker: int) -> bool:
        if name == "error":
            return _same_error(wanted, seen)
        if not _are_rows(wanted) or not _are_rows(seen):
            return self._same(name, wanted, seen, broker)
        if name == "records":
            return self._same_rows(_in_order(wanted), _in_order(seen), broker)
        if name in ("partitions", "brokers"):
            key = ("topic", "partition") if name == "partitions" else ("id",)
            complete = [{"adding": [], "removing": [], **row} if name == "partitions" else row for row in wanted]
            return self._same_rows(_sorted(complete, key), _sorted(seen, key), broker)
        if name == "response":
            key = ("topic", "partition")
            return self._same_rows(_sorted(wanted, key), _sorted(seen, key), broker)
        return self._same(name, wanted, seen, broker)

    def _same_rows(self, wanted: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]], broker: int) -> bool:
        return len(wanted) == len(seen) and all(
            set(one) == set(other)
            and all(
                self._same(name, value, other[name], one.get("brokerId", one.get("id", broker)))
                for name, value in one.items()
            )
            for one, other in zip(wanted, seen, strict=True)
        )

    def _same(self, name: str, wanted: Any, seen: Any, broker: int) -> bool:
        if name in _EPOCHS and seen == _NEW:
            return self._same_new_epoch(wanted, broker)
        if name in self._sets and isinstance(wanted, list) and isinstance(seen, list):
            return sorted(wanted) == sorted(seen)
        if isinstance(wanted, dict) and isinstance(seen, dict):
            return all(
                member in seen and self._same(member, value, seen[member], broker) for member, value in wanted.items()
            )
        if isinstance(wanted, list) and isinstance(seen, list) and any(isinstance(member, dict) for member in wanted):
            return len(wanted) == len(seen) and all(
                self._same("", one, other, broker) for one, other in zip(wanted, seen, strict=True)
            )
        # True is 1 in Python and not in JSON
        return type(wanted) is type(seen) and bool(wanted == seen)

    def _same_new_epoch(self, wanted: Any, broker: int) -> bool:
        if wanted == _NEW:
            return True
        if not isinstance(wanted, int) or wanted in self._taken:
            return False
        return self._bound.setdefault(broker, wanted) == wanted


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(member, dict) for member in value)


def _same_error(wanted: Any, seen: Any) -> bool:
    if isinstance(wanted, str) and wanted not in ErrorCode.__members__:
        return seen not in (None, ErrorCode.NONE.name)
    return bool(wanted == seen)


def _in_order(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Runs of changes of different partitions by partition; changes of one partition keep their order."""
    ordered: list[Mapping[str, Any]] = []
    run: list[Mapping[str, Any]] = []
    for record in records:
        if record.get("type") == _CHANGE:
            run.append(record)
            continue
        ordered += [*_sorted(run, ("topic", "partition")), record]
        run = []
    return [*ordered, *_sorted(run, ("topic", "partition"))]


def _sorted(rows: Iterable[Mapping[str, Any]], key: Sequence[str]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: [(str(type(row.get(name))), row.get(name, 0)) for name in key])


def _text(value: Any) -> str:
    return json.dumps(value)
