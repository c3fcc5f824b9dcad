"""Floor 6: a process's brain, in one or both roles.

This floor routes requests to their handlers, sends the answers of each connection in the order of its requests,
forwards admin requests to the active controller, and passes committed metadata to the broker role. The bodies (floor 7:
server and simulator) drive a `Node`; nothing here knows which one.
"""
