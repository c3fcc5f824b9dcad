"""Start and end of the leader's log, for a follower whose fetch offset is outside of them (OFFSET_OUT_OF_RANGE).

    ask for the leader's end
        below our start    ask for its start, and start over there: from its end on we would lack the records below it
        below our end      truncate our log to it
        else               ask for its start; if that is beyond our end, start over there; else truncate what claims an
                           epoch above that of its leader

A leader also says so if it does not know the epoch of our last record. One above its own was never given: the bytes of
the batch that hold it, which no CRC covers, are damaged.

A truncation may have to wait (`discarded_records.py`); then the function given to `cut` runs later. Records below the
leader's log start are not lost: they were deleted there.

Source: kafka-behaviour 4.5.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.partition import Partition
from heirlog.env import SendFailure
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from heirlog.protocol.types import BrokerId

LATEST_TIMESTAMP = -1
EARLIEST_LOCAL_TIMESTAMP = -4


class LogRange:
    """One search.

    ask: sends a request to the leader; the sender passes the answer to `answered`. cut: truncates from an offset on, by
    the function that it is given. on_found: called once our log ends within the leader's.
    """

    def __init__(
        self,
        partition: Partition,
        leader_epoch: int,
        me: BrokerId,
        *,
        ask: Callable[[ListOffsetsRequest], None],
        cut: Callable[[int, Callable[[], None]], None],
        on_found: Callable[[], None],
    ) -> None:
        self._partition = partition
        self._leader_epoch = leader_epoch
        self._me = me
        self._ask = ask
        self._cut = cut
        self._on_found = on_found
        self._then: Callable[[int], None] = self._end_is

    def start(self) -> None:
        self._ask_offset(LATEST_TIMESTAMP, self._end_is)

    def answered(self, result: ListOffsetsResponse | SendFailure) -> str | None:
        """Process the answer; returns its error, or None. Raises OSError if our own log cannot be truncated."""
        error = "no answer" if isinstance(result, SendFailure) else _error_of(result)
        if error is not None or isinstance(result, SendFailure):
            return error
        self._then(result.topics[0].partitions[0].offset)
        return None

    def _ask_offset(self, timestamp: int, then: Callable[[int], None]) -> None:
        self._then = then
        asked = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=self._partition.index, current_leader_epoch=self._leader_epoch, timestamp=timestamp
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self._partition.topic, partitions=[asked])
        self._ask(ListOffsetsRequest(replica_id=self._me, topics=[topic]))

    def _end_is(self, leader_end_offset: int) -> None:
        log = self._partition.log
        if leader_end_offset < log.log_start_offset:
            self._ask_offset(EARLIEST_LOCAL_TIMESTAMP, self._start_over)
        elif leader_end_offset < log.log_end_offset:
            self._cut(leader_end_offset, lambda: self._found(self._partition.truncate_to, leader_end_offset))
        else:
            self._ask_offset(EARLIEST_LOCAL_TIMESTAMP, self._start_is)

    def _start_is(self, leader_start_offset: int) -> None:
        log = self._partition.log
        if leader_start_offset > log.log_end_offset:
            self._partition.start_over_at(leader_start_offset)
        else:
            damaged = log.epochs.start_above(self._leader_epoch)
            if damaged is not None:
                self._cut(damaged, lambda: self._found(self._partition.truncate_to, damaged))
                return
        self._on_found()

    def _start_over(self, leader_start_offset: int) -> None:
        everything = self._partition.log.log_start_offset
        self._cut(everything, lambda: self._found(self._partition.start_over_at, leader_start_offset))

    def _found(self, cut: Callable[[int], None], offset: int) -> None:
        cut(offset)
        self._on_found()


def _error_of(response: ListOffsetsResponse) -> str | None:
    if not response.topics or not response.topics[0].partitions:
        return "an empty answer"
    code = response.topics[0].partitions[0].error_code
    return None if code == ErrorCode.NONE else error_code(code).name
