"""Unclean recovery, KIP-966's second half: who leads when everybody who surely has all records is gone.

    strategy.py   what the configuration asks for
    answers.py    what replicas say of their logs, which of it counts, and whose log is best
    verdict.py    one partition without a leader: whom it waits for, and who wins (pure)
    sender.py     questions to brokers: queues, back-off, nothing of the controller's state
    manager.py    the partitions that recover, derived from the image, and what moves them
    status.py     DescribeRecovery: all of it for a person to read

Part of `controller`; the controller alone makes a manager and feeds it.
"""
