"""Whether nodes that are configured like this one would accept its certificate, and it theirs: before it is used.

A client and a server are made from the node's own stores, and they shake hands in memory. What fails here would cut the
node off from its cluster with the next connection: a certificate without the advertised address, for other purposes
than a server's, expired, or of an authority that the nodes do not trust.

Source: Kafka's SslFactory.SslEngineValidator, which does not look at the address.
"""

from __future__ import annotations

import ssl

STEPS_MAX = 10
"""A handshake takes two or three."""


def reason_against(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str | None:
    """Why `client` and `server` do not come together at `host`; None: they do."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server, server_hostname=host)
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    unfinished = [client_end, server_end]
    for _ in range(STEPS_MAX):
        for end in list(unfinished):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return f"{'a node' if end is client_end else 'this node'} would not accept it: {error.verify_message}"
            except ssl.SSLError as error:
                return f"a handshake with it fails: {error.reason or error}"
            unfinished.remove(end)
        if not unfinished:
            return None
    return "a handshake with it does not end"
