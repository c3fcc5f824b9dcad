"""Unclean recovery, the second half of KIP-966: which replica leads when no replica is known to have all records.

    strategy.py          what the configuration asks for
    replica_log_info.py  the replicas' answers about their logs, which of them count, and which log is best
    decision.py          one partition without a leader: which replicas it waits for, and which one wins (pure)
    open_recoveries.py   what is known about each partition without a leader
    sender.py            requests to brokers: queues and back-off, without the controller's state
    manager.py           starts, continues and ends recoveries, all derived from the image
    status.py            DescribeRecovery: the state of recoveries for people and tools
    switch.py            what happens to LastKnownELR when the manager is switched on or off

A part of `controller`; only the controller creates a manager and calls it.
"""
