"""What a client tells its caller apart: failures that ask for different next steps.

Each is a `KafkaError` with the code that a broker gives for it. No answer at all is an `OSError`: a TimeoutError, a
ConnectionError, or `Unsupported`.
"""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The newest leader epoch of a log that is not above the requested one, and its end offset. (-1, -1): unknown."""

    leader_epoch: int
    end_offset: int


class OffsetOutOfRange(KafkaError):
    """The leader's log does not contain this offset (any more). The bounds are -1 if the answer did not name them."""

    def __init__(
        self, topic: str, partition: int, offset: int, log_start_offset: int = -1, high_watermark: int = -1
    ) -> None:
        reason = "it was deleted by retention, or truncated"
        if log_start_offset >= 0:
            gone = (
                "earlier records were deleted"
                if offset < log_start_offset
                else "the log was truncated, or it is another log"
            )
            reason = f"it holds {log_start_offset} to {high_watermark}: {gone}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{topic}-{partition} has no offset {offset}; {reason}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class LogTruncated(KafkaError):
    """Records that were read before `offset` are no longer in the leader's log, which diverges at `end`.

    Source: KIP-320, KIP-595 (diverging epoch).
    """

    def __init__(self, topic: str, partition: int, offset: int, epoch: int, end: EpochEnd) -> None:
        now = "its leader does not know that leader epoch"
        if end.end_offset >= 0:
            now = f"the log now has epoch {end.leader_epoch} up to {end.end_offset}"
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{topic}-{partition} was truncated below offset {offset}: records of leader epoch {epoch} were read up to "
            f"there, and {now}",
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.epoch = epoch
        self.end = end


class TopicRecreated(KafkaError):
    """The expected topic was deleted; another topic may have its name now."""

    def __init__(self, topic: str, expected: bytes, found: bytes | None) -> None:
        there = f"the topic of this name has the id {found.hex()}" if found else "no topic has this id any more"
        super().__init__(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"topic {topic} with the id {expected.hex()} was deleted: {there}",
        )
        self.topic = topic
        self.expected = expected
        self.found = found


class TransactionAbortable(KafkaError):
    """The open transaction can only be aborted. Afterwards the same producer may begin another (KIP-1050)."""


class ProducerFenced(KafkaError):
    """The producer's epoch is no longer valid: another producer has its transactional id, or the coordinator aborted
    its transaction. Initialise the producer again, which in turn fences the other one (KIP-1050: recoverable by the
    application).
    """


class Unsupported(OSError):
    """The server and this client have no common version of this API. A retry cannot help."""


class ClosedUnanswered(ConnectionError):
    """The server has closed a connection on which it had answered nothing: its listener may want TLS, or SASL."""


class AuthenticationFailed(KafkaError):
    """The broker refused the client's credentials, or the client refused the broker's certificate. A retry cannot
    help.
    """

    def __init__(self, message: str, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED) -> None:
        super().__init__(code, message)
