"""Swarms: each seed draws its own cluster, its own clients and its own mix of faults.

swarm            a mix of everything in `heirlog.sim.nemesis`
moves            a swarm while replicas are reassigned, and disks replaced
feature-levels   a swarm while the ELR is switched off and on, in half of the runs the recovery manager too, and
                 metadata.version goes up and down
outages          a swarm with faults of the whole cluster and starts that fail (`heirlog.sim.cluster_nemesis`); racks,
                 in which new topics are placed; files that differ from node to node; one seed in twenty has hundreds
                 of partitions
loose-transport  a swarm in which messages arrive after their connections have closed (`heirlog.sim.loose_transport`)
controllers      a swarm with three or five controllers, and faults of their own (`heirlog.sim.controller_nemesis`)

The others have three or five controllers, too. All have three to seven brokers, in most seeds three; some have racks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from heirlog.controller.recovery.strategy import TIMEOUT
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.sim import controller_nemesis
from heirlog.sim.clients.admin import AGGRESSIVE, BALANCED, NONE, STRATEGY
from heirlog.sim.clients.reassigner import Reassigner
from heirlog.sim.cluster import RECOVERY_MANAGER
from heirlog.sim.cluster_nemesis import KINDS, ClusterNemesis
from heirlog.sim.controller_nemesis import ControllerNemesis
from heirlog.sim.loose_transport import LooseTransport
from heirlog.sim.nemesis import FaultMix, Nemesis, draw_mix
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation

SWARM_MS = 20_000
OUTAGES_MS = 40_000
MOVES_MS = 2000
"""Between two moments at which a disk may be replaced."""
REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"
MANY_MIN, MANY_MAX = 120, 240
VOTERS = (3, 3, 5, 3, 3, 5)
"""Controllers of a swarm: three in two of three runs. A run of three takes 1.5 times as long as one of a single
controller, a run of five 2.2 times. One controller is played by scripts, and by `--controllers 1`."""
TRANSACTIONS_IN = 3
"""One run of so many has transactions."""
EXPIRING_IN = 3
"""One run of so many that have transactions lets their ids expire."""
EXPIRING_IDS = {
    "transactional.id.expiration.ms": "400",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}
AUTO_JOIN = "controller.quorum.auto.join.enable"
BROKERS = (3, 3, 3, 3, 3, 3, 3, 4, 5, 7)
"""Brokers of a swarm, if the swarm draws no others. A run of seven takes 1.6 times as long as one of three."""
FACTORS = (3, 3, 3, 3, 3, 3, 2, 4, 5)
"""Replication factors; never more than there are brokers."""
RACKS = ("a", "b", "c")
NO_OP_INTERVAL = "metadata.max.idle.interval.ms"
NO_OP_MS = (500, 2000, 2000, 4000)
BUSY_IN = 4
"""In one of so many lighter runs clients write as often as in the others."""
HIGH_WATERMARKS_INTERVAL = "replica.high.watermark.checkpoint.interval.ms"
FETCH_WAIT = "replica.fetch.wait.max.ms"
SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots"
SHORT_METADATA_LOG = {"metadata.max.retention.bytes": "1", "metadata.log.segment.ms": "2000"}
"""One snapshot is kept, and the log after it."""
OUTAGES_OF_MANY_MS = 10_000
"""With more partitions, each event takes longer to check."""
OTHER_CONFIGS = (
    {RECOVERY_MANAGER: "false"},
    {RECOVERY_MANAGER: "true"},
    {STRATEGY: AGGRESSIVE},
    {STRATEGY: NONE},
    {"min.insync.replicas": "1"},
    {"unclean.leader.election.enable": "true"},
)
"""Values in the configuration file of one broker that differ from those of the others."""


def swarm_plan(random: Random) -> RunPlan:
    plan = RunPlan(
        partitions=random.randrange(1, 4),
        min_isr=(1, 2, 2, 2, 3)[random.randrange(0, 5)],
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=bool(random.randrange(0, 2)),
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(100, 300),
        members=(0, 2, 3)[random.randrange(0, 3)],
        compacted=not random.randrange(0, 2),
        recreated=not random.randrange(0, 3),
        min_isr_changes=not random.randrange(0, 3),
    )
    _draw_recovery(plan, random)
    return plan


def _draw_recovery(plan: RunPlan, random: Random) -> None:
    """Three of four runs have the recovery manager; draws the topic's strategy and the time limit of recoveries."""
    plan.manager = bool(random.randrange(0, 4))
    if not plan.manager:
        return
    drawn = random.randrange(0, 8)
    plan.topic_config = {STRATEGY: (BALANCED, BALANCED, BALANCED, BALANCED, AGGRESSIVE, AGGRESSIVE, NONE)[drawn % 7]}
    plan.strategy_changes = drawn == 7
    plan.config = {**plan.config, TIMEOUT: str((1000, 4000, 300_000)[random.randrange(0, 3)])}


def with_nodes(plan: Callable[[Random], RunPlan]) -> Callable[[Random], RunPlan]:
    """`plan` with three or five controllers, and more brokers than three in some runs. They are drawn last, so that the
    rest of the plan does not change.
    """

    def drawn(random: Random) -> RunPlan:
        made = plan(random)
        made.controllers = VOTERS[random.randrange(0, len(VOTERS))]
        draw_snapshots(made, random)
        _draw_brokers(made, random)
        _draw_transactions(made, random)
        return made

    return drawn


def lighter(plan: Callable[[Random], RunPlan]) -> Callable[[Random], RunPlan]:
    """`plan` with less of what takes time and decides nothing: a record shares the fate of its batch, and with Kafka's
    500 ms half of what nodes fetch of the metadata log are records that change nothing. A fault hits what is on its way
    at that moment, so clients may rest longer in between, in three of four runs. Drawn last, as above.
    """

    def drawn(random: Random) -> RunPlan:
        made = plan(random)
        made.batch_records //= 2
        if random.randrange(0, BUSY_IN):
            made.interval_ms = random.randrange(300, 800)
            made.transaction_pause_ms = random.randrange(300, 1000)
        made.reader_interval_ms, made.latest_interval_ms = random.randrange(100, 300), random.randrange(700, 2000)
        made.config = {
            **made.config,
            NO_OP_INTERVAL: str(NO_OP_MS[random.randrange(0, len(NO_OP_MS))]),
            HIGH_WATERMARKS_INTERVAL: str((1000, 3000)[random.randrange(0, 2)]),
            FETCH_WAIT: str((500, 1000)[random.randrange(0, 2)]),
        }
        return made

    return drawn


def drawn_transaction_version(random: Random) -> int:
    """Mostly what a new cluster has."""
    return (2, 2, 2, 1, 0)[random.randrange(0, 5)]


def _draw_transactions(plan: RunPlan, random: Random) -> None:
    """A third of the runs has transactions. They take 1.5 times as long."""
    plan.transactions = not random.randrange(0, TRANSACTIONS_IN) and not plan.many
    plan.used_up_epochs = not random.randrange(0, 10)
    plan.transaction_version = drawn_transaction_version(random)
    plan.transaction_version_changes = plan.transactions and not random.randrange(0, 4)
    # without a draw of its own, which would change all that is drawn after it
    if plan.transactions and not plan.batch_records % EXPIRING_IN:
        let_ids_expire(plan)


def let_ids_expire(plan: RunPlan) -> None:
    plan.expiring_ids = True
    plan.config = {**plan.config, **EXPIRING_IDS}


def _draw_brokers(plan: RunPlan, random: Random) -> None:
    """Three to seven brokers, replicas of each partition, and racks in some runs."""
    brokers, factor = BROKERS[random.randrange(0, len(BROKERS))], FACTORS[random.randrange(0, len(FACTORS))]
    racks = RACKS[: random.randrange(2, 4)] if not random.randrange(0, 6) else ()
    plan.brokers = max(plan.brokers, brokers)
    plan.replication_factor = min(factor, plan.brokers)
    plan.racks = plan.racks or racks


def draw_snapshots(plan: RunPlan, random: Random) -> None:
    """In every second run the metadata log is short: nodes that return find a snapshot instead."""
    if random.randrange(0, 2):
        plan.config = {**plan.config, **SHORT_METADATA_LOG, SNAPSHOT_BYTES: str(random.randrange(200, 3000))}


def swarm(simulation: Simulation) -> None:
    random = simulation.world.stream("faults")
    with_faults(simulation, draw_mix(random), random, lambda: simulation.cluster.run_for(SWARM_MS))


def loose_transport(simulation: Simulation) -> None:
    """A swarm whose nodes' requests and registrations may be delivered after their connections have closed."""
    chance = simulation.world.stream("loose")
    loose = simulation.cluster.network.loose = LooseTransport(chance, (0.005, 0.02)[chance.randrange(0, 2)])
    swarm(simulation)
    simulation.cluster.network.loose = None
    simulation.world.counters["network.late-request"] += loose.late_requests
    simulation.world.counters["network.late-answer"] += loose.late_answers


def with_faults(simulation: Simulation, mix: FaultMix, random: Random, meanwhile: Callable[[], None]) -> None:
    """`meanwhile` runs the cluster while there are faults."""
    degrade_network(simulation, mix)
    swarm = Nemesis(simulation.cluster, mix, random)
    cluster_faults = ClusterNemesis(simulation.cluster, random, swarm)
    controller_faults = ControllerNemesis(simulation.cluster, random, swarm)
    swarm.others = {
        **dict.fromkeys(KINDS, cluster_faults.inject),
        **dict.fromkeys(controller_nemesis.KINDS, controller_faults.inject),
    }
    swarm.start()
    meanwhile()
    swarm.stop()
    cluster_faults.end()
    controller_faults.end()
    simulation.world.counters.update(cluster_faults.injected)
    restore_network(simulation)


def degrade_network(simulation: Simulation, mix: FaultMix) -> None:
    """The network loses messages and resets connections, as the mix says."""
    if not (mix.loss or mix.reset) or not simulation.cluster.numbers.happens(
        "lossy-network", f"{mix.loss} {mix.reset}"
    ):
        return
    names = simulation.cluster.all_machines
    for one in names:
        for other in names:
            if one is not other:
                link = simulation.cluster.network.link(one.name, other.name)
                link.loss, link.reset = mix.loss, mix.reset


def restore_network(simulation: Simulation) -> None:
    """The network works normally again."""
    for one in simulation.cluster.all_machines:
        for other in simulation.cluster.all_machines:
            if one is not other:
                link = simulation.cluster.network.link(one.name, other.name)
                link.loss = link.reset = 0.0


# replicas that move


def moves_plan(random: Random) -> RunPlan:
    plan = swarm_plan(random)
    plan.brokers = random.randrange(4, 6)
    return plan


def moves(simulation: Simulation) -> None:
    """A swarm while operators move replicas, and brokers that are down come back with empty disks."""
    cluster, random = simulation.cluster, simulation.random
    topics = [*simulation.topics(), *(OFFSETS_TOPIC for _ in simulation.members[:1])]
    brokers = list(range(1, simulation.plan.brokers + 1))
    reassigner = cluster.run_client("mover", lambda env: Reassigner(env, "mover", cluster.bootstrap, topics, brokers))
    replaces = not random.randrange(0, 3)

    def meanwhile() -> None:
        for _ in range(SWARM_MS // MOVES_MS):
            cluster.run_for(MOVES_MS)
            down = [name for name in cluster.broker_names if not cluster.is_up(name)]
            if replaces and down and not random.randrange(0, 3):
                simulation.replace_disk(down[random.randrange(0, len(down))])

    faults = simulation.world.stream("faults")
    with_faults(simulation, draw_mix(faults), faults, meanwhile)
    reassigner.stop()


# features that come and go


def feature_plan(random: Random) -> RunPlan:
    plan = swarm_plan(random)
    plan.feature_changes = True
    plan.metadata_changes = True
    plan.manager_changes = plan.manager and bool(random.randrange(0, 2))
    return plan


def feature_levels(simulation: Simulation) -> None:
    """A swarm. What the last member of an ISR loses while the ELR is off is Kafka's rule, and counted as that."""
    swarm(simulation)


# the whole cluster


def outages_plan(random: Random) -> RunPlan:
    plan = swarm_plan(random)
    plan.pipelined = bool(random.randrange(0, 2))
    if not random.randrange(0, 3):
        plan.brokers = random.randrange(4, 7)
        plan.racks = RACKS[: random.randrange(2, 4)]
    plan.manager_changes = plan.manager and not random.randrange(0, 4)
    if not random.randrange(0, 20):
        plan.many = random.randrange(MANY_MIN, MANY_MAX)
    plan.config = {**plan.config, REGISTRATION_TIMEOUT: str(random.randrange(1500, 6000))}
    return plan


def outages(simulation: Simulation) -> None:
    random = simulation.world.stream("faults")
    for name in simulation.cluster.broker_names:
        if not random.randrange(0, 4):
            # a value in the file of one broker must have no effect on settings of the whole cluster
            simulation.cluster.configure(name, OTHER_CONFIGS[random.randrange(0, len(OTHER_CONFIGS))])
    mix = draw_mix(random, KINDS)
    if not any(mix.weights[kind] for kind in KINDS):
        mix = replace(mix, weights={**mix.weights, KINDS[random.randrange(0, len(KINDS))]: 3})
    with_faults(
        simulation,
        mix,
        random,
        lambda: simulation.cluster.run_for(OUTAGES_OF_MANY_MS if simulation.plan.many else OUTAGES_MS),
    )


# the controllers


def controllers_plan(random: Random) -> RunPlan:
    plan = swarm_plan(random)
    plan.controllers = (3, 3, 5)[random.randrange(0, 3)]
    plan.manager_changes = plan.manager and not random.randrange(0, 4)
    draw_snapshots(plan, random)
    if not random.randrange(0, 4):
        plan.config = {**plan.config, AUTO_JOIN: "true"}
    _draw_brokers(plan, random)
    _draw_transactions(plan, random)
    return plan


def controllers(simulation: Simulation) -> None:
    random = simulation.world.stream("faults")
    mix = draw_mix(random, controller_nemesis.KINDS)
    if not any(mix.weights[kind] for kind in controller_nemesis.KINDS):
        mix = replace(mix, weights={**mix.weights, "voter-kill": 3})
    joins = AUTO_JOIN in simulation.plan.config
    operator = simulation.operate_voters(asks=not joins) if not random.randrange(0, 2) or joins else None

    def meanwhile() -> None:
        for _ in range(OUTAGES_MS // MOVES_MS):
            simulation.cluster.run_for(MOVES_MS)
            if operator is not None:
                operator.disturb()

    with_faults(simulation, mix, random, meanwhile)
