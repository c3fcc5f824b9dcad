"""The bytes of metadata record values as this release writes them.

A reader crashes on a record version above what the finalized metadata.version allows. The levels that heirlog accepts,
23 (4.0-IV1) to 29 (4.2-IV1), all allow the same versions, so one set of versions is used here; 30 changes
RegisterBroker. BrokerRegistrationChange is written in the lowest version that carries the change, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Iterable

from heirlog.protocol.batch import HEADER_SIZE
from heirlog.protocol.metadata_record import encode_record, record_version, registration_change_version
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import BrokerRegistrationChangeRecord

LOWEST_METADATA_VERSION = 23
MAX_RECORDS_PER_BATCH = 10_000
MAX_BATCH_BYTES = 8 << 20
_AROUND_A_VALUE_BYTES = 32
"""Upper bound of: two lengths, attributes, two deltas, no key, no headers."""


def encode_value(record: Message) -> bytes:
    if isinstance(record, BrokerRegistrationChangeRecord):
        return encode_record(record, registration_change_version(record))
    return encode_record(record, record_version(type(record), LOWEST_METADATA_VERSION))


def batch_bytes_max(records: Iterable[Message]) -> int:
    """An upper bound, in bytes, of one batch of these records."""
    return HEADER_SIZE + sum(len(encode_value(record)) + _AROUND_A_VALUE_BYTES for record in records)
