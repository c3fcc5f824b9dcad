"""How `ssl` says that the peer has gone."""

import ssl
from typing import Final

PEER_HAS_GONE: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""With a close_notify or without one. Python 3.11.2, of Debian 12, has the second one for both."""
