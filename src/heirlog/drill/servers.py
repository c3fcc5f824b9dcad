"""How a drill reaches its cluster: addresses, and how a client logs in where the listeners are closed."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from heirlog.blocking import Client, security_from_properties
from heirlog.local.cluster import Cluster
from heirlog.security.jaas import parse_jaas


class HasServers(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Servers:
    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Kafka's client properties; empty for open listeners."""

    @classmethod
    def of(cls, cluster: HasServers) -> Self:
        """Of a cluster that is started."""
        return cls(cluster.bootstrap_servers, cluster.client_config() if isinstance(cluster, Cluster) else {})

    @property
    def is_closed(self) -> bool:
        return "security.protocol" in self.properties

    def client(self, timeout_s: float = 2.0) -> Client:
        return Client(self.bootstrap, security=security_from_properties(self.properties), timeout_s=timeout_s)

    def librdkafka(self) -> dict[str, Any]:
        """The same in librdkafka's names."""
        found: dict[str, Any] = {"bootstrap.servers": self.bootstrap, "log_level": 0}
        if "security.protocol" in self.properties:
            found["security.protocol"] = self.properties["security.protocol"]
        if "ssl.truststore.location" in self.properties:
            found["ssl.ca.location"] = self.properties["ssl.truststore.location"]
        if "sasl.jaas.config" in self.properties:
            login = parse_jaas(self.properties["sasl.jaas.config"]).options
            found["sasl.mechanisms"] = self.properties["sasl.mechanism"]
            found |= {"sasl.username": login["username"], "sasl.password": login["password"]}
        return found

    def aiokafka(self) -> dict[str, Any]:
        """The same in aiokafka's names."""
        given = self.librdkafka()
        found: dict[str, Any] = {"bootstrap_servers": self.bootstrap}
        if "security.protocol" in given:
            found["security_protocol"] = given["security.protocol"]
        if "ssl.ca.location" in given:
            found["ssl_context"] = ssl.create_default_context(cafile=given["ssl.ca.location"])
        if "sasl.mechanisms" in given:
            found["sasl_mechanism"] = given["sasl.mechanisms"]
            found |= {"sasl_plain_username": given["sasl.username"], "sasl_plain_password": given["sasl.password"]}
        return found
