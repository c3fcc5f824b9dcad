"""A real cluster for tests: its nodes are processes on this machine.

    from heirlog.testing import Cluster

    with Cluster(nodes=3) as cluster:
        use(cluster.bootstrap_servers)

`plugin` registers the pytest fixture `heirlog_cluster`; `cluster` is the public name of `heirlog.local.cluster`. In a
checkout only, not in the wheel: `conformance` plays files of scenarios, and `apache_kafka` runs nodes of Apache Kafka.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heirlog.testing.cluster import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError"]


def __getattr__(name: str) -> Any:
    # every pytest run of the environment imports this package for its plug-in, most of them without a cluster
    if name in __all__:
        from heirlog.testing import cluster

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
