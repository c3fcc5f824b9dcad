"""`heirlog audit`: a Spark job over copies of the log directories of all replicas, and the metadata log.

    inventory        (driver)   which logs are in the directories, and what the checkpoint files say of them
    segment_scan     (workers)  one segment file: CRC, framing, offsets, epochs, indexes, producers; digests of buckets
    replica_log      (workers)  the segments of one partition's replicas put together: gaps, ends, checkpoints
    divergence       (workers)  replicas compared: digests first, batches where digests differ
    history          (driver)   the metadata log: members, leaders and elections over time, and rules that they broke
    verdict          (driver)   what the logs and the metadata together say
    job, page                   the Spark session's part; tables and the HTML page

Everything but `job` is free of Spark, and what runs on workers imports only packages that the archive of
`heirlog pipeline package` has. Nothing reads a whole segment into memory, and no row per record or batch leaves a task.
"""
