"""Log compaction of one log: keep the last record of each key (KIP-58, KIP-534).

    plan.py         what of a log is clean, dirty, and not to be touched yet; which segments become one
    offset_map.py   the last offset of each key, within bounds
    records.py      looking into a batch without decoding it; a batch with some records less; batches without any
    compaction.py   one pass over a log, in small steps
    swap.py         the rewritten segment takes the place of the old ones, also when a crash comes in between
    checkpoint.py   `cleaner-offset-checkpoint`: how far each log is clean

Part of floor 1. `heirlog.broker.cleaner` decides which log is next and when a step is taken; `log.py` and `recovery.py`
know `swap.py` only.

A compacted log has no gaps. Where whole batches go, one empty batch remains that covers their offsets in their leader
epoch (Kafka leaves the offsets out). 61 bytes for each run of them keep everything true that recovery and replication
rely on: each batch continues the one before, so what is missing was lost, and each leader epoch begins where it began.
"""
