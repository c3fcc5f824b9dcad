"""Where a client's token comes from, and what is said where there is none."""

from __future__ import annotations

import json
import threading
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.security import TokenEndpoint, UnsecuredToken
from heirlog.oauth.tokens import Tokens

TOKEN = "eyJ.token.here"


class TokenServer(BaseHTTPRequestHandler):
    asked: list[tuple[str, str]]

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append((self.headers["Authorization"], form))
        status = {"/token": 200, "/odd": 200}.get(self.path, 401)
        body = {"/token": {"access_token": TOKEN, "expires_in": 60}}.get(self.path, {"error": "hunter2"})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def token_server() -> Iterator[str]:
    TokenServer.asked = []
    server = HTTPServer(("127.0.0.1", 0), TokenServer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_token_is_fetched_by_client_credentials_and_kept_while_it_is_good(token_server: str) -> None:
    tokens = Tokens(TokenEndpoint(f"{token_server}/token", "me", "hunter2", "read write"))
    assert [tokens.token(), tokens.token()] == [TOKEN, TOKEN]
    ((authorization, form),) = TokenServer.asked
    assert b64decode(authorization.removeprefix("Basic ")) == b"me:hunter2"
    assert form == "grant_type=client_credentials&scope=read+write"


def test_an_endpoint_that_gives_no_token_is_named_without_what_it_said(token_server: str) -> None:
    for path, complaint in (("no", "answered 401"), ("odd", "without an access_token")):
        with pytest.raises(AuthenticationFailed, match=complaint) as failed:
            Tokens(TokenEndpoint(f"{token_server}/{path}", "me", "hunter2")).token()
        assert "hunter2" not in str(failed.value)
    with pytest.raises(ConnectionError, match="does not answer"):
        Tokens(TokenEndpoint("http://127.0.0.1:1/token", "me", "hunter2")).token()


def test_a_token_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    tokens = Tokens(TokenEndpoint(file.as_uri()))
    with pytest.raises(AuthenticationFailed, match="a token"):
        tokens.token()
    for content in ("one", "two"):
        file.write_text(content + "\n")
        assert tokens.token() == content


def test_an_unsecured_token_has_a_subject_and_an_end() -> None:
    header, claims, signature = Tokens(UnsecuredToken("alice", 60, ("a", "b"))).token().split(".")
    read = json.loads(urlsafe_b64decode(claims + "=="))
    assert json.loads(urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert (read["sub"], read["scope"], round(read["exp"] - read["iat"]), signature) == ("alice", ["a", "b"], 60, "")
