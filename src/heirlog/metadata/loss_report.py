"""The records that an election gave up, derived from its metadata record alone (`basis.py`).

A log is compared by the pair (last written epoch, end offset), as the recovery manager compares them:

    a replica's pair, compared with the winner's               records that it holds and the winner does not
    lower or equal                                             none that this election gave up: within one epoch the
                                                               shorter log is part of the longer one, and a tail of an
                                                               older epoch was given up when the newer one began
    the same epoch, a higher end                               exactly those between the two ends
    a newer epoch                                              all up to its end, from an unknown offset on that is at
                                                               or below the winner's end
    no answer that counts, an older one (it was asked again)   at most what it had then: without a leader no log grows
    never answered                                             unknown, and also whether its epoch is a newer one

So a loss is exact if the winner and all replicas that may hold more answered, and none of them had a newer epoch. It
counts the records on disk when the replicas were asked. Records that a power cut removed from every disk before that
cannot be counted. Where they may exist, the report names the replicas whose logs may lack some (`may_lack_records`).

The report is a record of the internal topic `__heirlog_recoveries`, JSON in key and value, written by the broker that
leads the partition. The same election gives the same bytes, on every broker and every time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from heirlog.metadata.basis import UNKNOWN_OFFSET, Basis, ElectionBasis, ReplicaAnswer
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch, Uuid, uuid_from_text, uuid_text

FORMAT = 1


class Certainty(Enum):
    """Whether an election on a lossy basis gave anything up, as far as answers tell; the names are those of metrics."""

    NONE = "none"
    """No replica can hold more than the winner."""
    POSSIBLE = "possible"
    """A replica has not said what it holds."""
    CERTAIN = "certain"
    """A replica has said that it holds more."""


class Loss(NamedTuple):
    """Offsets that other replicas hold and the winner does not."""

    first_offset: int | None
    """None: unknown."""
    end_offset: int | None
    """Behind the last; None: a replica has not said how far its log reaches."""
    is_exact: bool
    held_by: tuple[ReplicaAnswer, ...]
    """Who holds some of it, as far as is known, in assignment order."""
    silent: tuple[BrokerId, ...]
    """Who has not given an answer that counts."""

    @property
    def records_max(self) -> int | None:
        """The number of offsets, at most; None: without limit."""
        return None if self.end_offset is None else self.end_offset - (self.first_offset or 0)

    @property
    def certainty(self) -> Certainty:
        if any(answer.answered for answer in self.held_by):
            return Certainty.CERTAIN
        return Certainty.POSSIBLE if self.held_by or self.end_offset is None else Certainty.NONE


def loss_of(winner: BrokerId, replicas: Iterable[ReplicaAnswer]) -> Loss:
    """What an election of `winner` gives up, one answer per assigned replica."""
    answers = list(replicas)
    # the winner's answer from before a restart is not a lower limit: its log may be shorter since
    won = next((answer for answer in answers if answer.broker == winner and answer.answered), None)
    others = [answer for answer in answers if answer.broker != winner]
    held_by = tuple(answer for answer in others if answer.end_offset >= 0 and _exceeds(answer, won))
    limited = all(answer.end_offset != UNKNOWN_OFFSET for answer in others)
    parts_at_its_end = (
        won is not None and limited and all(answer.last_written_epoch == won.last_written_epoch for answer in held_by)
    )
    first_offset = won.end_offset if won is not None and parts_at_its_end else None
    end_offset = max((answer.end_offset for answer in held_by), default=first_offset or 0) if limited else None
    return Loss(
        first_offset,
        end_offset,
        is_exact=not others or (parts_at_its_end and all(answer.answered for answer in held_by)),
        held_by=held_by,
        silent=tuple(answer.broker for answer in answers if not answer.answered),
    )


def _exceeds(answer: ReplicaAnswer, won: ReplicaAnswer | None) -> bool:
    if won is None:
        return answer.end_offset > 0
    return (answer.last_written_epoch, answer.end_offset) > (won.last_written_epoch, won.end_offset)


@dataclass(frozen=True, slots=True)
class LossReport:
    topic: str
    topic_id: Uuid
    partition: int
    election: ElectionBasis

    @property
    def loss(self) -> Loss:
        return loss_of(self.election.leader, self.election.replicas)

    @property
    def may_lack_records(self) -> tuple[BrokerId, ...]:
        """Who has lost its newest records, perhaps, before it was asked: no answer says how many."""
        return tuple(answer.broker for answer in self.election.replicas if answer.may_lack_records)

    @property
    def key(self) -> bytes:
        election = self.election
        return _json(
            {
                "topic_id": uuid_text(self.topic_id),
                "partition": self.partition,
                "leader_epoch": election.leader_epoch,
            }
        )

    @property
    def value(self) -> bytes:
        return _json(self.as_json())

    def as_json(self) -> dict[str, Any]:
        election, loss = self.election, self.loss
        return {
            "format": FORMAT,
            "topic": self.topic,
            "topic_id": uuid_text(self.topic_id),
            "partition": self.partition,
            "leader_epoch": election.leader_epoch,
            "leader": election.leader,
            "basis": election.basis.value,
            "controller_epoch": election.controller_epoch,
            "timestamp_ms": election.timestamp_ms,
            "leader_end_offset": _known(election.end_offset),
            "first_offset": loss.first_offset,
            "end_offset": loss.end_offset,
            "records_max": loss.records_max,
            "exact": loss.is_exact,
            "held_by": [answer.broker for answer in loss.held_by],
            "silent": list(loss.silent),
            "may_lack_records": list(self.may_lack_records),
            "replicas": [_answer_as_json(answer) for answer in election.replicas],
        }


def read_report(value: bytes | None) -> LossReport | None:
    """The report in a record's value; None for what is no report, or one of a later format."""
    if value is None:
        return None
    try:
        fields = json.loads(value)
        if not isinstance(fields, dict) or fields["format"] != FORMAT:
            return None
        return LossReport(
            topic=str(fields["topic"]),
            topic_id=uuid_from_text(fields["topic_id"]),
            partition=int(fields["partition"]),
            election=ElectionBasis(
                basis=Basis(fields["basis"]),
                leader=BrokerId(fields["leader"]),
                leader_epoch=LeaderEpoch(fields["leader_epoch"]),
                end_offset=_or_unknown(fields["leader_end_offset"]),
                controller_epoch=int(fields["controller_epoch"]),
                timestamp_ms=int(fields["timestamp_ms"]),
                replicas=tuple(_answer_from(each) for each in fields["replicas"]),
            ),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _answer_as_json(answer: ReplicaAnswer) -> dict[str, Any]:
    return {
        "broker": answer.broker,
        "broker_epoch": _known(answer.broker_epoch),
        "last_written_epoch": answer.last_written_epoch,
        "end_offset": _known(answer.end_offset),
        "may_lack_records": answer.may_lack_records,
    }


def _answer_from(fields: Mapping[str, Any]) -> ReplicaAnswer:
    return ReplicaAnswer(
        broker=BrokerId(fields["broker"]),
        broker_epoch=BrokerEpoch(_or_unknown(fields["broker_epoch"])),
        last_written_epoch=int(fields["last_written_epoch"]),
        end_offset=_or_unknown(fields["end_offset"]),
        # reports of earlier versions do not say it
        may_lack_records=bool(fields.get("may_lack_records", False)),
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _or_unknown(number: int | None) -> int:
    return UNKNOWN_OFFSET if number is None else int(number)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
