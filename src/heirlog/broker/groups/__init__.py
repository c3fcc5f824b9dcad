"""Classic consumer groups: their members, assignments and committed offsets.

The broker calls `coordinator`. There is one `shard` per partition of `__consumer_offsets` that this broker leads; it
holds the groups of the partition and writes their records. `group`, `membership`, `offsets` and `records` have the
rules, on values and a clock. Only `heirlog.broker.broker` imports this package.
"""
