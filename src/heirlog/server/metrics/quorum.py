"""kafka.server:type=raft-metrics and broker-metadata-metrics: the metadata quorum as this node sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from heirlog.node.node import Node
from heirlog.protocol.messages import DescribeQuorumRequest
from heirlog.protocol.types import METADATA_TOPIC
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.quorum import Quorum
from heirlog.server.metrics.family import Family, Sample, gauge, gauges
from heirlog.server.metrics.growth import GrowthRate

RAFT = "kafka_server_raft_metrics_"
BROKER = "kafka_server_broker_metadata_metrics_"
LOADER = "kafka_server_metadataloader_"
NOBODY = -1


def families(node: Node, quorum: Quorum, growth: GrowthRate) -> Iterator[Family | None]:
    leads = quorum.leader_id == node.config.node_id
    state = _state(quorum)
    vote = None if quorum.state is None else quorum.state.voted
    for name in ("current_state", "current_state_info"):  # with the exporter since 1.0, and before
        yield gauges(RAFT + name, "Role of this node in the metadata quorum.", [({"state": state}, 1)])
    log = quorum.log
    for name, text, value in (
        ("current_leader", "Node id of the active controller, -1 while unknown.", quorum.leader_id),
        ("current_epoch", "Epoch of the metadata quorum.", quorum.epoch),
        (
            "current_vote",
            "Id of the node that this node voted for in this epoch; -1: none.",
            NOBODY if vote is None else vote.id,
        ),
        (
            "high_watermark",
            "High watermark of the metadata log: records below this offset are committed.",
            quorum.high_watermark,
        ),
        ("log_end_offset", "End offset of this node's metadata log.", quorum.log_end_offset),
        (
            "log_end_epoch",
            "Epoch of the last record in this node's metadata log.",
            NOBODY if log is None else log.end.epoch,
        ),
        ("number_of_voters", "Controllers that vote.", len(quorum.voters)),
        (
            "number_of_observers",
            "Nodes that fetch the metadata log and do not vote; only the leader knows them.",
            _observers(quorum, leads),
        ),
        (
            "uncommitted_voter_change",
            "1 while a change of the voters is in progress, otherwise 0; only the leader knows it.",
            quorum.is_changing_voters,
        ),
    ):
        yield gauge(RAFT + name, text, value)
    rate = growth.per_second(node.env.now_ms(), quorum.log_end_offset)
    yield gauge(RAFT + "append_records_rate", "Metadata records a second that this leader appends.", rate * leads)
    yield gauge(RAFT + "fetch_records_rate", "Metadata records a second that this node fetches.", rate * (not leads))
    if node.commit_latency is not None:
        average, longest = node.commit_latency.average_and_max_ms(node.env.now_ms())
        text = "Milliseconds from appending to committing, at the leader, in the last half minute:"
        yield gauge(RAFT + "commit_latency_avg", f"{text} average.", average)
        yield gauge(RAFT + "commit_latency_max", f"{text} longest.", longest)
    average, longest = quorum.election_latency.average_and_max_ms(node.env.now_ms())
    text = "Milliseconds from asking for votes to a known leader, in the last half minute:"
    yield gauge(RAFT + "election_latency_avg", f"{text} average.", average)
    yield gauge(RAFT + "election_latency_max", f"{text} longest.", longest)
    for name, text, number in applied(node):
        yield gauge(f"{BROKER}last_applied_record_{name}", text, number)
    for name in ("metadata_load_error_count", "metadata_apply_error_count"):
        yield gauge(
            BROKER + name, "Errors while reading metadata. Always 0: a node that cannot read the metadata stops.", 0
        )
    yield gauge(LOADER + "currentmetadataversion", "Level of metadata.version.", node.image.metadata_version)
    yield gauge(LOADER + "currentcontrollerid", "Node id of the active controller, -1 while unknown.", quorum.leader_id)
    yield gauges(LOADER + "finalizedlevel", "Finalized feature levels.", _levels(node))


def applied(node: Node) -> list[tuple[str, str, float]]:
    """How far the metadata are that this node acts on: offset, timestamp, lag_ms."""
    written_ms = node.applied_time_ms
    lag_ms = max(0, node.env.wall_ms() - written_ms) if written_ms >= 0 else 0
    return [
        ("offset", "Offset of the last metadata record that this node has applied.", node.image.offset),
        (
            "timestamp",
            "Time when the last applied metadata record was written, in milliseconds since 1970; -1 if unknown.",
            written_ms,
        ),
        ("lag_ms", "Milliseconds since the last applied metadata record was written.", lag_ms),
    ]


def _levels(node: Node) -> Iterator[Sample]:
    for name, level in sorted(node.image.features.items()):
        first, *others = re.split(r"[.-]", name)
        yield {"featureName": first + "".join(word.capitalize() for word in others)}, level


def _state(quorum: Quorum) -> str:
    """Kafka's names: a follower that does not vote is an observer, and a resigned leader counts as unattached."""
    state = quorum.state
    if state is None or state.role is QuorumRole.RESIGNED:
        return QuorumRole.UNATTACHED.value
    if state.role is QuorumRole.FOLLOWER:
        return state.role.value if quorum.is_voter else "observer"
    has_voted = state.voted is not None and state.role in (QuorumRole.UNATTACHED, QuorumRole.PROSPECTIVE)
    return f"{state.role.value}-voted" if has_voted else state.role.value


def _observers(quorum: Quorum, leads: bool) -> int:
    if not leads:
        return 0
    asked = DescribeQuorumRequest.TopicData(
        topic_name=METADATA_TOPIC, partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
    )
    answer = quorum.describe_quorum(DescribeQuorumRequest(topics=[asked]))
    return sum(len(partition.observers) for topic in answer.topics for partition in topic.partitions)
