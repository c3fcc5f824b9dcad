"""Share groups on the leaders of partitions: which records are delivered to whom, and what became of them (KIP-932).

May import `broker.share_coordinator` for its values and what `broker` has of partitions; no coordinator imports it.
"""
