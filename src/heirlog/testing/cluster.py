"""The public name of `Cluster` and `ClusterError` for tests; the code is in `heirlog.local.cluster`."""

from heirlog.local.cluster import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError"]
