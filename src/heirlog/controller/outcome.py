"""What a handler hands back: the records to append, and how to answer once they are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from heirlog.metadata.basis import Basis
from heirlog.protocol.records import BeginTransactionRecord, EndTransactionRecord

MAX_RECORDS_PER_BATCH: Final = 10_000
"""A batch is atomic; what needs more is several batches, or one metadata transaction."""


@dataclass(slots=True)
class Outcome:
    """`respond` gets the offset of the first record (or, without records, the offset after the last one appended)."""

    respond: Callable[[int], Any]
    records: list[Any] = field(default_factory=list)
    elections: list[Basis] = field(default_factory=list)
    """One entry per leader elected by `records`: what gets counted."""
    refusal: str = ""
    """Why the request was refused, where the answer has no room for a sentence: it is logged."""


def answer(response: Any, refusal: str = "") -> Outcome:
    """An outcome that changes nothing."""
    return Outcome(lambda base_offset: response, refusal=refusal)


def all_or_none(name: str, records: Sequence[Any], max_records: int = MAX_RECORDS_PER_BATCH) -> list[Any]:
    """Records that are worth nothing by halves: where one batch is too small, a metadata transaction (KIP-868)."""
    if len(records) <= max_records:
        return list(records)
    return [BeginTransactionRecord(name=name), *records, EndTransactionRecord()]
