"""How a drill reaches its cluster: addresses, and how a client logs in where the listeners are closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from heirlog.blocking import Client, security_from_properties
from heirlog.local.client_names import in_names_of
from heirlog.local.cluster import Cluster


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
        return {**self._in_names_of("librdkafka"), "log_level": 0}

    def aiokafka(self) -> dict[str, Any]:
        """The same in aiokafka's names."""
        return self._in_names_of("aiokafka")

    def _in_names_of(self, library: str) -> dict[str, Any]:
        return in_names_of(library, {**self.properties, "bootstrap.servers": self.bootstrap})
