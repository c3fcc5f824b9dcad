"""A Parquet file, written in groups of rows, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyarrow import parquet

_CHUNK_ROWS = 256
"""Rows that are kept as Python objects."""
_GROUP_ROWS = 8192
_GROUP_BYTES = 8 << 20


class TableWriter:
    """A `with` block in which rows are added to one Parquet file. Raises OSError."""

    def __init__(self, path: Path, schema: pa.Schema, chunk_rows: int = _CHUNK_ROWS) -> None:
        """chunk_rows: fewer than usual for a table of large rows."""
        self._schema = schema
        self._chunk_rows = chunk_rows
        self._rows: list[dict[str, Any]] = []
        self._group: list[pa.RecordBatch] = []
        self._writer = parquet.ParquetWriter(path, schema)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._end_chunk()
                self._end_group()
        finally:
            self._writer.close()

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= self._chunk_rows:
            self._end_chunk()

    def _end_chunk(self) -> None:
        self._group.append(pa.RecordBatch.from_pylist(self._rows, schema=self._schema))
        self._rows.clear()
        if (
            sum(chunk.num_rows for chunk in self._group) >= _GROUP_ROWS
            or sum(chunk.nbytes for chunk in self._group) >= _GROUP_BYTES
        ):
            self._end_group()

    def _end_group(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._group, schema=self._schema))
        self._group.clear()
