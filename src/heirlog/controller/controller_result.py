"""What a handler returns: the records to append, and how to answer once they are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from heirlog.metadata.basis import Basis
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    RegisterBrokerRecord,
)
from heirlog.raft.values import MAX_BATCH_BYTES, MAX_RECORDS_PER_BATCH, batch_bytes_max

R = TypeVar("R")
_OF_ANY_SIZE: Final = frozenset((AccessControlEntryRecord, ClientQuotaRecord, ConfigRecord, RegisterBrokerRecord))
"""Records whose size is limited only by the size of the request."""


@dataclass(slots=True)
class ControllerResult(Generic[R]):
    """`respond` gets the offset of the first record; without records, the offset after the last appended record."""

    respond: Callable[[int], R]
    records: list[Any] = field(default_factory=list)
    elections: list[Basis] = field(default_factory=list)
    """The basis of each election in `records`, for the metrics."""
    rest: Callable[[], ControllerResult[R]] | None = None
    """Makes more records in a later turn, once these are applied; each prefix must be safe on its own. The last result
    answers; `respond` of the earlier ones is not called."""
    control_offset: int = -1
    """Offset of control records that the request has appended besides: the answer waits for their commit too."""
    refusal: str = ""
    """Why the request was refused. It is logged, for answers that have no field for an error message."""


def answer(response: R, refusal: str = "") -> ControllerResult[R]:
    """A result that changes nothing."""
    return ControllerResult(lambda base_offset: response, refusal=refusal)


def all_or_none(name: str, records: Sequence[Any], max_records: int = MAX_RECORDS_PER_BATCH) -> list[Any]:
    """Records that must all be applied or none: in a metadata transaction if one batch is too small (KIP-868)."""
    if len(records) <= max_records and batch_bytes_max(records) <= MAX_BATCH_BYTES:
        return list(records)
    return [BeginTransactionRecord(name=name), *records, EndTransactionRecord()]


def check_sizes(records: Sequence[Any]) -> None:
    """Raises KafkaError RECORD_LIST_TOO_LARGE if one record is larger than a batch may be, as on Apache Kafka."""
    for record in records:
        if type(record) in _OF_ANY_SIZE and batch_bytes_max((record,)) > MAX_BATCH_BYTES:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"A {type(record).__name__} would be larger than {MAX_BATCH_BYTES} bytes, the limit of a "
                "batch in the metadata log; make the value shorter.",
            )
