"""The configuration of a log, with Kafka's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass

_INT64_MAX = 2**63 - 1
NEVER = _INT64_MAX
"""Value of `flush_messages` and `flush_ms` if only the operating system flushes."""


@dataclass(slots=True)
class LogConfig:
    """Mutable: a topic's configs change while its logs are open, and every log reads them at each use."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """-1: no limit."""
    retention_bytes: int = -1
    """-1: no limit."""
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    log_append_time: bool = False
    """message.timestamp.type=LogAppendTime."""
    timestamp_before_max_ms: int = _INT64_MAX
    """message.timestamp.before.max.ms"""
    timestamp_after_max_ms: int = 60 * 60 * 1000
    """message.timestamp.after.max.ms"""
    compression: int | None = None
    """compression.type: the codec in which batches are stored; None: each as its producer compressed it."""
    compression_level: int | None = None
    """Level of that codec; None: its default."""
    max_message_bytes: int = 1024 * 1024 + 12
    file_delete_delay_ms: int = 60_000
    producer_id_expiration_ms: int = 86_400_000
    delete_enabled: bool = True
    """cleanup.policy contains `delete`."""
    compact: bool = False
    """cleanup.policy contains `compact`."""
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _INT64_MAX
    min_cleanable_dirty_ratio: float = 0.5
