"""Requests and responses, one module per API, written by `heirlog.protocol.generator`; imported lazily."""
