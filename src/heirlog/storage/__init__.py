"""Floor 1: the log on the `Files` port, in Kafka's own on-disk formats.

    log.py            one partition's log: append, read, truncate, flush; recovery.py opens it after any kind of stop
    segment.py        one `.log` file with its `.index` and `.timeindex` (index.py)
    epochs.py         which leader epoch began where: `leader-epoch-checkpoint`
    producers.py      idempotence: what each producer id wrote last, `.snapshot`
    log_directory.py  one entry of `log.dirs`: identity, clean-shutdown file, the logs in it, and their checkpoints
                      (directory_checkpoints.py)
    cleaning/         compaction of one log, in small steps
    atomic.py, checkpoints.py, identity.py   the small files

Imports only floor 0. Everybody above may import it; only `broker`, `raft` and `node` have reason to.
"""
