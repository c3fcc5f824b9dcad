"""Compacted topics of a run: their records, and which of them must survive.

A record is its number: the number says its key, and whether it is a tombstone (which carries the number in a header).
One producer writes them, one batch at a time, so that within a partition greater numbers have greater offsets. Then:

    for every key, a reader of the whole partition ends with a number at least as great as the last acknowledged one

and nothing else is promised: older values may be gone. If the last is a tombstone, or one of unknown fate came after,
there may be no record of the key at all. Offsets stay with their records: `inconsistent_offsets`
(`history_checks.records`) sees to that.

Trap: an election on a lossy basis may give up the newer value of a key after a follower has compacted the older one
away. So records that were sent before such an election are not checked. And a replica that was down for longer than
delete.retention.ms may never receive a tombstone, as in Kafka: runs keep tombstones for an hour.

Source: KIP-58, KIP-87; Kafka's documentation, "Log Compaction".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from heirlog.protocol.batch import Record
from heirlog.sim.history import AcknowledgedRecord, Finding, KnownLoss

KEYS = 12
"""Written again and again."""
COLD_EVERY = 37
COLD_KEYS = 60
"""Written so rarely that their last record is in a part of the log that is compacted again and again."""
TOMBSTONE_EVERY = 11
"""Not a divisor of the other numbers, so that every key gets some."""
NUMBER_HEADER = "number"
LOST_KEY = "lost-key"


def key_of(number: int) -> int:
    if number % COLD_EVERY == 0:
        return KEYS + number // COLD_EVERY % COLD_KEYS
    return number % KEYS


def is_tombstone(number: int) -> bool:
    return number % TOMBSTONE_EVERY == 0


def number_in(record: Record) -> int | None:
    """Of a record that a producer of the run wrote, of any topic; None: it has none."""
    if record.value is not None:
        return int(record.value)
    return next((int(value) for name, value in record.headers if name == NUMBER_HEADER and value is not None), None)


def lost_key(
    acknowledged: Iterable[AcknowledgedRecord],
    last_read: Mapping[str, Mapping[int, int]],
    sent_end: int,
    losses: Collection[KnownLoss] = (),
) -> list[Finding]:
    """Keys for which a reader of everything did not end with the last acknowledged value or a later one.

    acknowledged: of the partitions in question. last_read: per partition and key, the last number. sent_end: one past
    the greatest number that was sent at all.
    """
    last: dict[tuple[str, int], int] = {}
    for one in acknowledged:
        if any(loss.partition == one.partition and one.time_ms <= loss.time_ms for loss in losses):
            continue
        assert isinstance(one.value, int)
        place = (one.partition, key_of(one.value))
        last[place] = max(last.get(place, -1), one.value)
    found = []
    for (partition, key), number in sorted(last.items()):
        read = last_read.get(partition, {}).get(key)
        if read is None and any(is_tombstone(later) for later in range(number, sent_end) if key_of(later) == key):
            continue
        if read is None or read < number:
            sentence = f"{partition}: key {key} ends with {read}, and {number} was acknowledged"
            found.append(Finding(LOST_KEY, sentence))
    return found
