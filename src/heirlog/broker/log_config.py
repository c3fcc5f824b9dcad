"""A topic's configuration in the form that its logs use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import server_value, topic_values
from heirlog.metadata.image import Image
from heirlog.protocol.compression import CODEC_NAMES, DEFAULT_LEVELS
from heirlog.storage.config import LogConfig


def log_config_of(image: Image, static: StaticConfig, topic: str) -> LogConfig:
    """The topic's dynamic values, else the cluster's, else this broker's own, else Kafka's defaults."""
    values = topic_values(image, static, topic)
    compact = "compact" in values["cleanup.policy"]
    segment_ms = values["segment.ms"]
    if compact:
        # the active segment is never compacted, so it must not stay the active one for longer (KIP-354)
        segment_ms = min(segment_ms, values["max.compaction.lag.ms"])
    codec, level = _compression_of(values)
    return LogConfig(
        segment_bytes=values["internal.segment.bytes"] or values["segment.bytes"],
        segment_ms=segment_ms,
        segment_index_bytes=values["segment.index.bytes"],
        index_interval_bytes=values["index.interval.bytes"],
        retention_ms=values["retention.ms"],
        retention_bytes=values["retention.bytes"],
        flush_messages=values["flush.messages"],
        flush_ms=values["flush.ms"],
        log_append_time=values["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
        compression=codec,
        compression_level=level,
        max_message_bytes=values["max.message.bytes"],
        file_delete_delay_ms=values["file.delete.delay.ms"],
        producer_id_expiration_ms=server_value(image, static, "producer.id.expiration.ms"),
        delete_enabled="delete" in values["cleanup.policy"],
        compact=compact,
        delete_retention_ms=values["delete.retention.ms"],
        min_compaction_lag_ms=values["min.compaction.lag.ms"],
        max_compaction_lag_ms=values["max.compaction.lag.ms"],
        min_cleanable_dirty_ratio=values["min.cleanable.dirty.ratio"],
    )


def _compression_of(values: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Codec and level; None for both: the producer's."""
    name = values["compression.type"]
    if name == "producer":
        return None, None
    codec = CODEC_NAMES.index("none" if name == "uncompressed" else name)
    return codec, values[f"compression.{name}.level"] if codec in DEFAULT_LEVELS else None
