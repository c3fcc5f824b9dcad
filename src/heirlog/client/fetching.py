"""Reading one partition from one offset to another: what to ask next, and what an answer means.

    request() --> Fetch --> answered()  Fetched    whole batches; `position` moved behind them
                                        None       nothing new yet: ask again
                                        an error code that asks for newer metadata: `position` stays
                                        raises     OffsetOutOfRange, LogTruncated, KafkaError: asking again cannot help

It is over when no offset below `stop` is left, which need not be a record: compaction leaves gaps, and a batch may be
a transaction's control batch. A batch from behind `stop` proves that nothing below it is left.

An answer may begin before the offset asked for (whole batches only) and end inside a batch, which is cut off and comes
again. Each request carries the epoch of the last batch before its offset (v12), so that the leader itself says where
its log diverges after a truncation; a client that only looks at offsets would read on in another history.

Asked for is what is left to read, as far as the batches seen so far tell how many bytes an offset takes: a broker would
fill the answer with what lies behind `stop`, and a reader of many short ranges would receive each byte several times.

Source: KIP-320, KIP-595 (diverging epochs), KIP-98 (aborted transactions), KIP-516 (topic ids).
"""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.client.errors import EpochEnd, LogTruncated, OffsetOutOfRange
from heirlog.client.retriable import REFRESH_AND_RETRY
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, crc_matches, read_header
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import FetchRequest, FetchResponse
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import ZERO_UUID

NEWEST_BY_NAME = 12
"""The last Fetch version that names topics; later ones take ids only."""
WITHOUT_SESSION = (0, -1)
FIRST_BYTES = 1 << 20
"""Size limit of the first answer, while the size of the records is unknown."""
MARGIN_BYTES = 64 << 10
RETRIED = REFRESH_AND_RETRY | {ErrorCode.UNKNOWN_SERVER_ERROR}


@dataclass(slots=True)
class Fetched:
    """A part of a partition: consecutive record batches."""

    records: memoryview
    """Whole batches of format 2. Valid only until the next part is requested."""
    first_offset: int
    """Of the first batch; may be before the requested offset."""
    next_offset: int
    """The offset after the last batch."""
    last_epoch: int
    """Leader epoch of the last batch."""
    aborted: list[tuple[int, int]]
    """Producer id and first offset of the aborted transactions in this part, by first offset (read_committed)."""
    high_watermark: int
    last_stable_offset: int
    """-1 where the broker does not say."""
    log_start_offset: int
    """-1 where the broker does not say."""


class PartitionFetch:
    """stop: the offset not to read any more. last_epoch: of the record before `start`, -1 if unknown."""

    def __init__(
        self,
        topic: str,
        partition: int,
        start: int,
        stop: int,
        *,
        isolation: int,
        max_bytes: int,
        max_wait_ms: int,
        last_epoch: int = -1,
        check_crcs: bool = True,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.position = start
        self.stop = stop
        self.last_epoch = last_epoch
        self.high_watermark = -1
        self.last_stable_offset = -1
        self._isolation = isolation
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._check_crcs = check_crcs
        self._bytes_per_offset = 0.0

    @property
    def done(self) -> bool:
        return self.position >= self.stop

    @property
    def _bytes_wanted(self) -> int:
        if not self._bytes_per_offset:
            return min(self._max_bytes, FIRST_BYTES)
        left = (self.stop - self.position) * self._bytes_per_offset
        return min(self._max_bytes, int(left * 1.25) + MARGIN_BYTES)

    def request(self, topic_id: bytes | None, leader_epoch: int) -> FetchRequest:
        wanted = FetchRequest.FetchPartition(
            partition=self.partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=self.position,
            last_fetched_epoch=self.last_epoch,
            partition_max_bytes=self._bytes_wanted,
        )
        topic = FetchRequest.FetchTopic(topic_id=topic_id or ZERO_UUID, topic=self.topic, partitions=[wanted])
        session_id, session_epoch = WITHOUT_SESSION
        return FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=self._bytes_wanted,
            isolation_level=self._isolation,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[topic],
        )

    def answered(self, response: FetchResponse) -> Fetched | ErrorCode | None:
        """See the module."""
        data = response.responses[0].partitions[0] if response.responses else None
        code = response.error_code or (0 if data is None else data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            bounds = (-1, -1) if data is None else (data.log_start_offset, data.high_watermark)
            raise OffsetOutOfRange(self.topic, self.partition, self.position, *bounds)
        if code:
            named = error_code(code)
            if named in RETRIED:
                return named
            raise KafkaError(named, f"{self.topic}-{self.partition} cannot be read at offset {self.position}")
        if data is None:
            return None
        return self._read(data)

    def _read(self, data: FetchResponse.PartitionData) -> Fetched | None:
        if data.diverging_epoch.epoch >= 0 or data.diverging_epoch.end_offset >= 0:
            end = EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            raise LogTruncated(self.topic, self.partition, self.position, self.last_epoch, end)
        self.high_watermark, self.last_stable_offset = data.high_watermark, data.last_stable_offset
        records = records_view(data.records)
        if not records:
            return None
        size, first, last, beyond = self._whole_batches(records)
        if last is None:
            if beyond:
                self.position = self.stop
                return None
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{self.topic}-{self.partition}: the batch at offset {self.position} did not fit into "
                f"{self._max_bytes} bytes: read with larger max_bytes",
            )
        self.position = max(last.next_offset, self.stop) if beyond else last.next_offset
        self.last_epoch = last.leader_epoch
        self._bytes_per_offset = size / (last.next_offset - first)
        aborted = [(t.producer_id, t.first_offset) for t in data.aborted_transactions or []]
        return Fetched(
            records[:size],
            first,
            last.next_offset,
            last.leader_epoch,
            sorted(aborted, key=lambda transaction: transaction[1]),
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
        )

    def _whole_batches(self, records: memoryview) -> tuple[int, int, BatchHeader | None, bool]:
        """Bytes of the whole batches below `stop`, their first offset, their last header; whether more lie behind."""
        at, end = 0, len(records)
        first, last = -1, None
        try:
            while end - at >= HEADER_SIZE:
                header = read_header(records, at)
                if header.base_offset >= self.stop:
                    return at, first, last, True
                if at + header.size > end:
                    break
                if self._check_crcs and not crc_matches(records, at, header):
                    raise InvalidBatch("its checksum (CRC-32C) does not match its bytes")
                if last is None:
                    first = header.base_offset
                last = header
                at += header.size
        except InvalidBatch as error:
            where = self.position if last is None else last.next_offset
            raise KafkaError(
                error.code,
                f"{self.topic}-{self.partition}: the batch at offset {where} cannot be read: {error.message}",
            ) from error
        if last is not None and last.next_offset <= self.position:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{self.topic}-{self.partition}: asked for offset {self.position}, got batches that end before it",
            )
        return at, first, last, False
