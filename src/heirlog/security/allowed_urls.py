"""Which URLs a configuration of OAuth may name: https and files; http only one that the operator has listed.

Kafka 4 takes no URL at all that is not in a property of the JVM; here the file that names a URL is trusted as much as
the list would be. What is left to refuse is a URL whose answers anybody on the network can write.
"""

from __future__ import annotations

from typing import Final

ALLOWED_URLS: Final = "heirlog.sasl.oauthbearer.allowed.urls"


def why_refused(name: str, url: str, allowed: str) -> str | None:
    """A sentence, or None for a URL that is fine. name: of the configuration. allowed: the value of `ALLOWED_URLS`."""
    if url.startswith(("https://", "file:/")):
        return None
    if not url.startswith("http://"):
        return f"{name} begins with none of https://, http://, file:///"
    if url in [part.strip() for part in allowed.split(",")]:
        return None
    return (
        f"{name} is an http URL: others on its network can read and change what is sent. Use https, or list "
        f"exactly this URL in {ALLOWED_URLS}"
    )
