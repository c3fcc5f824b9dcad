"""Transaction markers: the control record that ends a producer's transaction in one partition.

    batch    transactional and control; the producer's id and epoch, no sequence; exactly one record, not compressed
    key      version int16 = 0, type int16: 0 ABORT, 1 COMMIT
    value    version int16 = 0, coordinator epoch int32

Keys and values of later versions only add fields at the end, so they are read as version 0. A control batch without a
record (the log cleaner's) and a record of another type end nothing.

Source: KIP-98, Kafka's ControlRecordType and EndTransactionMarker.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from heirlog.env import Buffer
from heirlog.protocol.batch import BatchHeader, InvalidBatch, Record, encode_batch, iter_records

ABORT = 0
COMMIT = 1
EPOCH_PER_TRANSACTION = 2
"""The transaction.version from which each transaction has an epoch of its own (KIP-890)."""

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_VERSION = 0


class TransactionMarker(NamedTuple):
    commit: bool
    """False: the transaction is aborted."""
    coordinator_epoch: int
    """Leader epoch of the partition of `__transaction_state` whose leader decided."""


def encode_marker(
    marker: TransactionMarker,
    producer_id: int,
    producer_epoch: int,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
) -> bytearray:
    """The control batch as a leader stores it."""
    key = _KEY.pack(_VERSION, COMMIT if marker.commit else ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return encode_batch(
        [(key, value, (), timestamp_ms)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        control=True,
        transactional=True,
    )


def read_marker(batch: Buffer, header: BatchHeader) -> TransactionMarker | None:
    """The marker in a whole control batch; None if the batch ends no transaction.

    Leaders write markers themselves. A batch whose content is not one has the right CRC and is not refused: a log that
    cannot be opened would be worse than an open transaction, which an operator can abort.
    """
    if header.compression:
        return None
    try:
        record = next(iter_records(batch), None)
    except InvalidBatch:
        return None
    return None if record is None else marker_of(record)


def marker_of(record: Record) -> TransactionMarker | None:
    """The marker in a control record; None if it is of another type."""
    if record.key is None or record.value is None or len(record.key) < _KEY.size or len(record.value) < _VALUE.size:
        return None
    _, kind = _KEY.unpack_from(record.key)
    if kind not in (ABORT, COMMIT):
        return None
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return TransactionMarker(kind == COMMIT, coordinator_epoch)
