"""Floor 1: the log on the `Files` port, in Kafka's own on-disk formats.

    log.py            one partition's log: append, read, truncate, retention. Its parts: log_segments.py, log_flusher.py
                      (what is durable), log_failure.py, partition_directory.py
    log_loader.py     opens a log after any stop; recovery.py repairs it
    segment.py        one `.log` file with its `.index` and `.timeindex` (index.py)
    epochs.py         the start offset of each leader epoch: `leader-epoch-checkpoint`
    producers.py      idempotence: the last batches of each producer id, `.snapshot`; its transaction
    transactions.py   which transactions are undecided: the first unstable offset; transaction_index.py: `.txnindex`
    log_directory.py  one entry of `log.dirs`: identity, clean-shutdown file, the logs in it, their checkpoints
                      (directory_checkpoints.py), and the logs that were removed from it (removed_logs.py)
    cleaning/         compaction of one log, in small steps
    atomic.py, checkpoints.py, identity.py   the small files

Imports only floor 0. Every floor above may import it; only `broker`, `raft` and `node` need to.
"""
