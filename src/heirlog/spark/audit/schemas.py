"""The tables that an audit writes, as Arrow schemas."""

from __future__ import annotations

import pyarrow as pa

_FOUND = pa.struct([("kind", pa.string()), ("offset", pa.int64()), ("sentence", pa.string())])
_GAP = pa.struct([("start", pa.int64()), ("end", pa.int64()), ("reported", pa.bool_())])
_BUCKET = pa.struct([("bucket", pa.int64()), ("batches", pa.int64()), ("digest", pa.int64())])
_RUN = pa.struct(
    [
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("first_sequence", pa.int32()),
        ("last_sequence", pa.int32()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
    ]
)

SEGMENTS = pa.schema(
    [
        ("log", pa.int64()),
        ("file", pa.string()),
        ("base_offset", pa.int64()),
        ("bytes", pa.int64()),
        ("batches", pa.int64()),
        ("records", pa.int64()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("first_epoch", pa.int32()),
        ("last_epoch", pa.int32()),
        ("max_timestamp_ms", pa.int64()),
        ("rewritten_to", pa.int64()),
        ("ends_damaged", pa.bool_()),
        ("gaps", pa.list_(_GAP)),
        ("findings", pa.list_(_FOUND)),
        ("buckets", pa.list_(_BUCKET)),
        ("producers", pa.list_(_RUN)),
    ]
)

_REPLICA_KEY = [("topic", pa.string()), ("partition", pa.int32()), ("topic_id", pa.string())]

FINDINGS = pa.schema(
    [
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replica", pa.int32()),
        ("offset", pa.int64()),
        ("sentence", pa.string()),
    ]
)

REPLICAS = pa.schema(
    [
        *_REPLICA_KEY,
        ("replica", pa.int32()),
        ("path", pa.string()),
        ("stopped_cleanly", pa.bool_()),
        ("role", pa.string()),
        ("start_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("last_epoch", pa.int32()),
        ("high_watermark", pa.int64()),
        ("partition_high_watermark", pa.int64()),
        ("offsets_below_high_watermark", pa.int64()),
        ("offsets_above_high_watermark", pa.int64()),
        ("missing_below_high_watermark", pa.int64()),
        ("segments", pa.int64()),
        ("batches", pa.int64()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
    ]
)

PARTITIONS = pa.schema(
    [
        *_REPLICA_KEY,
        ("replicas", pa.list_(pa.int32())),
        ("isr", pa.list_(pa.int32())),
        ("elr", pa.list_(pa.int32())),
        ("last_known_elr", pa.list_(pa.int32())),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("min_isr", pa.int32()),
        ("high_watermark", pa.int64()),
        ("reference", pa.int32()),
    ]
)

STATES = pa.schema(
    [
        *_REPLICA_KEY,
        ("metadata_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("partition_epoch", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("isr", pa.list_(pa.int32())),
        ("elr", pa.list_(pa.int32())),
        ("last_known_elr", pa.list_(pa.int32())),
        ("min_isr", pa.int32()),
    ]
)

ELECTIONS = pa.schema(
    [
        *_REPLICA_KEY,
        ("metadata_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("basis", pa.string()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("certainty", pa.string()),
        ("reported", pa.bool_()),
    ]
)

WINDOWS = pa.schema(
    [
        *_REPLICA_KEY,
        ("kind", pa.string()),
        ("from_ms", pa.int64()),
        ("to_ms", pa.int64()),
        ("from_metadata_offset", pa.int64()),
    ]
)
