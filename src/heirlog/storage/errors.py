"""Errors of a log, with Kafka's error codes. A failing disk raises the `OSError` itself."""

from __future__ import annotations

from heirlog.protocol.errors import ErrorCode, KafkaError

_INPUT_OUTPUT_ERROR = 5
"""EIO: what a disk reports that notices its own damage."""


class LogError(KafkaError):
    """An append, read or truncation was refused; the log is as it was."""


class InvalidRecords(LogError):
    """Some records of a batch are not allowed in this log, so none of them was appended."""

    def __init__(self, message: str, indexes: list[int]) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
        self.indexes = indexes
        """Their places in the batch."""


class OffsetOutsideLog(LogError):
    def __init__(self, log: str, offset: int, start: int, end: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is outside the range {start} to {end} of {log}"
        )


class UnexpectedAppendOffset(LogError):
    """A follower received batches that do not continue its log."""

    def __init__(self, log: str, expected: int, offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{log} ends at {expected}; batches that begin at {offset} leave a gap"
        )


class DamagedLog(OSError):
    """Bytes on the disk are not those that were written: the disk has failed, though it reports no error."""

    def __init__(self, path: str, position: int, base_offset: int) -> None:
        super().__init__(_INPUT_OUTPUT_ERROR, f"the batch at byte {position} is damaged", path)
        self.position = position
        self.base_offset = base_offset
        """Of the segment."""


class StorageFormatError(Exception):
    """A file in a log directory is not what it should be; the message says which and what to do."""


class ForeignDirectory(StorageFormatError):
    """A log directory of another cluster or node, or a copy of one that is configured too.

    That is a mistake in the configuration and not a broken disk, so the node refuses to start."""
