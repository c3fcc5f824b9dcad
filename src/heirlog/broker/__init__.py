"""The broker role: partitions, replication, ISR, high watermark, produce, fetch, and the broker's life cycle.

A partition is a small state machine (`partition.py`); what it decides is in `isr.py`, `high_watermark.py` and
`followers.py`. `replica_manager.py` owns the partitions and follows the metadata image, `log_directories.py` the disks
they lie on, `delayed_operations.py` the requests that wait for them; `replica_fetcher.py` copies leaders. `broker.py`
ties all together. Floor 5: imports `protocol`, `storage` and `metadata` (and the port); imported by `node` and the
floors above it.
"""
