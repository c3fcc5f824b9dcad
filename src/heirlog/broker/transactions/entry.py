"""What the coordinator of a transactional id keeps for it in memory.

An election of the partition on a lossy basis may give up the newest state of an id. Its producer may then have an epoch
that the coordinator does not know, and the next one would get it a second time: partitions would take its batches for
repetitions of the other's, acknowledge them and not store them. So where another replica may hold more than the
winner, an id whose newest record is older than such an election is *in doubt* until it has a fresh producer id: what
is decided is carried out, every other request of its producers is refused with PRODUCER_FENCED, and InitProducerId
gives a fresh producer id. (Apache Kafka continues with the epoch that it knows.)

The same holds where a replica's log may lack records that no other replica has: its machine has lost power
(`storage/boot_mark.py`), an administrator has put back an older copy of the folder, or the disk has lost what it had
flushed. If no record of an election says it, the coordinator writes its doubts. Where all replicas have answered, none
of them may lack records, and the winner holds the most, its producers continue: all nodes of a cluster may be killed
and come back within a transaction.
"""

from __future__ import annotations

from heirlog.broker.transactions.marker_sender import MarkerJob
from heirlog.broker.transactions.state import Transaction


def is_in_doubt(written_in: int, doubtful_epoch: int) -> bool:
    """Whether an election may have given up what followed a record. written_in: its leader epoch."""
    return written_in < doubtful_epoch


class TransactionEntry:
    __slots__ = ("is_in_doubt", "is_pending", "job", "open_since_ms", "transaction")

    def __init__(self, transaction: Transaction) -> None:
        self.open_since_ms = 0
        """Since when this coordinator knows that the transaction is open, by the clock that no administrator sets."""
        self.transaction = transaction
        """As committed, except that an id without an epoch has no record yet."""
        self.is_in_doubt = False
        self.is_pending = False
        self.job: MarkerJob | None = None
