"""The KRaft quorum: one ordered log of metadata records, agreed on by its voters.

`quorum.Quorum` is what the floors above use (controller, broker, node; the simulator's checkers read it). `bootstrap`
writes what `heirlog storage format` leaves in a fresh directory. Everything else is the quorum's own.
"""
