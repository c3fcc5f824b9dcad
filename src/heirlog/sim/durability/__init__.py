"""The scenario `durability`: brokers that fail independently of each other, and what that costs.

cell.py       what is compared: replication factor, min ISR, strategy, failure rate; a cell is a scenario's name
failures.py   when each broker fails and returns: the same for every cell of a seed
play.py       the order of a run
meter.py      counts while the run lasts: unavailable time, elections, failures
measure.py    one run as one row
"""
