"""An HTTP server with the answers of a schema registry, as Apicurio Registry 3.3.3 gave them. It counts requests.

`make interop` asks that registry itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answers:
    def __init__(self) -> None:
        self.of: dict[str, Any] = {}
        """Path -> text, anything that becomes JSON, or the number of an HTTP status."""
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        self.failures = 0
        """How many of the next requests are answered with status 503."""
        self.url = ""


@contextmanager
def registry_answers() -> Iterator[Answers]:
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append(self.path)
            answers.logins.append(self.headers.get("Authorization"))
            found = answers.of.get(self.path, 404)
            if answers.failures:
                answers.failures -= 1
                found = 503
            status, body = (found, b"{}") if isinstance(found, int) else (200, b"")
            if status == 200:
                body = found.encode() if isinstance(found, str) else json.dumps(found).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        answers.url = f"http://127.0.0.1:{server.server_port}"
        yield answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
