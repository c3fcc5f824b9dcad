"""What an OAuth server may answer with: bounds, redirects, garbage."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from heirlog.oauth import bounded_http
from heirlog.oauth.bounded_http import ANSWER_BYTES_MAX, FetchFailed, fetch, read_file, without_secrets


class Odd(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/raw":
            self.wfile.write(b"\0\1\2\r\n\r\n")
            return
        status = {"/moved": 302, "/gone": 404}.get(self.path, 200)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/right")
        if self.path == "/short":
            self.send_header("Content-Length", "1000")
        self.end_headers()
        try:
            self.wfile.write(b"x" * (ANSWER_BYTES_MAX + 1 if self.path == "/huge" else 10))
        except OSError:
            return

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Odd)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_an_answer_of_moderate_size(url: str) -> None:
    assert fetch(urllib.request.Request(url + "/right")) == b"x" * 10


@pytest.mark.parametrize(
    ("path", "why", "status"),
    [("/moved", "302; redirects are not followed", 302), ("/gone", "answered 404", 404), ("/huge", "more than", 200)],
)
def test_what_is_not_taken(url: str, path: str, why: str, status: int) -> None:
    with pytest.raises(FetchFailed, match=why) as failed:
        fetch(urllib.request.Request(url + path))
    assert failed.value.status == status


@pytest.mark.parametrize("path", ["/raw", "/short"])
def test_what_is_no_http_is_no_answer(url: str, path: str) -> None:
    with pytest.raises(FetchFailed, match="does not answer") as failed:
        fetch(urllib.request.Request(url + path))
    assert failed.value.status == 0


@pytest.mark.parametrize(
    "begin",
    [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"],
    ids=["head", "size of a part", "body"],
)
def test_an_answer_may_not_take_forever_although_bytes_come(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "WHOLE_TIMEOUT_S", 0.2)
    is_over = threading.Event()

    def answer(listening: socket.socket) -> None:
        sock, _ = listening.accept()
        with sock, suppress(OSError):
            sock.recv(4096)
            sock.sendall(begin)
            while not is_over.wait(0.01):
                sock.sendall(b"0")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        try:
            with pytest.raises(FetchFailed, match="took longer"):
                fetch(urllib.request.Request(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        finally:
            is_over.set()


def test_no_error_holds_what_the_url_says_behind_its_path() -> None:
    assert without_secrets("https://me:hunter2@h:1/p?key=hunter2#x") == "https://h:1/p"
    with pytest.raises(FetchFailed) as failed:
        fetch(urllib.request.Request("http://127.0.0.1:1/p?key=hunter2"))
    assert "hunter2" not in str(failed.value)


def test_a_file_is_bounded_too(tmp_path: Path) -> None:
    file = tmp_path / "a set"
    with pytest.raises(FetchFailed, match="cannot be read"):
        read_file(file.as_uri())
    file.write_bytes(b"x" * ANSWER_BYTES_MAX)
    assert len(read_file(file.as_uri())) == ANSWER_BYTES_MAX
    file.write_bytes(b"x" * (ANSWER_BYTES_MAX + 1))
    with pytest.raises(FetchFailed, match="more than"):
        read_file(file.as_uri())
