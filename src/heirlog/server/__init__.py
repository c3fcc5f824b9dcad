"""The real body of a node: an asyncio event loop, sockets, files, signals.

`main.run_node` is the way in. Floor 7: `cli` and `testing` start nodes from here; nothing below imports it.
"""
