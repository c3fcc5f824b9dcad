"""What this node's configuration says about the metadata quorum: its log, its times, and its controllers."""

from __future__ import annotations

from heirlog.metadata.config_def import StaticConfig
from heirlog.protocol.types import ZERO_UUID, Uuid
from heirlog.raft.configured_controllers import ConfiguredControllers
from heirlog.raft.control import Voter
from heirlog.raft.metadata_log import MetadataLogConfig
from heirlog.raft.quorum_config import QuorumConfig


def metadata_log_config(config: StaticConfig) -> MetadataLogConfig:
    return MetadataLogConfig(
        segment_bytes=config["metadata.log.segment.bytes"],
        segment_ms=config["metadata.log.segment.ms"],
        max_retention_bytes=config["metadata.max.retention.bytes"],
        max_retention_ms=config["metadata.max.retention.ms"],
    )


def quorum_config(config: StaticConfig) -> QuorumConfig:
    return QuorumConfig(
        election_timeout_ms=config["controller.quorum.election.timeout.ms"],
        fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
        election_backoff_max_ms=config["controller.quorum.election.backoff.max.ms"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        auto_join=config["controller.quorum.auto.join.enable"],
    )


def configured_controllers(config: StaticConfig, directory_id: Uuid) -> ConfiguredControllers:
    """directory_id: of this node's metadata log, which makes a controller the voter that it is."""
    me = None
    if config.is_controller:
        advertised = config.advertised_controller_listeners[0]
        me = Voter(config.node_id, directory_id, advertised.endpoint, advertised.name)
    listener = config.controller_listener_names[0]
    static = tuple(Voter(voter.id, ZERO_UUID, voter.endpoint, listener) for voter in config.voters)
    return ConfiguredControllers(me, static, config.bootstrap_servers)
