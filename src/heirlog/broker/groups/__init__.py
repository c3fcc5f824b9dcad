"""Classic consumer groups: who is a member, who reads what, and how far they have read.

`coordinator` is what the broker calls; one `shard` per partition of `__consumer_offsets` that this broker leads holds
its groups and writes their records. `group`, `membership`, `offsets` and `records` decide, on values and a clock.
Imported by `heirlog.broker.broker` alone.
"""
