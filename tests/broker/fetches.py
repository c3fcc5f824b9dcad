"""A broker that leads, and what its answers to a Fetch hold."""

from __future__ import annotations

from typing import Any

from heirlog.protocol.batch import decode_records, read_header
from heirlog.protocol.primitives import records_view

from .fakes import Rig, answer_of, state


def data_of(result: Any, number: int = 0) -> Any:
    return answer_of(result).responses[0].partitions[number]


def records_of(result: Any, number: int = 0) -> list[int]:
    """Offsets of the records in the answer."""
    view, offsets, position = records_view(data_of(result, number).records), [], 0
    while position < len(view):
        offsets += [record.offset for record in decode_records(view, position)]
        position += read_header(view, position).size
    return offsets


def leader(replicas: list[int] | None = None, **kwargs: Any) -> Rig:
    rig = Rig(**kwargs).started()
    rig.show(state(replicas or [1]))
    return rig
