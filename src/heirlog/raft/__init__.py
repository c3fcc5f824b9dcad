"""The KRaft quorum: one ordered log of metadata records, agreed on by its voters.

The floors above use `quorum.Quorum` (controller, broker, node; the simulator's checkers read it). `bootstrap` writes
the files that `heirlog storage format` creates. Everything else is internal to the quorum.
"""
