"""One exchange with an OAuth server: no redirects, and bounds for time and size. Blocks: for threads.

    https://   always
    http://    only where the URL is listed in heirlog.sasl.oauthbearer.allowed.urls (`client.security` checks that)
    file:      a file of this machine

Redirects are refused: they could lead off TLS, or a request with a secret to another host. Errors name the URL without
user and query, and hold nothing of the answer, which might repeat a secret.

Python's own way honours the environment's proxies; hosts of `NO_PROXY` and this machine are reached directly.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final

TIMEOUT_S: Final = 10.0
"""Of one step: to connect, and between two parts of the answer."""
WHOLE_TIMEOUT_S: Final = 30.0
ANSWER_BYTES_MAX: Final = 1024 * 1024
CHUNK_BYTES: Final = 64 * 1024


class FetchFailed(Exception):
    """No usable answer. status: of HTTP, 0 if there is no answer at all."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def fetch(request: urllib.request.Request, tls: SSLContext | None = None) -> bytes:
    """The answer's body. Raises FetchFailed. tls: how https is spoken; None: as the system does."""
    url = without_secrets(request.full_url)
    deadline = time.monotonic() + WHOLE_TIMEOUT_S
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=tls))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            content = b""
            while part := answer.read1(CHUNK_BYTES):
                content += part
                if len(content) > ANSWER_BYTES_MAX:
                    raise FetchFailed(f"{url} answers with more than {ANSWER_BYTES_MAX} bytes", 200)
                if time.monotonic() > deadline:
                    raise FetchFailed(f"{url} took longer than {WHOLE_TIMEOUT_S:g} seconds to answer")
            if answer.length:
                raise FetchFailed(f"{url} does not answer: its connection ended within the answer")
            return content
    except urllib.error.HTTPError as error:
        error.close()
        what = "; redirects are not followed" if error.code in range(300, 400) else ""
        raise FetchFailed(f"{url} answered {error.code}{what}", error.code) from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise FetchFailed(f"{url} does not answer: {reason}") from None


def read_file(url: str) -> bytes:
    """Raises FetchFailed."""
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    try:
        with path.open("rb") as file:
            content = file.read(ANSWER_BYTES_MAX + 1)
    except OSError as error:
        raise FetchFailed(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > ANSWER_BYTES_MAX:
        raise FetchFailed(f"{path} has more than {ANSWER_BYTES_MAX} bytes")
    return content


def without_secrets(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
