"""The broker role: partitions, replication, ISR, high watermark, produce, fetch, and the broker's life cycle.

A partition is a small state machine (`partition.py`); its rules are in `isr.py`, `high_watermark.py` and
`followers.py`. `replica_manager.py` owns the partitions and follows the metadata image. `log_directories.py` owns the
disks that hold their logs, and `delayed_operations.py` the requests that wait for them. `replica_fetcher.py` copies the
logs of leaders. `broker.py` connects all parts. Floor 5: imports `protocol`, `storage` and `metadata` (and the port);
imported by `node` and the floors above it.
"""
