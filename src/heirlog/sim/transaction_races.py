"""Coordinators that fail at each step of a transaction, and epochs that are used up.

    transactions        again and again a step of some transaction is waited for, and then something happens to a broker
    late-coordinators   the same with one kind of fault: what the coordinator sends arrives late
    late-verifications  answers of coordinators to leaders of partitions arrive seconds late
    zombie-copiers      no faults: members of a group sleep inside transactions while the group rebalances
    late-markers        markers arrive once more, seconds later, from the same coordinator
    zombie-markers      a coordinator is killed, and its markers arrive seconds later
    lost-markers        the leader of a partition fails before a marker has left it
    used-up-ids         a coordinator is killed when it has decided which producer id follows a used-up one
    expiring-ids        a coordinator fails while it deletes ids that were not used for a moment
    forgotten-epochs    all brokers lose power when a producer has an epoch that no disk has, and records that each has
    two-phase-commit    as `transactions`, and one producer has no time limit: its transactions end by its own hand only
    overtaken-offsets   brokers are killed while offsets are committed plainly, and earlier ones in transactions
    cleaned-transactions
                        brokers are killed while a compacted topic is written in transactions, and one gets a new disk

    init, add, prepare, complete    the record is in the coordinator's log, and not below the high watermark yet
    expire                          the same with tombstones
    markers                         the outcome is committed, and some partition has no marker yet
    load                            a coordinator is reading its log

The broker is the coordinator, or at the step `markers` the leader of a partition. What happens to it is in
`coordinator_hits`; if what it sends arrives late at the step `prepare`, it is replaced meanwhile.
Clients are those of every swarm with transactions (`heirlog.sim.transactional_load`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from heirlog.broker.partition import ReplicaRole
from heirlog.broker.transactions.records import read_record
from heirlog.broker.transactions.state import NO_PRODUCER_ID, TransactionState
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.node.node import Node
from heirlog.protocol.messages import AddPartitionsToTxnRequest, WriteTxnMarkersRequest
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION
from heirlog.sim.coordinator_hits import ACTIONS, LATE, STEP_LIMIT_MS, play_rounds, uncommitted_records
from heirlog.sim.loose_transport import LooseTransport
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import drawn_transaction_version, let_ids_expire
from heirlog.sim.topics import TRANSACTIONAL

ROUNDS, LATE_ROUNDS = 4, 6
INIT, ADD, PREPARE, COMPLETE, MARKERS, LOAD = "init", "add", "prepare", "complete", "markers", "load"
EXPIRE = "expire"
EXPIRING_STEPS, EXPIRING_ROUNDS = (EXPIRE, EXPIRE, INIT, ADD), 6
STEPS = (INIT, ADD, PREPARE, COMPLETE, MARKERS, LOAD)
ZOMBIES_MS = 15_000
LATE_MARKERS_MS, MARKERS_KEPT, REQUEST_TIMEOUT_MS = 20_000, 0.15, 1500
ZOMBIE_MARKERS_LATE_MS = (2500, 5000)
USED_UP_LIMIT_MS, SUCCESSORS = 12_000, 2
RESTARTS = 8
POWER_CUTS, WRITTEN_BACK_MS = 4, 20
EXPIRING_PRODUCERS = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "300"}
TWO_PHASE_COMMIT = {"unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": "true"}
LATE_STEPS = (ADD, PREPARE)
LATE_VERIFICATIONS_MS, VERIFICATIONS_LATE, VERIFICATION_LATE_US = 20_000, 0.1, (2_500_000, 7_000_000)
HIT_AT = "transaction.hit-at-"
"""Counters: something happened at this step."""
_STEP_OF = {
    TransactionState.EMPTY: INIT,
    TransactionState.ONGOING: ADD,
    TransactionState.PREPARE_COMMIT: PREPARE,
    TransactionState.PREPARE_ABORT: PREPARE,
    TransactionState.COMPLETE_COMMIT: COMPLETE,
    TransactionState.COMPLETE_ABORT: COMPLETE,
    TransactionState.DEAD: EXPIRE,
}


def transactions_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=2,
        min_isr=2,
        idempotent=False,
        leader_acks=False,
        batch_records=5,
        interval_ms=400,
        transactions=True,
        used_up_epochs=not random.randrange(0, 3),
        recreated=not random.randrange(0, 3),
        transaction_version_changes=not random.randrange(0, 3),
        late_repeats=not random.randrange(0, 2),
        transaction_version=drawn_transaction_version(random),
    )


def late_coordinators_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    plan.drowsy, plan.used_up_epochs, plan.transaction_version_changes = True, False, False
    plan.transaction_version = 0
    return plan


def late_markers_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    plan.drowsy, plan.only_version_2, plan.transaction_version = True, True, EPOCH_PER_TRANSACTION
    plan.transaction_version_changes, plan.recreated, plan.used_up_epochs = False, False, False
    plan.config = {"request.timeout.ms": str(REQUEST_TIMEOUT_MS)}
    return plan


def zombie_markers_plan(random: Random) -> RunPlan:
    plan = late_coordinators_plan(random)
    plan.recreated = False
    return plan


def used_up_ids_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    plan.used_up_epochs, plan.only_version_2, plan.transaction_version = True, True, EPOCH_PER_TRANSACTION
    plan.transaction_version_changes, plan.recreated = False, False
    return plan


def forgotten_epochs_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    plan.transaction_version, plan.transaction_version_changes, plan.used_up_epochs = 0, False, False
    plan.recreated, plan.late_repeats = False, False
    return plan


def overtaken_offsets_plan(random: Random) -> RunPlan:
    plan = late_coordinators_plan(random)
    plan.drowsy, plan.recreated, plan.overtaken_offsets = False, False, True
    return plan


def cleaned_transactions_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    plan.recreated, plan.cleaned_transactions = False, True
    return plan


def two_phase_commit_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    plan.two_phase_commit, plan.config = True, TWO_PHASE_COMMIT
    return plan


def expiring_ids_plan(random: Random) -> RunPlan:
    plan = transactions_plan(random)
    let_ids_expire(plan)
    # no producer without transactions: a batch that it repeats for longer than that is written twice, as on Kafka
    plan.recreated = False
    plan.config = {**plan.config, **EXPIRING_PRODUCERS}
    return plan


def expiring_ids(simulation: Simulation) -> None:
    _play(simulation, EXPIRING_STEPS, ACTIONS, EXPIRING_ROUNDS)


def transactions(simulation: Simulation) -> None:
    _play(simulation, STEPS, ACTIONS, ROUNDS)


def late_coordinators(simulation: Simulation) -> None:
    _play(simulation, LATE_STEPS, (LATE,), LATE_ROUNDS)


def late_verifications(simulation: Simulation) -> None:
    """No faults but these: the producer may have given up and ended its transaction before the answer comes."""
    cluster = simulation.cluster
    chance = cluster.world.stream("late-verifications")
    counters = simulation.world.counters

    def delay_us(request: Any) -> int:
        is_of_leader = isinstance(request, AddPartitionsToTxnRequest) and request.transactions
        if not is_of_leader or chance.random() >= VERIFICATIONS_LATE:
            return 0
        counters["transaction.late-verifications"] += 1
        return chance.randrange(*VERIFICATION_LATE_US)

    cluster.network.answer_delay_us = delay_us
    cluster.run_for(LATE_VERIFICATIONS_MS)
    cluster.network.answer_delay_us = None


def zombie_copiers(simulation: Simulation) -> None:
    simulation.cluster.run_for(ZOMBIES_MS)


def late_markers(simulation: Simulation) -> None:
    """No faults but these: see `heirlog.sim.loose_transport`."""
    cluster = simulation.cluster
    late_ms = (REQUEST_TIMEOUT_MS, 3 * REQUEST_TIMEOUT_MS)
    loose = LooseTransport(
        cluster.world.stream("late-markers"), MARKERS_KEPT, only=(WriteTxnMarkersRequest,), late_ms=late_ms
    )
    cluster.network.loose = loose
    cluster.run_for(LATE_MARKERS_MS)
    cluster.network.loose = None
    simulation.world.counters["transaction.late-markers"] += loose.late_requests


def zombie_markers(simulation: Simulation) -> None:
    """Clients of version 0: only the coordinator's epoch tells the markers of two transactions of an epoch apart."""
    cluster, random = simulation.cluster, simulation.random
    loose = LooseTransport(
        cluster.world.stream("zombie-markers"), 0.0, only=(WriteTxnMarkersRequest,), late_ms=ZOMBIE_MARKERS_LATE_MS
    )
    cluster.network.loose = loose
    for _ in range(ROUNDS):
        cluster.run_for(random.randrange(500, 2000))
        kept = loose.late_requests
        loose.share = 1.0
        cluster.run_until(lambda kept=kept: loose.late_requests > kept, STEP_LIMIT_MS)  # type: ignore[misc]
        loose.share = 0.0
        if loose.late_requests > kept:
            _kill_and_start(simulation, loose.late_from, random.randrange(500, 1500))
            cluster.run_for(ZOMBIE_MARKERS_LATE_MS[1])
    cluster.network.loose = None
    simulation.world.counters["transaction.zombie-markers"] += loose.late_requests


def lost_markers(simulation: Simulation) -> None:
    """The high watermark has reached other records before the marker, and the marker is on no other replica."""
    cluster, random = simulation.cluster, simulation.random
    for _ in range(ROUNDS):
        cluster.run_for(random.randrange(300, 1500))
        seen: dict[tuple[str, int, int], int] = {}
        found: list[str] = []

        def is_there(seen: dict[tuple[str, int, int], int] = seen, found: list[str] = found) -> bool:
            found[:] = _with_marker_on_its_way(simulation, seen)
            return bool(found)

        if cluster.run_until(is_there, STEP_LIMIT_MS):
            simulation.world.counters[HIT_AT + "marker"] += 1
            _kill_and_start(simulation, found[0], random.randrange(500, 3000))


def _with_marker_on_its_way(simulation: Simulation, seen: dict[tuple[str, int, int], int]) -> list[str]:
    """Leaders whose high watermark has moved, and not beyond a marker that was in the log already. seen: per broker,
    partition and marker, the high watermark when it was found first.
    """
    found = []
    for machine, node in simulation.checker.oracle.running_brokers():
        for partition in node.broker.replicas.partitions_named(TRANSACTIONAL).values():
            if partition.role is not ReplicaRole.LEADER or not partition.knows_its_end:
                continue
            watermark, where = partition.high_watermark, (machine.name, partition.index)
            for one in partition.log.producers.transactions._unreplicated:
                seen.setdefault((*where, one.last_offset), watermark)
            # the log may have forgotten the transaction meanwhile: without guard 31 it does
            if any(
                before < watermark <= marker for (name, index, marker), before in seen.items() if (name, index) == where
            ):
                found.append(machine.name)
    return found


def used_up_ids(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    for _ in range(SUCCESSORS):
        if cluster.run_until(lambda: bool(_with_successor(simulation)), USED_UP_LIMIT_MS):
            simulation.world.counters[HIT_AT + "successor"] += 1
            _kill_and_start(simulation, _with_successor(simulation)[0], random.randrange(500, 1500))
            cluster.run_for(random.randrange(300, 1500))


def _with_successor(simulation: Simulation) -> list[str]:
    """Coordinators of a decided transaction whose producer id is used up."""
    return [
        machine.name
        for machine, node in simulation.checker.oracle.running_brokers()
        for shard in node.broker.transactions.shards()
        if any(each.state.is_prepared and each.next_producer_id != NO_PRODUCER_ID for each in shard.all())
    ]


def forgotten_epochs(simulation: Simulation) -> None:
    """The page cache writes back what it likes: the records of the producer, and not the states of its id."""
    cluster, random = simulation.cluster, simulation.random
    for name in cluster.broker_names:
        cluster.machines.disk(name).keeps_least = True
    for _ in range(POWER_CUTS):
        _run_beyond_init(simulation)
        _write_back(simulation, TRANSACTIONAL, TRANSACTIONS_TOPIC)
        if _run_beyond_init(simulation):
            simulation.world.counters[HIT_AT + "forgotten"] += 1
        _write_back(simulation, TRANSACTIONAL)
        names = list(cluster.broker_names)
        for name in names:
            cluster.kill(name, lose_unflushed=True)
        random.shuffle(names)
        for name in names:
            cluster.run_for(random.randrange(0, 1000))
            cluster.start(name)


def _run_beyond_init(simulation: Simulation) -> bool:
    """A producer gets an epoch, and begins to write. False: none asked for one in time."""
    was_there = simulation.cluster.run_until(lambda: bool(_at(simulation, INIT)), STEP_LIMIT_MS)
    simulation.cluster.run_for(simulation.random.randrange(50, 800))
    return was_there


def _write_back(simulation: Simulation, *topics: str) -> None:
    for _, node in simulation.checker.oracle.running_brokers():
        for topic in topics:
            for partition in node.broker.replicas.partitions_named(topic).values():
                partition.log.flush(lambda error: None)
    simulation.cluster.run_for(WRITTEN_BACK_MS)


def _kill_and_start(simulation: Simulation, name: str, down_ms: int) -> None:
    simulation.cluster.kill(name)
    simulation.cluster.run_for(down_ms)
    simulation.cluster.start(name)


def restarts(simulation: Simulation) -> None:
    """One broker after the other is killed, and soon returns."""
    cluster, random = simulation.cluster, simulation.random
    for _ in range(RESTARTS):
        cluster.run_for(random.randrange(800, 2500))
        name = cluster.broker_names[random.randrange(0, len(cluster.broker_names))]
        _kill_and_start(simulation, name, random.randrange(50, 600))


def cleaned_transactions(simulation: Simulation) -> None:
    """In the end a broker gets a new disk, and copies what cleaning has left of the transactions."""
    restarts(simulation)
    cluster, random = simulation.cluster, simulation.random
    name = cluster.broker_names[random.randrange(0, len(cluster.broker_names))]
    cluster.kill(name)
    cluster.run_for(1000)
    simulation.replace_disk(name)
    cluster.start(name)
    cluster.run_for(5000)


def _play(simulation: Simulation, steps: Sequence[str], actions: Sequence[str], rounds: int) -> None:
    simulation.cluster.run_for(simulation.random.randrange(500, 2000))
    play_rounds(
        simulation, rounds, steps, lambda step: _at(simulation, step), HIT_AT, actions=actions, replaced_at=PREPARE
    )


def _at(simulation: Simulation, step: str) -> list[str]:
    """The brokers at which this step is in progress."""
    found = []
    for machine, node in simulation.checker.oracle.running_brokers():
        if step == LOAD:
            is_there = any(not shard.loaded for shard in node.broker.transactions.shards())
        elif step == MARKERS:
            is_there = any(
                transaction.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
                for shard in node.broker.transactions.shards()
                for transaction in shard.all()
            )
        else:
            is_there = any(_STEP_OF[state] == step for state in _uncommitted(node))
        if is_there:
            found.append(machine.name)
    if step == MARKERS and found:
        image = simulation.checker.committed.image
        topic_id = image.topic_ids[TRANSACTIONAL]
        found += [f"broker-{state.leader}" for state in image.partitions[topic_id].values() if state.has_leader]
    return found


def _uncommitted(node: Node) -> Iterator[TransactionState]:
    """States in records that a coordinator has written, and that are not committed; DEAD for a tombstone."""
    for record in uncommitted_records(node, TRANSACTIONS_TOPIC):
        stored = read_record(record.key, record.value)
        if stored is not None:
            known = stored.transaction
            yield TransactionState.DEAD if known is None else known.state
