"""Share groups on the leaders of the partitions that they read: what of each record is delivered, and to whom (KIP-932).

May import what `broker` may; the coordinators of share groups are in `broker.groups` and know nothing of this package.
"""
