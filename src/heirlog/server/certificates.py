"""The key and trust stores of a running node: read again, and replaced, for new connections in both directions.

    SIGHUP                   the files are read again, also those that trust the issuer of tokens
    dynamic configurations   stores of one listener (KIP-226), which count instead of the file's from then on

All of it, or nothing changes: stores that cannot be read, and a certificate that other nodes would refuse, leave the
contexts as they are. A dynamic configuration is tried before it is stored (`reason_against`), and there the rules are
stricter, as in Kafka: the certificate keeps its subject and its alternative names unless `ssl.allow.dn.changes` and
`ssl.allow.san.changes` say otherwise, a listener without trust store gets none, and nodes that still have the old
stores must get along with the new ones. An operator who replaces a file has other means to look at it.

Source: KIP-226; Kafka's SslFactory, which does not look at the advertised address.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heirlog.client.security import Security, SecurityError
from heirlog.env import EventLog
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.server.door import NO_STORES, Doors, Stores, stores_of
from heirlog.server.peers import PeerContexts, Peers

if TYPE_CHECKING:
    import ssl

    from heirlog.server.issuer_keys import IssuerKeys


@dataclass(frozen=True, slots=True)
class _Contexts:
    of_doors: Mapping[str, ssl.SSLContext]
    of_peers: list[PeerContexts]
    of_issuers: Mapping[str, ssl.SSLContext | None]


class Certificates:
    """A `heirlog.node.dynamic_stores.ListenerStores`. Raises SecurityError for stores that cannot be read."""

    def __init__(self, doors: Doors, peers: Peers, issuer_keys: Mapping[str, IssuerKeys], log: EventLog) -> None:
        self._doors = doors
        self._peers = peers
        self._issuer_keys = issuer_keys
        self._log = log
        self._stores: Stores = NO_STORES
        """Of dynamic configurations, also if they could not be used: the next attempt may succeed."""
        self._in_use: Stores = NO_STORES
        """The last of them that could be used: what is tried replaces these."""
        self._shown = {listener: _certificate(security) for listener, security in doors.securities().items()}
        """The certificates in use."""

    def shown(self) -> Mapping[str, bytes]:
        """By listener with TLS, the certificate that new connections see, in DER."""
        return self._shown

    def reload(self) -> None:
        self.use(self._stores)

    def use(self, stores: Stores) -> None:
        self._stores = stores
        try:
            made = self._made(stores)
            shown = {listener: _certificate(security) for listener, security in self._doors.securities(stores).items()}
        except SecurityError as error:
            self._log("error", "certificates-not-reloaded", why=str(error))
        except Exception as error:  # no file that is bad in a new way may end a node that serves
            self._log("error", "certificates-not-reloaded", why=repr(error), exception=traceback.format_exc())
        else:
            self._in_use, self._shown = stores, shown
            self._doors.use(made.of_doors)
            self._peers.use(made.of_peers)
            for listener, context in made.of_issuers.items():
                self._issuer_keys[listener].use(context)
            self._log("info", "certificates-reloaded")

    def reason_against(self, stores: Stores) -> str | None:
        """Why this node cannot replace its stores by these; None: it can."""
        try:
            made = self._made(stores)
            self._check_successors(stores)
            self._check_others(made)
        except SecurityError as error:
            return str(error)
        except Exception as error:  # as in `use`
            return f"the stores cannot be used: {error!r}"
        return None

    def _made(self, stores: Stores) -> _Contexts:
        """Raises SecurityError."""
        made = _Contexts(
            self._doors.contexts(stores),
            self._peers.contexts(stores),
            {listener: keys.context() for listener, keys in self._issuer_keys.items()},
        )
        strange = sorted(set(stores) - set(made.of_doors))
        if strange:
            raise SecurityError(f"listener {strange[0]} of this node does not exist, or does not speak TLS")
        self._peers.check(made.of_doors, made.of_peers)
        return made

    def _check_others(self, made: _Contexts) -> None:
        """Raises SecurityError if a node with the stores in use now would not accept this one, or this one it."""
        now = {listener: context for listener, door in self._doors.by_listener.items() if (context := door.context)}
        try:
            self._peers.check(now, self._peers.in_use())
        except SecurityError:
            return  # what is in use has expired: it is no measure for what replaces it
        self._peers.check(made.of_doors, self._peers.in_use())
        self._peers.check(now, made.of_peers)

    def _check_successors(self, stores: Stores) -> None:
        """Raises SecurityError."""
        before = self._doors.securities(self._in_use)
        for listener, security in self._doors.securities(stores).items():
            if stores_of(before[listener]).trust is None and stores_of(security).trust is not None:
                raise SecurityError(
                    f"listener {listener}: Cannot add SSL truststore to an existing listener for which no truststore "
                    "was configured."
                )
            _check_successor(security, self._shown[listener], _certificate(security))


def _check_successor(security: ListenerSecurity, old: bytes, new: bytes) -> None:
    """Raises SecurityError, ValueError."""
    from heirlog.security.alternative_names import alternative_names
    from heirlog.security.distinguished_name import subject_of

    where = f"listener {security.listener}: Keystore"
    if old == new:
        return
    if not security.value("ssl.allow.dn.changes") and subject_of(old) != subject_of(new):
        raise SecurityError(
            f"{where} DistinguishedName does not match: existing={subject_of(old)}, new={subject_of(new)} "
            "(ssl.allow.dn.changes)"
        )
    missing = alternative_names(old) - alternative_names(new)
    if missing and not security.value("ssl.allow.san.changes"):
        raise SecurityError(
            f"{where} SubjectAltNames do not match: {', '.join(sorted(missing))} is missing (ssl.allow.san.changes)"
        )


def _certificate(security: ListenerSecurity) -> bytes:
    """Raises SecurityError."""
    from heirlog.tls.contexts import certificate_of

    wanted: Security = stores_of(security)
    return certificate_of(wanted)
