"""Floor 6: one file per API of the protocol, and nothing about an API anywhere else.

A file says how its API behaves and what each version added, which versions brokers and controllers serve, what a client
must be allowed and what it gets where it is not, and it holds the handler. It ends in its descriptor, `API`
(`common/api.py`). The router, ApiVersions, forwarding, authorization and the tables of the documentation are derived
from the descriptors. docs/internals/adding-an-api.md has the steps.

Rules of replication, groups and metadata are not here: a handler reads the request, asks `broker`, `controller` or the
image, and shapes the answer. What it may use of a node is the type of its first parameter (`common/ports.py`). Nothing
here imports `node`.
"""
