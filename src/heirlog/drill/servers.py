"""How a drill reaches its cluster: addresses, and how a client logs in where the listeners are closed."""

from __future__ import annotations

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
