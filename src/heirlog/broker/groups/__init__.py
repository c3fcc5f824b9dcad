"""Classic consumer groups: their members, assignments and committed offsets.

The broker calls `coordinator`. There is one `shard` per partition of `__consumer_offsets` that this broker leads: its
groups are in `group_registry`, `group_writer` writes their records, `cleanup` deletes what is not needed any more.
`group`, `membership`, `offsets` and `records` have the rules, on values and a clock. Only `heirlog.broker.broker`
imports this package.
"""
