"""Log compaction of one log: keep the last record of each key (KIP-58, KIP-534).

    plan.py            which parts of a log are clean, dirty, and not cleanable yet; which segments are merged
    offset_map.py      the last offset of each key, within bounds
    records.py         reading a batch without decoding it; a batch with fewer records; batches without records
    transactions.py    which batches are aborted, and which markers have no batch left
    compaction.py      one cleaning of a log, in small steps
    swap.py            the rewritten segment replaces the old ones, safely in case of a crash
    segment_swaps.py   the swaps of one log, and how a truncation ends them
    checkpoint.py      `cleaner-offset-checkpoint`: how far each log is clean

Part of floor 1. `heirlog.broker.cleaner` decides which log is next and when a step is taken. Every log has its
`SegmentSwaps`, and `recovery.py` completes a swap that a crash interrupted.

A compacted log has no gaps. If whole batches are removed, one empty batch remains that covers their offsets in their
leader epoch (Kafka leaves a gap). For 61 bytes per run of removed batches, recovery and replication can rely on two
facts: each batch continues the one before, so a gap means a loss; and each leader epoch keeps its start offset.
"""
