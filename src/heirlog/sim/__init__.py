"""The second body: a node's brain in virtual time, on a simulated network and simulated disks.

`world` orders events, `env` is the port of one incarnation, `network` and `disk` are what it touches, `cluster` puts
the product's nodes together, `clients` use them, `faults` hurts them, `invariants` and `history` judge, `run` makes a
report of one seed. Only the command line, `heirlog.testing` and tests may import this package.
"""
