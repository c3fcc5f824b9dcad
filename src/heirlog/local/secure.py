"""What makes a local cluster a closed one: certificates, passwords, and the properties that name them.

    <data>/security/ca.pem        see `certificates.py`
    <data>/security/ca.key
    <data>/security/node.pem
    <data>/client.properties      how the user `admin` connects, in Kafka's client properties

With SSL a client is the common name of its certificate, otherwise who its password says. Nodes are the user `node`,
with a certificate, or by PLAIN, whose password is in their server.properties. `admin` and `node` are super users;
other users need ACLs. Files with a key or a password can be read by their owner only.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heirlog.client.scram import set_password
from heirlog.client.security import Security as ClientSecurity
from heirlog.client.security import SecurityError, security_from_properties
from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.metadata.as_records import scram_record
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.metadata.server_configs import STANDARD_AUTHORIZER
from heirlog.protocol.errors import KafkaError
from heirlog.security.jaas import parse_jaas
from heirlog.security.scram import BY_MECHANISM, ITERATIONS_MIN, RANDOM_BYTES, credential_of, random_text
from heirlog.security.scram import salted_password as salted

if TYPE_CHECKING:
    from heirlog.blocking import Client

PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
ADMIN: Final = "admin"
NODE: Final = "node"
FOLDER: Final = "security"
CLIENT_FILE: Final = "client.properties"
HOSTS: Final = ("127.0.0.1", "localhost")
PASSWORD_BYTES: Final = 18
SCRAM: Final = "SCRAM-SHA-512"
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class ClosedCluster:
    """What a new cluster is formatted with."""

    listener: str
    properties: Mapping[str, str] = field(repr=False)
    """Of every node."""


def close(data: Path, protocol: str, bootstrap_servers: str) -> ClosedCluster:
    """Make the files of a new cluster whose listeners speak `protocol`. Raises LocalError.

    They come before those of the nodes: a start that is interrupted between them is continued by the next one.
    """
    folder = data / FOLDER
    if protocol.endswith("SSL"):
        refuse_without_certificates()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)
        tls = _tls(folder, protocol) if protocol.endswith("SSL") else {}
    except OSError as error:
        raise LocalError(f"cannot write {error.filename}: {error.strerror}; give another data folder") from error
    common = {
        "listener.security.protocol.map": f"{protocol}:{protocol},CONTROLLER:{protocol}",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{NODE};User:{ADMIN}",
        **tls,
    }
    client = {name: text for name, text in tls.items() if name.startswith("ssl.truststore.")}
    client["security.protocol"] = protocol
    if protocol == "SSL":
        client |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / f"{ADMIN}.pem")}
        _write_client_file(data, bootstrap_servers, client)
        return ClosedCluster(protocol, common)
    node_password, password = (secrets.token_urlsafe(PASSWORD_BYTES) for _ in range(2))
    login = f'{_PLAIN_MODULE} required username="{NODE}" password="{node_password}" user_{NODE}="{node_password}";'
    common |= {
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM},SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": login,
        "listener.name.controller.plain.sasl.jaas.config": login,
    }
    _write_client_file(data, bootstrap_servers, client | scram_login(ADMIN, password))
    return ClosedCluster(protocol, common)


def refuse_without_certificates() -> None:
    """Before anything is written. Raises LocalError where none can be made."""
    try:
        from heirlog.local import certificates  # noqa: F401
    except ImportError as error:
        raise LocalError(
            "certificates are made by the package cryptography: pip install cryptography (heirlog's extra tls has it)"
        ) from error


def first_users(data: Path) -> list[Any]:
    """The records that a new cluster in the folder is formatted with; none for one without passwords."""
    path = data / CLIENT_FILE
    text = properties.read(path).get("sasl.jaas.config") if path.exists() else None
    return [] if text is None else [scram_user(ADMIN, parse_jaas(text).options["password"])]


def _tls(folder: Path, protocol: str) -> dict[str, str]:
    from heirlog.local.certificates import Authority

    authority = Authority.new()
    (folder / "ca.pem").write_text(authority.certificate_pem, encoding="utf-8")
    write_private(folder / "ca.key", authority.key_pem)
    write_private(folder / "node.pem", authority.issue(NODE, HOSTS))
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }
    if protocol == "SSL":
        write_private(folder / f"{ADMIN}.pem", authority.issue(ADMIN))
        found |= {
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/,DEFAULT",
        }
    return found


def scram_login(user: str, password: str, mechanism: str = SCRAM) -> dict[str, str]:
    """Client properties."""
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password)]
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{_SCRAM_MODULE} required username="{quoted[0]}" password="{quoted[1]}";',
    }


def scram_user(user: str, password: str, mechanism: str = SCRAM, iterations: int = ITERATIONS_MIN) -> Any:
    """The metadata record by which a cluster knows the user."""
    scram, salt = BY_MECHANISM[mechanism], new_salt()
    return scram_record(
        (user, scram.number), credential_of(scram, salted(scram, password, salt, iterations), salt, iterations)
    )


def new_salt() -> bytes:
    return random_text(secrets.token_bytes(RANDOM_BYTES)).encode()


def client_config(data: Path, user: str, connect: Callable[[], Client]) -> dict[str, str]:
    """How `user` connects to the running cluster; created if it is new, with a password or a certificate of its own.

    connect: a client that may do everything. Raises LocalError: the cluster is not closed, or refuses the user.
    """
    path = data / CLIENT_FILE
    if not path.exists():
        return {}
    given = properties.read(path)
    del given["bootstrap.servers"]
    if user == ADMIN:
        return given
    if "/" in user or user.startswith("."):
        raise LocalError(f"{user!r} cannot be the name of a file, which its password or certificate is kept in")
    if given["security.protocol"] == "SSL":
        return given | {"ssl.keystore.location": str(_certificate_of(data / FOLDER, user))}
    stored = data / FOLDER / f"{user}.password"
    if not stored.exists():
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        try:
            with connect() as client:
                client.run(set_password(user, BY_MECHANISM[SCRAM], password, new_salt(), ITERATIONS_MIN))
        except KafkaError as error:
            raise LocalError(f"the user {user} cannot be created: {error}") from error
        write_private(stored, password)
    return given | scram_login(user, stored.read_text(encoding="utf-8"))


def _certificate_of(folder: Path, user: str) -> Path:
    path = folder / f"{user}.pem"
    if not path.exists():
        from heirlog.local.certificates import Authority

        text = ((folder / name).read_text(encoding="utf-8") for name in ("ca.key", "ca.pem"))
        write_private(path, Authority.of(*text).issue(user))
    return path


def follow_folder(data: Path, nodes: Sequence[Path], before: str) -> None:
    """The folder was copied or moved from `before`: the properties name the certificates in it. Raises OSError."""
    for path in (*nodes, data / CLIENT_FILE):
        if path.exists():
            text = path.read_text(encoding="utf-8")
            moved = text.replace(f"={before}/{FOLDER}/", f"={data}/{FOLDER}/")
            if moved != text:
                write_private(path, moved)


def _write_client_file(data: Path, bootstrap_servers: str, client: Mapping[str, str]) -> None:
    """Raises OSError."""
    comment = f"How {ADMIN} connects to this cluster. It holds a secret: keep it readable for its owner only."
    text = properties.render({"bootstrap.servers": bootstrap_servers, **client}, comment)
    write_private(data / CLIENT_FILE, text)


def write_private(path: Path, text: str) -> None:
    """A file that only its owner can read, also while it is written. Replaces one of that name at once."""
    made = path.with_name(f".{path.name}.new")
    made.unlink(missing_ok=True)  # of a writer that was interrupted, or a link of another user
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(made, path)


def security_of(config: StaticConfig, listener: str) -> ClientSecurity:
    """How a node, or who has its files, connects to a listener of the cluster. Raises LocalError."""
    found: ListenerSecurity = config.security(listener)
    setting = "controller" if listener in config.controller_listener_names else "inter.broker"
    try:
        return security_from_properties(found.peer_properties(config[f"sasl.mechanism.{setting}.protocol"]))
    except SecurityError as error:
        raise LocalError(str(error)) from error
