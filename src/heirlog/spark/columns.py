"""The columns of the source, by Spark's names and in its order. Types: `decode.py` for Arrow, `source.py` for Spark."""

from __future__ import annotations

PLAIN_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
COLUMNS = (*PLAIN_COLUMNS, "headers")
