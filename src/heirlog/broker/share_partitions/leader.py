"""The leader's part of share groups on one broker, put together."""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.share_partitions.share_acknowledge import ShareAcknowledgeHandler
from heirlog.broker.share_partitions.share_fetch import ShareFetchHandler
from heirlog.broker.share_partitions.share_partition_manager import SharePartitionManager
from heirlog.broker.share_partitions.share_session import ShareSessionCache
from heirlog.broker.share_partitions.state_persister import StatePersister
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.protocol.types import BrokerId, Endpoint


class SharePartitionLeader:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        replicas: ReplicaManager,
        image: Callable[[], Image],
        endpoint_of: Callable[[BrokerId], Endpoint | None],
    ) -> None:
        """endpoint_of: of a broker's listener for other brokers."""
        persister = StatePersister(env, image, endpoint_of, static.int("request.timeout.ms"))
        manager = SharePartitionManager(env, static, replicas, image, persister)
        sessions = ShareSessionCache(
            static.int("group.share.max.share.sessions"),
            lambda key: manager.release(key.group_id, key.member_id),
            manager.group_gone,
        )
        self.partitions = manager
        self.sessions = sessions
        self.acknowledge = ShareAcknowledgeHandler(
            replicas, manager, sessions, is_enabled=lambda: image().share_version > 0
        )
        self.fetch = ShareFetchHandler(
            env,
            replicas,
            manager,
            sessions=sessions,
            acknowledge=self.acknowledge,
            max_bytes=static.int("fetch.max.bytes"),
        )
