"""Share groups (KIP-932): members that read the same partitions, each record once.

The group coordinator only says which member may fetch which partitions; several members may fetch the same one. The
records in flight belong to the leader of the partition (`broker/share_partitions`), and what is finished is stored by
the share coordinator (`broker/share_coordinator`).
"""
