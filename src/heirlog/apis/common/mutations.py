"""The controller mutation quota of a client, for the APIs that create and delete partitions (KIP-599).

From a version of each API on, a topic above the quota is refused. In older versions it is done, and the answer of both
says how long the client has to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from heirlog.apis.common.call import R, changed
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.mutation_quota import MutationQuotas, no_quota


class ChangesPartitions(ChangesMetadata, Protocol):
    @property
    def mutation_quotas(self) -> MutationQuotas: ...


def within_quota(
    node: OnController[ChangesPartitions],
    context: Context,
    strict_version: int,
    handle: Callable[[Callable[[int], None]], Reply[R]],
) -> Reply[R]:
    """The answer of `handle`, which gets what to call with the number of partitions that it is about to change.

    strict_version: from this version of the API on, that call raises KafkaError above the quota.
    """
    quota = node.controller.mutation_quotas.of(
        context.principal, context.client_id, strict=context.api_version >= strict_version
    )
    return handle(no_quota) if quota is None else changed(handle(quota.take), quota.put_into)
