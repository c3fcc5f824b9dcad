"""A swarm of a cluster that many share.

shared-cluster   client quotas, ACLs and throttles of replication come and go; a group of the consumer protocol shares
                 out a topic

Brokers throttle clients and leave their connections unread (KIP-124, KIP-219) while they fail, and so do clients whose
requests wait. Nothing that nodes send each other may be throttled. Nodes have an authorizer, so each start holds back
requests until its ACLs are loaded. A part of the brokers, from their next start on, has no super user: they look up the
ACLs of each request.
"""

from __future__ import annotations

from random import Random
from typing import Any

from heirlog.metadata.server_configs import STANDARD_AUTHORIZER
from heirlog.protocol.messages import FetchRequest
from heirlog.raft.fetch_service import replica_of
from heirlog.sim import consumer_group_races, swarms
from heirlog.sim.clients.consumer_member import CONFIG
from heirlog.sim.clients.tenants import ANONYMOUS, AclChanger, QuotaChanger, ReplicationThrottler
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import RECREATED, TOPIC

SETTLE_LIMIT_MS = 30_000
WITHOUT_SUPER_USERS = {"super.users": "", "allow.everyone.if.no.acl.found": "true"}
THROTTLED = "shared-cluster.throttled"
"""Counter: answers that told a client to wait."""


def shared_cluster_plan(random: Random) -> RunPlan:
    plan = swarms.swarm_plan(random)
    plan.config = {
        **plan.config,
        **CONFIG,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": ANONYMOUS,
    }
    return plan


def shared_cluster(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    cluster.network.counts_bytes = True
    cluster.network.answer_listeners.append(lambda server, request, response: _answered(simulation, request, response))
    for name in cluster.broker_names:
        if random.randrange(0, 2):
            cluster.configure(name, WITHOUT_SUPER_USERS)
    quotas = cluster.run_client("quotas", lambda env: QuotaChanger(env, "quotas", cluster.bootstrap))
    shared = [topic for topic in simulation.topics() if topic != RECREATED] or [TOPIC]
    acls = cluster.run_client("acls", lambda env: AclChanger(env, "acls", cluster.bootstrap, shared))
    throttler = cluster.run_client(
        "throttler", lambda env: ReplicationThrottler(env, "throttler", cluster.bootstrap, shared)
    )
    members = consumer_group_races.start_members(simulation, random.randrange(1, 4))
    swarms.swarm(simulation)
    operators = (quotas, acls, throttler)
    for operator in operators:
        operator.stop()
    simulation.heal()
    settled = simulation.supervised(lambda: all(operator.settled for operator in operators))
    simulation.wait("no quota, ACL and throttle is left", settled, SETTLE_LIMIT_MS)
    consumer_group_races.settle(simulation, members)


def _answered(simulation: Simulation, request: Any, response: Any) -> None:
    throttle_ms = getattr(response, "throttle_time_ms", 0)
    if not throttle_ms:
        return
    simulation.world.counters[THROTTLED] += 1
    if isinstance(request, FetchRequest) and replica_of(request) >= 0:
        sentence = f"broker {replica_of(request)} has to wait {throttle_ms} ms because of a client quota"
        raise Violation("throttled-node", sentence)
