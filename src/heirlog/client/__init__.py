"""Clients as state machines without I/O: the server's and the simulator's peers, `blocking` and the tests drive them.

Floor 4: knows messages and ids, no node. Whoever has sockets imports it.
"""
