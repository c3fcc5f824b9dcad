"""The second body: a node's brain in virtual time, on a simulated network and simulated disks.

`world` orders events. `env` is the port of one incarnation; `network` and `disk` are what it uses. `cluster` builds
the product's nodes, `clients` use them, `nemesis` injects faults, `invariants` and `history_checks` check them, and
`run` reports on one seed. Only the command line, `heirlog.testing` and tests may import this package.
"""
