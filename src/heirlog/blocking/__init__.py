"""Talking to a cluster with plain blocking sockets, without an event loop: commands, tests, tasks of a pipeline.

Floor 7: imported by `cli`, `testing`, `console` and `spark`. No node imports it.
"""
