"""The operations on the cluster that a client may do, for answers that show them (KIP-430)."""

from __future__ import annotations

from heirlog.apis.common.call import Call, Q, R
from heirlog.metadata.acls import AclOperation, ResourceType


def cluster_operations(call: Call[Q, R]) -> int:
    """None for a client that must not describe the cluster."""
    if not call.may_also(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return call.operations(ResourceType.CLUSTER)
