"""Floor 6: a process's brain, in one or both roles.

Here requests find their handler, answers leave each connection in the order in which the requests came, admin requests
are forwarded to the active controller, and committed metadata reaches the broker role. The bodies (floor 7) drive a
`Node`; nothing here knows which one.
"""
