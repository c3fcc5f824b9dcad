"""One exchange with an OAuth server: no redirects, and bounds for time and size. Blocks: for threads.

    https://   always
    http://    only where the URL is listed in heirlog.sasl.oauthbearer.allowed.urls (`client.security` checks that)
    file:      a file of this machine

Redirects are refused: they could lead off TLS, or a request with a secret to another host. Errors name the URL without
user and query, and hold nothing of the answer, which might repeat a secret.

The library waits for each part of an answer, and a head of many small parts is as long as its server wants. So the
socket is shut down at the end of the time, by another thread, which ends the wait.

Python's own way honours the environment's proxies; hosts of `NO_PROXY` and this machine are reached directly.
"""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from ssl import SSLContext
from typing import Any, Final

from heirlog.bounded_file import read_bounded

TIMEOUT_S: Final = 10.0
"""Of one step: to connect, and between two parts of the answer."""
WHOLE_TIMEOUT_S: Final = 30.0
"""Once it is connected."""
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


class _Clock:
    """Ends what is read from one connection."""

    def __init__(self) -> None:
        self.is_over = False
        self._timers: list[threading.Timer] = []

    def watch(self, sock: socket.socket) -> None:
        timer = threading.Timer(WHOLE_TIMEOUT_S, self._end, [sock])
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _end(self, sock: socket.socket) -> None:
        self.is_over = True
        with suppress(OSError):
            # not that of a TLS socket, which would change what the reading thread uses
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


class _Http(http.client.HTTPConnection):
    def __init__(self, clock: _Clock, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._clock = clock

    def connect(self) -> None:
        super().connect()
        self._clock.watch(self.sock)


class _Https(http.client.HTTPSConnection):
    def __init__(self, clock: _Clock, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._clock = clock

    def connect(self) -> None:
        super().connect()
        self._clock.watch(self.sock)


class _HttpHandler(urllib.request.HTTPHandler):
    def __init__(self, clock: _Clock) -> None:
        super().__init__()
        self._clock = clock

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Http, self._clock), request)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def __init__(self, clock: _Clock, tls: SSLContext | None) -> None:
        super().__init__()
        self._clock = clock
        self._tls = tls

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Https, self._clock), request, context=self._tls)


def fetch(request: urllib.request.Request, tls: SSLContext | None = None) -> bytes:
    """The answer's body. Raises FetchFailed. tls: how https is spoken; None: as the system does."""
    url = without_secrets(request.full_url)
    clock = _Clock()
    opener = urllib.request.build_opener(_NoRedirects, _HttpHandler(clock), _HttpsHandler(clock, tls))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            content = b""
            while part := answer.read1(CHUNK_BYTES):
                content += part
                if len(content) > ANSWER_BYTES_MAX:
                    raise FetchFailed(f"{url} answers with more than {ANSWER_BYTES_MAX} bytes", 200)
            if clock.is_over:
                raise FetchFailed(_too_long(url))
            if answer.length:
                raise FetchFailed(f"{url} does not answer: its connection ended within the answer")
            return content
    except urllib.error.HTTPError as error:
        error.close()
        what = "; redirects are not followed" if error.code in range(300, 400) else ""
        raise FetchFailed(f"{url} answered {error.code}{what}", error.code) from None
    except (OSError, HTTPException, ValueError) as error:
        if clock.is_over:
            raise FetchFailed(_too_long(url)) from None
        reason = getattr(error, "reason", None) or type(error).__name__
        raise FetchFailed(f"{url} does not answer: {reason}") from None
    finally:
        clock.stop()


def _too_long(url: str) -> str:
    return f"{url} took longer than {WHOLE_TIMEOUT_S:g} seconds to answer"


def read_file(url: str) -> bytes:
    """Raises FetchFailed."""
    path = urllib.request.url2pathname(urllib.parse.urlsplit(url).path)
    try:
        content = read_bounded(path, ANSWER_BYTES_MAX)
    except OSError as error:
        raise FetchFailed(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > ANSWER_BYTES_MAX:
        raise FetchFailed(f"{path} has more than {ANSWER_BYTES_MAX} bytes")
    return content


def without_secrets(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
