"""What a controller knows of the cluster, and KIP-966's values.

Every controller shows its own image's counts, as on Apache Kafka; sessions and elections are the active one's.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.controller.controller import Controller
from heirlog.metadata.basis import Basis
from heirlog.metadata.partition_counts import count_partitions
from heirlog.metadata.state import BrokerRegistration
from heirlog.node.node import Node
from heirlog.server.metrics.family import Family, Sample, counter, counters, gauge, gauges
from heirlog.server.metrics.quorum import applied

KAFKA = "kafka_controller_kafkacontroller_"
STATS = "kafka_controller_controllerstats_"
FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
"""Kafka's BrokerRegistrationState."""


def families(node: Node, controller: Controller) -> Iterator[Family | None]:
    partition_counts = yield from count_partitions(node.image, node.config)
    brokers = node.sorted_brokers()
    for name, text, value in (
        ("activecontrollercount", "1 on the active controller.", int(controller.is_active)),
        (
            "newactivecontrollerscount",
            "Changes of the active controller that this node has seen.",
            node.controllers_seen,
        ),
        ("globaltopiccount", "Topics.", partition_counts.topics),
        ("globalpartitioncount", "Partitions.", partition_counts.partitions),
        ("offlinepartitionscount", "Partitions without a leader.", partition_counts.offline),
        (
            "preferredreplicaimbalancecount",
            "Partitions that are not led by their preferred leader (the first assigned replica).",
            partition_counts.preferred_imbalance,
        ),
        ("activebrokercount", "Brokers that are not fenced.", sum(not broker.fenced for broker in brokers)),
        ("fencedbrokercount", "Brokers that are fenced.", sum(broker.fenced for broker in brokers)),
        (
            "controlledshutdownbrokercount",
            "Brokers in controlled shutdown.",
            sum(broker.in_controlled_shutdown for broker in brokers),
        ),
        (
            "timedoutbrokerheartbeatcount",
            "Brokers fenced because their heartbeats stopped, since this process started.",
            controller.timed_out_heartbeats,
        ),
        ("lastcommittedrecordoffset", "Offset of the last committed metadata record.", _committed(node)),
        (
            "metadataerrorcount",
            "Metadata records that could not be applied. Always 0: a node that cannot apply a record stops.",
            0,
        ),
    ):
        yield gauge(KAFKA + name, text, value)
    for name, text, number in applied(node):
        yield gauge(f"{KAFKA}lastappliedrecord{name.replace('_', '')}", text, number)
    yield gauges(
        KAFKA + "brokerregistrationstate",
        "State of each broker's registration: 10 fenced, 20 in controlled shutdown, 30 active.",
        [({"broker": str(broker.id)}, _registration(broker)) for broker in brokers],
    )
    yield gauges(
        KAFKA + "timesincelastheartbeatreceivedms",
        "Milliseconds since a broker's last heartbeat, at the active controller.",
        _since_heartbeat(node, controller, brokers),
    )
    yield from _elections(controller)
    yield gauge(
        "kafka_controller_global_under_min_isr_partition_count",
        "Partitions whose ISR is smaller than their min ISR (KIP-966).",
        partition_counts.under_min_isr,
    )
    yield gauge(
        "kafka_replication_electable_replicas_count",
        "Members of ISR and ELR of all partitions: replicas that may lead without a loss (KIP-966).",
        partition_counts.electable_replicas,
    )
    counts = (yield from controller.recovery_counts()) if controller.is_active else None
    yield gauge(
        "kafka_controller_unclean_recovery_partitions_count",
        "Partitions in unclean recovery, including those that wait for replicas; at the active controller (KIP-966).",
        0 if counts is None else counts.recovery_partitions,
    )
    yield gauge(
        "kafka_controller_manual_leader_election_required_partition_count",
        "Partitions that wait for an operator's election, at the active controller (KIP-966).",
        0 if counts is None else counts.manual_election_required,
    )
    yield gauge(
        "kafka_controller_unclean_recovery_finished_count",
        "Unclean recoveries that elected a leader since this controller started (KIP-966).",
        controller.elections[Basis.RECOVERED],
    )


def _elections(controller: Controller) -> Iterator[Family | None]:
    """Since this process started. An election from the ELR is clean: it is counted here and never as unclean."""
    elections = controller.elections
    yield counter(
        STATS + "uncleanleaderelections_total",
        "Leaders elected without comparing logs, where no replica was known to be complete.",
        sum(count for basis, count in elections.items() if basis.is_lossy and basis is not Basis.RECOVERED),
    )
    yield counters(
        "heirlog_controller_lossy_elections_total",
        "Leaders elected where no replica was known to be complete, by whether another replica holds more records.",
        [({"loss": certainty.value}, count) for certainty, count in controller.losses.items()],
    )
    yield counter(
        STATS + "electionfromeligibleleaderreplicas_total", "Leaders elected from the ELR.", elections[Basis.ELR]
    )
    yield counters(
        "heirlog_controller_elections_total",
        "Leaders elected, by basis.",
        [({"basis": basis.value}, count) for basis, count in elections.items()],
    )


def _committed(node: Node) -> int:
    quorum = node.parts.quorum
    return -1 if quorum is None else quorum.high_watermark - 1


def _registration(broker: BrokerRegistration) -> int:
    if broker.fenced:
        return FENCED
    return IN_CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE


def _since_heartbeat(node: Node, controller: Controller, brokers: list[BrokerRegistration]) -> Iterator[Sample]:
    now_ms = node.env.now_ms()
    for broker in brokers:
        since_heartbeat_ms = controller.sessions.since_heartbeat_ms(broker.id, now_ms)
        if since_heartbeat_ms is not None:
            yield {"broker": str(broker.id)}, since_heartbeat_ms
