"""Which exchange a SASL mechanism is on this node, and what is said of attempts that failed.

PLAIN's users are in the properties of the listener, SCRAM's in the metadata, OAUTHBEARER's with the issuer of tokens:
the body checks the signatures. All nodes invent the same salt for a SCRAM user that does not exist: it is derived from
what all nodes of a cluster know and a client does not.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping

from heirlog.env import EventLog
from heirlog.metadata.config_def import StaticConfig, token_secrets
from heirlog.metadata.image import Image
from heirlog.metadata.listener_security import PLAIN, ListenerSecurity
from heirlog.rate_limited_log import RateLimitedLog
from heirlog.security.access_token import Signatures, SignedTokens, TokenValidator, UnsecuredTokens
from heirlog.security.exchange import Exchange, PlainExchange
from heirlog.security.oauthbearer import OAUTHBEARER, OAuthBearerExchange
from heirlog.security.scram import BY_MECHANISM, ScramExchange, ScramMechanism, TokenLogin, random_text


class Authentications:
    """What came of clients' attempts, by SASL and by certificate: counted by listener since the start, and logged."""

    def __init__(self, log: EventLog, log_limited: RateLimitedLog) -> None:
        self.successful: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._log = log
        self._log_limited = log_limited

    def has_failed(self, listener: str, peer: str, mechanism: str, name: str, why: str) -> None:
        """name: as which the client wanted to log in, "" if it did not say it."""
        self.failed[listener] += 1
        self._log_limited.of_client(
            "info", "authentication-failed", peer, listener=listener, peer=peer, mechanism=mechanism, name=name, why=why
        )

    def has_succeeded(self, listener: str, peer: str, mechanism: str, principal: str) -> None:
        self.successful[listener] += 1
        self._log("debug", "authenticated", listener=listener, peer=peer, mechanism=mechanism, principal=principal)


class Authenticators:
    """image: the committed metadata of this node.

    wall_ms: wall time. signatures: by listener, of those that take signed tokens.
    """

    def __init__(
        self,
        config: StaticConfig,
        image: Callable[[], Image],
        cluster_id: Callable[[], str],
        wall_ms: Callable[[], int],
        signatures: Mapping[str, Signatures],
    ) -> None:
        self._config = config
        self._image = image
        self._cluster_id = cluster_id
        self._wall_ms = wall_ms
        self._signatures = signatures
        self._token_secrets = token_secrets(config)

    def exchange(self, security: ListenerSecurity, mechanism: str, random_bytes: bytes) -> Exchange:
        """For one attempt by one of the mechanisms of the listener. random_bytes: never used before."""
        if mechanism == PLAIN:
            return PlainExchange(security.plain_users)
        if mechanism == OAUTHBEARER:
            return OAuthBearerExchange(self._validator(security))
        scram = BY_MECHANISM[mechanism]
        return ScramExchange(
            scram,
            lambda user: self._image().scram.get((user, scram.number)),
            random_text(random_bytes),
            self._secret(),
            lambda token_id: self._token_login(token_id, scram),
        )

    def _token_login(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """One that has ended may not be swept yet: its session would end with the first request."""
        token = self._image().delegation_tokens.get(token_id)
        if token is None or self._token_secrets is None:
            return None
        credential = self._token_secrets.credential(token_id, mechanism)
        has_ended = token.ends_ms <= self._wall_ms()
        return TokenLogin(credential, token.owner.partition(":")[2], token.ends_ms, has_ended)

    def _validator(self, security: ListenerSecurity) -> TokenValidator:
        bearer = security.bearer
        assert bearer is not None, "it is among the mechanisms of the listener"
        if not bearer.jwks_url:
            return UnsecuredTokens(bearer.rules, bearer.required_scope, self._wall_ms)
        return SignedTokens(self._signatures[security.listener], bearer.rules, self._wall_ms)

    def _secret(self) -> bytes:
        """The same on every node of the cluster, and unknown to its clients; its id alone is not: any client gets it.

        `delegation.token.secret.key`, else how nodes log in to controllers, else how brokers log in to each other.
        """
        config = self._config
        secret = config["delegation.token.secret.key"]
        if not secret:
            secret = self._login(config.controller_listener_names[0], "sasl.mechanism.controller.protocol")
        if not secret and config.is_broker:
            secret = self._login(config.inter_broker_listener_name, "sasl.mechanism.inter.broker.protocol")
        return hashlib.sha256(f"{self._cluster_id()}\0{secret}".encode()).digest()

    def _login(self, listener: str, mechanism: str) -> str:
        return self._config.security(listener).peer_properties(self._config[mechanism]).get("sasl.jaas.config", "")
