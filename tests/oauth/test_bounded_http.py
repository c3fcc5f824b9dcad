"""What an OAuth server may answer with: bounds, redirects, garbage."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
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


def test_an_answer_may_not_take_forever(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "WHOLE_TIMEOUT_S", -1.0)
    with pytest.raises(FetchFailed, match="took longer"):
        fetch(urllib.request.Request(url))


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
