"""Compresses a producer's batch with the codec of its topic (compression.type other than `producer`).

Only the leader does this, once, before the batch gets its offset; followers and consumers see the result. A batch that
has the codec already is not changed, whatever its level. Otherwise its records are written again byte for byte, with
the producer's id, epoch and sequence; the maximum timestamp is the records' own. The batch may be larger or smaller
afterwards, so its size is checked again. The compression takes time of the leader's event loop.

Source: KIP-390; Kafka's LogValidator.validateMessagesAndAssignOffsets, BrokerCompressionType.
"""

from __future__ import annotations

from heirlog.env import Buffer
from heirlog.protocol.batch import BatchHeader
from heirlog.storage.cleaning.records import latest_timestamp, payload_of, rewritten, spans
from heirlog.storage.config import LogConfig
from heirlog.storage.validation import check_size


def recompressed(batch: Buffer, header: BatchHeader, codec: int, config: LogConfig) -> tuple[bytearray, BatchHeader]:
    """The whole batch in `codec`. Raises InvalidBatch, DecompressionError, and LogError where it is too large now."""
    payload = payload_of(batch, header)
    max_timestamp = latest_timestamp(header, spans(payload, header))
    again, new_header = rewritten(header, payload, max_timestamp, codec, config.compression_level)
    check_size(new_header.size, config)
    return bytearray(again), new_header
