"""What operators of a cluster do that many teams share: quotas, ACLs and throttles of replication come and go while
clients work. In the end there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heirlog.client.acls import create_acls, delete_acls
from heirlog.metadata.acls import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.metadata.client_quotas import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterClientQuotasRequest, IncrementalAlterConfigsRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.admin import TOPIC_RESOURCE, Admin
from heirlog.sim.clients.client import REQUEST_TIMEOUT_MS
from heirlog.sim.env import SimEnv

LIMITS = {PRODUCER_BYTE_RATE: (50, 800), CONSUMER_BYTE_RATE: (100, 2000), CONTROLLER_MUTATION_RATE: (1, 10)}
"""The lowest and the highest one that is set. Clients write some 300 bytes per second to a broker."""
REPLICATION_RATE = (50, 5000)
"""The lowest and the highest one that is set, in bytes per second."""
THROTTLED_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
BROKER_RESOURCE = 4
SET, DELETE = 0, 1
ANONYMOUS = "User:ANONYMOUS"
OTHER = "User:other"


class QuotaChanger(Admin):
    """Sets and removes default quotas of all client ids, again and again; in the end there are none."""

    def __init__(self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint]) -> None:
        super().__init__(env, name, bootstrap, [])
        self.settled = False
        """This client is stopped, and no quota is left."""

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(300, 3000), self._change)

    def _change(self) -> None:
        if self.stopped:
            return
        random = self.env.random
        quotas = list(LIMITS)
        key = quotas[random.randrange(0, len(quotas))]
        value = float(random.randrange(*LIMITS[key])) if random.randrange(0, 3) else None
        self.once(default_quotas({key: value}), self.start)

    def stop(self) -> None:
        super().stop()
        # a request of ours that had no answer may still be on its way
        self.env.call_later(2 * REQUEST_TIMEOUT_MS, self._remove)

    def _remove(self) -> None:
        def answered(response: Any) -> None:
            if all(entry.error_code == ErrorCode.NONE for entry in response.entries):
                self.settled = True
            else:
                self._later(self._remove)

        request = default_quotas(dict.fromkeys(LIMITS))
        self.ask_any(request, answered, lambda _: self._later(self._remove))


def default_quotas(values: dict[str, float | None]) -> AlterClientQuotasRequest:
    """None removes one."""
    nested = AlterClientQuotasRequest
    entry = nested.EntryData(
        entity=[nested.EntityData(entity_type="client-id", entity_name=None)],
        ops=[nested.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )
    return AlterClientQuotasRequest(entries=[entry])


class AclChanger(Admin):
    """Creates and removes ACLs of a topic, again and again: they allow the user of all clients, and deny another one.
    In the end there are none.
    """

    def __init__(self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str]) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.settled = False
        """This client is stopped, and no ACL is left."""

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(300, 3000), self._change)

    def _change(self) -> None:
        if self.stopped:
            return
        random = self.env.random
        acls = acls_of(self.topics[random.randrange(0, len(self.topics))])
        if random.randrange(0, 2):
            self.once(create_acls(acls), self.start)
        else:
            self.once(delete_acls([AclFilter.of(acl) for acl in acls]), self.start)

    def stop(self) -> None:
        super().stop()
        self.env.call_later(2 * REQUEST_TIMEOUT_MS, self._remove)

    def _remove(self) -> None:
        filters = [AclFilter.of(acl) for topic in self.topics for acl in acls_of(topic)]
        self.converse(delete_acls(filters), lambda _: self._settle(), lambda _: self._later(self._remove))

    def _settle(self) -> None:
        self.settled = True


def acls_of(topic: str) -> list[Acl]:
    """The first one allows what the second one would refuse by being there."""
    return [
        Acl(ResourceType.TOPIC, topic, PatternType.LITERAL, principal, "*", AclOperation.ALL, permission)
        for principal, permission in ((ANONYMOUS, AclPermissionType.ALLOW), (OTHER, AclPermissionType.DENY))
    ]


class ReplicationThrottler(Admin):
    """Throttles the replicas of topics that are not in the ISR (KIP-73), and stops that, again and again."""

    def __init__(self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str]) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.settled = False
        """This client is stopped, and no replica is throttled."""

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(300, 4000), self._change)

    def _change(self) -> None:
        if self.stopped:
            return
        random = self.env.random
        rate = random.randrange(*REPLICATION_RATE) if random.randrange(0, 2) else None
        self.once(replication_throttle(self.topics, rate), self.start)

    def stop(self) -> None:
        super().stop()
        # a request of ours that had no answer may still be on its way
        self.env.call_later(2 * REQUEST_TIMEOUT_MS, self._remove)

    def _remove(self) -> None:
        def answered(response: Any) -> None:
            if all(resource.error_code == ErrorCode.NONE for resource in response.responses):
                self.settled = True
            else:
                self._later(self._remove)

        self.ask_any(replication_throttle(self.topics, None), answered, lambda _: self._later(self._remove))


def replication_throttle(topics: Sequence[str], rate: int | None) -> IncrementalAlterConfigsRequest:
    """Of all replicas of the topics, on all brokers; None: not throttled."""
    nested = IncrementalAlterConfigsRequest

    def resource(
        kind: int, name: str, configs: Sequence[str], value: str
    ) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
        operation = SET if rate is not None else DELETE
        return nested.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                nested.AlterableConfig(name=config, config_operation=operation, value=value) for config in configs
            ],
        )

    rates = resource(BROKER_RESOURCE, "", THROTTLED_RATES, str(rate or 0))
    replicas = [resource(TOPIC_RESOURCE, topic, THROTTLED_REPLICAS, "*") for topic in topics]
    return nested(resources=[rates, *replicas])
