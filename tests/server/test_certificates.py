"""Key and trust stores that are replaced while a node runs: by dynamic configurations, and by SIGHUP."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local.authorities import authority, issued
from security.making_keys import PBKDF2, derived

from heirlog.metadata.config_def import parse_static
from heirlog.server.certificates import Certificates
from heirlog.server.door import Doors
from heirlog.server.peers import Peers
from heirlog.tls.contexts import STORE_MAX_BYTES
from heirlog.tls.self_check import reason_against

HOST, OTHER = "127.0.0.1", "10.0.0.1"
LISTENERS = ("CLIENTS", "NODES", "CONTROLLER")


class Node:
    """A broker with a listener for clients, one for nodes that asks for certificates, and controllers elsewhere."""

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: Path, **more: str) -> None:
        self.directory = directory
        self.write("trust.pem", authority().certificate_pem)
        settings = {
            "process.roles": "broker",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CLIENTS://{HOST}:9092,NODES://{HOST}:9094",
            "listener.security.protocol.map": "CLIENTS:SSL,NODES:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "NODES",
            "listener.name.nodes.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.write("node.pem", issued("node", HOST)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "trust.pem"),
        }
        settings |= {name.replace("_", "."): text for name, text in more.items()}
        self.lines: list[tuple[str, dict[str, Any]]] = []
        log = lambda level, event, **values: self.lines.append((event, values))  # noqa: E731
        config = parse_static({name: text for name, text in settings.items() if text})
        self.doors, self.peers = Doors(loop, config), Peers(loop, config, log)
        self.certificates = Certificates(self.doors, self.peers, {}, log)

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def served(self, listener: str) -> str:
        """The certificate that a new connection sees, as PEM."""
        context = self.doors.by_listener[listener].context
        assert context is not None
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [client.wrap_bio(to_client, to_server), context.wrap_bio(to_server, to_client, server_side=True)]
        for _ in range(3):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLError:
                    continue
        found = ends[0].getpeercert(True)
        assert found is not None
        return ssl.DER_cert_to_PEM_cert(found)

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.lines]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def node(loop: asyncio.AbstractEventLoop, tmp_path: Path) -> Node:
    return Node(loop, tmp_path)


def certificate(pem: str) -> str:
    return pem[pem.index(ssl.PEM_HEADER) :].strip()


def key_store(path: str) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": path}


def test_the_store_of_one_listener_is_replaced_and_the_others_keep_theirs(node: Node) -> None:
    renewed = authority().issue("node", [HOST, OTHER])
    stores = {"CLIENTS": key_store(node.write("renewed.pem", renewed))}
    assert node.certificates.reason_against(stores) is None
    assert certificate(node.served("CLIENTS")) == certificate(issued("node", HOST)), "it was only asked about"
    node.certificates.use(stores)
    assert certificate(node.served("CLIENTS")) == certificate(renewed)
    assert certificate(node.served("NODES")) == certificate(issued("node", HOST))
    # deleted: the file counts again
    node.certificates.use({})
    assert certificate(node.served("CLIENTS")) == certificate(issued("node", HOST))
    assert node.events == ["certificates-reloaded"] * 2


def test_between_nodes_both_directions_use_the_new_store(node: Node) -> None:
    renewed = authority().issue("node", [HOST])
    key, _, chain = renewed.partition(ssl.PEM_HEADER)
    inline = {"ssl.keystore.type": "PEM", "ssl.keystore.key": key}
    inline["ssl.keystore.certificate.chain"] = ssl.PEM_HEADER + chain
    before = node.peers.in_use()
    assert node.certificates.reason_against({"NODES": inline}) is None
    node.certificates.use({"NODES": inline})
    assert node.events == ["certificates-reloaded"]
    assert certificate(node.served("NODES")) == certificate(renewed)
    after = node.peers.in_use()
    assert all(old.of_nodes is not new.of_nodes for old, new in zip(before, after, strict=True))
    # SIGHUP keeps what is dynamic, and reads the file of the others
    node.write("node.pem", changed := authority().issue("node", [HOST]))
    node.certificates.reload()
    assert certificate(node.served("NODES")) == certificate(renewed)
    assert certificate(node.served("CLIENTS")) == certificate(changed)


@pytest.mark.parametrize(
    ("listener", "store", "why"),
    [
        ("CLIENTS", {"ssl.keystore.location": "/nowhere/x.pem"}, "cannot be read"),
        ("CLIENTS", {"ssl.keystore.type": "JKS"}, "ssl.keystore"),
        ("CLIENTS", {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "no certificate"}, "ssl.truststore"),
        ("ELSEWHERE", {"ssl.keystore.type": "PEM"}, "listener ELSEWHERE of this node does not exist"),
        ("CLIENTS", "another", "DistinguishedName does not match: existing=CN=node, new=CN=another"),
        ("CLIENTS", "elsewhere", "SubjectAltNames do not match: 127.0.0.1 is missing"),
        ("NODES", "late", "certificate has expired"),
        ("NODES", "foreign", "unable to get local issuer certificate"),
        ("NODES", "trusts foreign", "unable to get local issuer certificate"),
    ],
)
def test_a_store_that_would_cut_somebody_off_is_refused_and_the_old_one_stays(
    node: Node, listener: str, store: dict[str, str] | str, why: str
) -> None:
    if isinstance(store, str):
        made = {
            "another": lambda: issued("another", HOST),
            "elsewhere": lambda: issued("node", OTHER),
            "late": lambda: issued("node", HOST, days=-1),
            "foreign": lambda: issued("node", HOST, by="foreign"),
            "trusts foreign": lambda: issued("node", HOST),
        }[store]()
        trust = {"ssl.truststore.location": node.write("foreign.pem", authority("foreign").certificate_pem)}
        store = key_store(node.write(f"{store}.pem", made)) | (trust if store == "trusts foreign" else {})
    reason = node.certificates.reason_against({listener: store})
    assert reason is not None and why in reason
    assert node.served(listener if listener in LISTENERS else "CLIENTS")
    assert node.lines == []


@pytest.mark.parametrize("kind", ["pipe", "device", "large file", "file of the kernel", "no name"])
def test_no_store_makes_the_node_wait_or_fills_its_memory(node: Node, kind: str) -> None:
    path = str(node.directory / "store")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "file of the kernel":
        path = "/proc/kmsg" if os.path.exists("/proc/kmsg") else node.write("empty", "")
    elif kind == "no name":
        path = "a\0b"
    else:
        os.truncate(node.write("store", ""), STORE_MAX_BYTES + 1)
    reason = node.certificates.reason_against({"CLIENTS": key_store(path)})
    why = {
        "large file": "larger than",
        # (without the right to read it, it cannot even be opened)
        "file of the kernel": "cannot be read",
        "no name": "no file can have this name",
    }
    assert reason is not None and why.get(kind, "not a regular file") in reason


def test_a_key_that_takes_hours_to_decrypt_is_refused_at_once(node: Node) -> None:
    """It comes in a request, and the node has one thread."""
    certificate_text = issued("node", HOST).partition("-----END PRIVATE KEY-----\n")[2]
    store = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": derived(PBKDF2, 2**31 - 1),
        "ssl.keystore.certificate.chain": certificate_text,
        "ssl.key.password": "secret",
    }
    reason = node.certificates.reason_against({"CLIENTS": store})
    assert reason is not None and "takes 2147483647 iterations" in reason


def test_a_certificate_of_another_subject_is_taken_where_the_file_allows_it(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    allowed = {"listener_name_clients_ssl_allow_dn_changes": "true", "ssl_allow_san_changes": "true"}
    node = Node(loop, tmp_path, **allowed)
    stores = {"CLIENTS": key_store(node.write("another.pem", issued("another", OTHER)))}
    assert node.certificates.reason_against(stores) is None
    here = key_store(node.write("here.pem", issued("another", HOST)))
    assert "DistinguishedName" in (node.certificates.reason_against({"NODES": here}) or "")


def test_a_listener_without_trust_store_gets_none(loop: asyncio.AbstractEventLoop, tmp_path: Path) -> None:
    trusts = {
        f"listener_name_{name}_ssl_truststore_location": str(tmp_path / "trust.pem") for name in ("nodes", "controller")
    }
    node = Node(loop, tmp_path, ssl_truststore_location="", **trusts)
    store = {"ssl.truststore.location": str(tmp_path / "trust.pem")}
    assert "Cannot add SSL truststore" in (node.certificates.reason_against({"CLIENTS": store}) or "")


def test_an_expired_certificate_can_be_replaced(loop: asyncio.AbstractEventLoop, tmp_path: Path) -> None:
    node = Node(loop, tmp_path)
    node.write("node.pem", issued("node", HOST, days=-1))
    # as it is after a year: what is in use was good when the node started
    for listener, context in node.doors.contexts().items():
        node.doors.by_listener[listener].context = context
    node.peers.use(node.peers.contexts())
    good = {"NODES": key_store(node.write("good.pem", issued("node", HOST)))}
    assert node.certificates.reason_against(good) is None
    node.certificates.use(good)
    context = node.doors.by_listener["NODES"].context
    peer = node.peers.in_use()[1].of_nodes
    assert context is not None and peer is not None and reason_against(context, peer, HOST) is None


def test_what_is_stored_and_cannot_be_used_does_not_keep_what_mends_it_out(node: Node) -> None:
    node.certificates.use({"CLIENTS": {"ssl.keystore.type": "XXX"}})
    assert node.events == ["certificates-not-reloaded"]
    good = key_store(node.write("good.pem", authority().issue("node", [HOST])))
    assert node.certificates.reason_against({"CLIENTS": good}) is None
    assert node.certificates.reason_against({}) is None, "deleted"


def test_a_listener_that_could_not_use_its_trust_store_still_has_none(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    trusts = {
        f"listener_name_{name}_ssl_truststore_location": str(tmp_path / "trust.pem") for name in ("nodes", "controller")
    }
    node = Node(loop, tmp_path, ssl_truststore_location="", **trusts)
    node.certificates.use({"CLIENTS": {"ssl.truststore.location": "/nowhere/x.pem"}})
    store = {"ssl.truststore.location": str(tmp_path / "trust.pem")}
    assert "Cannot add SSL truststore" in (node.certificates.reason_against({"CLIENTS": store}) or "")


def test_what_is_stored_and_cannot_be_used_changes_nothing_until_it_can_be(node: Node) -> None:
    path = str(node.directory / "late.pem")
    node.certificates.use({"CLIENTS": key_store(path)})
    assert node.events == ["certificates-not-reloaded"]
    assert certificate(node.served("CLIENTS")) == certificate(issued("node", HOST))
    node.write("late.pem", renewed := authority().issue("node", [HOST]))
    node.certificates.reload()
    assert certificate(node.served("CLIENTS")) == certificate(renewed)
