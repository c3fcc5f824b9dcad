"""The client without I/O: calls as generators that yield what is to be sent (`call.py`), and state machines.

Every decision is here: which broker is asked, when metadata are renewed, what is retried after which pause, when a call
gives up, what goes into a Produce or Fetch request. `heirlog.blocking` drives it with sockets, the simulator's clients
with a simulated network, so that the product's retries are simulated like everything else.

Floor 4: knows messages and ids, and no node.
"""
