"""Secrets of a closed cluster that has used all of them: they are in its files and nowhere else.

Each kind of login succeeds and fails, users and tokens are made, and stores change. Then everything that a node or a
command says is searched for what must not be in it, with the log at its most talkative level.
"""

from __future__ import annotations

import secrets
import sys
import urllib.request
from binascii import b2a_base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from issuing import AUDIENCE, Issuer

from heirlog.blocking import Client
from heirlog.client.delegation_tokens import create_delegation_token
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.scram import set_password
from heirlog.client.security import Security, security_from_properties
from heirlog.local import properties
from heirlog.local.certificates import Authority
from heirlog.local.secure import HOSTS, new_salt, scram_login, write_private
from heirlog.security.scram import ScramMechanism, credential_of, salted_password
from heirlog.testing import Cluster

SHA_512 = ScramMechanism.SHA_512
BEARER = "OAUTHBEARER"
LOGIN = "org.apache.kafka.common.security"


class Kept:
    """What nobody may read, by what it is."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def new(self, what: str) -> str:
        """A password that no other text contains by chance."""
        self.texts[what] = secrets.token_urlsafe(18)
        return self.texts[what]

    def add(self, what: str, data: bytes) -> None:
        """In the ways in which a program would print it."""
        self.texts[f"{what} in hexadecimal"] = data.hex()
        self.texts[f"{what} in base64"] = b2a_base64(data, newline=False).decode().rstrip("=")
        self.texts[f"{what} of Python"] = repr(data)[2:-1]

    def found_in(self, said: str) -> list[str]:
        return [what for what, text in self.texts.items() if text in said]


@pytest.fixture(scope="module")
def kept() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
def cluster(kept: Kept, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    issuer = Issuer()
    keys = tmp_path_factory.mktemp("issuer") / "keys.json"
    keys.write_bytes(issuer.jwks())
    config = {
        "log.level": "DEBUG",
        "heirlog.metrics.listener": "127.0.0.1:0",
        "delegation.token.secret.key": kept.new("the key of delegation tokens"),
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": f"PLAIN,SCRAM-SHA-512,{BEARER}",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with Cluster(nodes=1, combined=True, security="SASL_SSL", config=config) as running:
        for name in ("client.properties", "broker-1/server.properties"):
            for text in properties.read(running.data / name).values():
                for number, word in enumerate(word for word in text.split('"') if len(word) == 24 and "/" not in word):
                    kept.texts[f"password {number} of {name}"] = word
        for name in ("ca.key", "node.pem"):
            kept.texts[f"the key in {name}"] = (running.data / "security" / name).read_text().splitlines()[1]
        use_everything(running, kept, issuer)
        yield running


def use_everything(running: Cluster, kept: Kept, issuer: Issuer) -> None:
    given = running.client_config()
    kept.texts["the password of alice"] = (
        running.client_config("alice")["sasl.jaas.config"].split('password="')[1].partition('"')[0]
    )
    salt = new_salt()
    password = kept.new("the password of carol")
    salted = salted_password(SHA_512, password, salt, 4096)
    kept.add("the salted password of carol", salted)
    made = credential_of(SHA_512, salted, salt, 4096)
    kept.add("the stored key of carol", made.stored_key)
    kept.add("the server key of carol", made.server_key)
    with admin(running) as client:
        client.run(set_password("carol", SHA_512, password, salt, 4096))
        token = client.run(create_delegation_token())
    kept.add("the HMAC of a token", token.hmac)
    hmac = b2a_base64(token.hmac, newline=False).decode()
    jwt = issuer.token()
    kept.texts["the token of an issuer"] = jwt.rpartition(".")[2]
    refused = issuer.token(aud="another")
    kept.texts["a refused token of an issuer"] = refused.rpartition(".")[2]
    wrong = kept.new("a wrong password")
    by_token = scram_login(token.id, hmac)
    by_token["sasl.jaas.config"] = by_token["sasl.jaas.config"].replace(";", ' tokenauth="true";')
    plain = f'{LOGIN}.plain.PlainLoginModule required username="node" password="{wrong}";'
    bearer = security_from_properties(given)
    logins: list[tuple[Security, bool]] = [
        (security_from_properties(given | scram_login("carol", password)), True),
        (security_from_properties(given | scram_login("carol", wrong)), False),
        (security_from_properties(given | scram_login("mallory", wrong)), False),
        (security_from_properties(given | by_token), True),
        (security_from_properties(given | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": plain}), False),
        *(
            (Security("SASL_SSL", BEARER, trust=bearer.trust, token=lambda shown=shown: shown), shown is jwt)  # type: ignore[misc]
            for shown in (jwt, refused)
        ),
    ]
    for security, is_right in logins:
        if is_right:
            ask(running, security)
            continue
        with pytest.raises(AuthenticationFailed) as failed:
            ask(running, security)
        assert not kept.found_in(f"{failed.value} {failed.value!r} {security!r}")


def admin(running: Cluster) -> Client:
    return Client(running.bootstrap_servers, security=security_from_properties(running.client_config()), timeout_s=20)


def ask(running: Cluster, security: Security) -> None:
    with Client(running.bootstrap_servers, security=security, timeout_s=20) as client:
        client.metadata([])


def pkcs12_store(running: Cluster, password: str) -> Path:
    """A new certificate of the node, in a store of Java."""
    folder = running.data / "security"
    authority = Authority.of((folder / "ca.key").read_text(), (folder / "ca.pem").read_text())
    made = authority.issue("node", HOSTS)
    key: Any = load_pem_private_key(made.encode(), None)
    certificate = x509.load_pem_x509_certificate(made[made.index("-----BEGIN CERTIFICATE") :].encode())
    path = folder / "new.p12"
    write_private(path, "")
    locked = BestAvailableEncryption(password.encode())
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"node", key, certificate, None, locked))
    return path


def test_no_node_and_no_command_shows_a_secret(
    cluster: Cluster, kept: Kept, heirlog: Heirlog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)
    login = ("--command-config", str(cluster.data / "client.properties"))
    prefix = "listener.name.sasl_ssl.ssl.keystore"
    store = pkcs12_store(cluster, kept.new("the password of a store"))
    wrong = kept.new("a wrong password of a store")
    said: dict[str, str] = {}

    def run(*words: str, code: int = 0) -> None:
        done = heirlog(*words)
        assert done.code == code, (words, done)
        said[" ".join(words[:4])] = done.out + done.err

    for password, code in ((wrong, 1), (kept.texts["the password of a store"], 0)):
        changes = f"{prefix}.type=PKCS12,{prefix}.location={store},{prefix}.password={password}"
        run("configs", "alter", "broker", "1", "--add-config", changes, *login, code=code)
    run("configs", "describe", "broker", "1", "--all", *login)
    run("configs", "describe", "broker", "1", "--all", "--json", *login)
    run("users", "list", *login)
    run("acls", "list", *login)
    run("cluster", "info", *login)
    run("quorum", "describe", "--status", *login)
    bad = tmp_path / "bad.properties"
    given = cluster.client_config() | scram_login("carol", kept.new("a password in a file"))
    bad.write_text(properties.render(given, "wrong"))
    run("topics", "list", "--command-config", str(bad), code=1)
    bad.write_text(properties.render(given | {"sasl.jaas.config": given["sasl.jaas.config"][:-2]}, "cut short"))
    run("topics", "list", "--command-config", str(bad), code=2)
    with urllib.request.urlopen(f"http://{cluster._process(1).metrics_address()}/metrics", timeout=20) as answer:
        said["metrics"] = answer.read().decode()
    assert "heirlog_" in said["metrics"]
    said["repr"] = repr(cluster)
    if sys.platform == "linux":
        said["arguments of the process"] = Path(f"/proc/{cluster.pids[1]}/cmdline").read_text()
    cluster.stop(1)
    home = cluster.data / "broker-1"
    run("doctor", str(home))
    log = next((home / "log" / "__cluster_metadata-0").glob("*.log"))
    run("dump", "--deep", "--json", str(log))
    dumped = next(text for words, text in said.items() if words.startswith("dump"))
    assert "UserScramCredentialRecord" in dumped and f"{prefix}.password" in dumped, "or this looks at nothing"
    run("storage", "info", "--config", str(home / "server.properties"))
    said["log of the node"] = cluster.output(1)
    assert "authentication-failed" in said["log of the node"] and '"debug"' in said["log of the node"]
    assert {where: found for where, text in said.items() if (found := kept.found_in(text))} == {}
