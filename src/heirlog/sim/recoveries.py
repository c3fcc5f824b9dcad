"""Unclean recovery as scripts: what is lost in which order, and what has to come of it.

Each begins with a topic whose last two members lose, or seem to lose, what they had (`heirlog.sim.script`). That a
recovery never picks a replica with less than another one that could be asked, and that its record never tells of less
than it gives up, is judged at every election of every run (`heirlog.sim.oracle`); a script adds what it alone knows.

    U1   the newest leader epoch wins, not the longest log     U9   a change of strategy takes effect at once
    U2   Balanced waits for every LastKnownELR member          U10  a designation that cannot be is refused
    U3   an answer dies with the incarnation that gave it      U11  the longer log wins over the last leader
    U4   a fenced ELR member: Balanced waits                   U13  answers that come late, twice, out of order;
                                                                   -old-leader: from under a former leader
    U5   the controller dies at every step                     U14  equals: the order of the assignment
    U6   a clean candidate ends a recovery                     U15  many partitions at once
    U7   a topic made again is another one                     U16  the loss report says what was given up
    U8   the assignment changes in between                     U18  a damaged clean-shutdown file is none

U17 (readers are told of what was given up) is judged in every run: poll-skip, `heirlog.sim.history`.

Source: KIP-966, "Unclean recovery"; docs/simulation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from heirlog.metadata.basis import Basis
from heirlog.metadata.state import PartitionState
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from heirlog.protocol.messages.delete_topics import DeleteTopicsRequest
from heirlog.protocol.messages.get_replica_log_info import GetReplicaLogInfoRequest
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import (
    AGGRESSIVE,
    BALANCED,
    DESIGNATION,
    NONE,
    STRATEGY,
    TopicMaker,
    topic_config,
)
from heirlog.sim.disk import SimFiles
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.stage import TOPIC, Plan, Stage

MANY = 40
"""Partitions of U15; `make bench` has ten thousand on real processes."""
NOT_A_BROKER = 77


def plan(random: Random, *, strategy: str = BALANCED, partitions: int = 1, tail: bool = False) -> Plan:
    """tail: something writes with acks=1, too: logs get ends that nobody has acknowledged."""
    return Plan(
        partitions=partitions,
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=tail,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(60, 200),
        manager=True,
        topic_config={STRATEGY: strategy},
    )


def _balanced(random: Random) -> Plan:
    return plan(random)


def _keeps(random: Random) -> Plan:
    """Kills alone lose nothing, and of what a power cut takes another replica has a copy."""
    made = plan(random)
    made.keeps_everything = True
    return made


def _keeps_with_a_tail(random: Random) -> Plan:
    made = plan(random, tail=True)
    made.keeps_everything = True
    return made


def _by_kafkas_rule(random: Random) -> Plan:
    """The manager off: whoever led last leads again, with what it has."""
    made = plan(random)
    made.manager, made.topic_config = False, {}
    return made


def _aggressive(random: Random) -> Plan:
    return plan(random, strategy=AGGRESSIVE)


def _none(random: Random) -> Plan:
    return plan(random, strategy=NONE)


def _either(random: Random) -> Plan:
    return plan(random, strategy=(BALANCED, AGGRESSIVE)[random.randrange(0, 2)], tail=True)


def _return_lost(script: Script, first: BrokerId, second: BrokerId) -> None:
    """c and `first` return, `first` uncleanly; it goes again before `second` comes: Balanced has to wait for it."""
    script.up(script.c, first)
    script.until_registered(script.c)
    script.until_registered(first)
    script.down(first, KILL)
    script.up(second)
    script.until_registered(second)


def _u1(stage: Stage) -> None:
    script = Script(stage, "U1")
    script.run_for(800, 2000)
    script.roles()
    a, b, c = script.a, script.b, script.c
    script.down(b, STOP)
    script.until("b left the ISR", lambda: b not in script.state.isr)
    script.down(c, STOP)
    script.until("a is alone", lambda: script.state.isr == (a,))
    script.run_for(2000, 4000)  # a long tail that nobody acknowledged with acks=all
    script.down(a, KILL)
    script.up(c, b)
    script.until("b and c are in the ISR", lambda: set(script.state.isr) == {b, c})
    newer, before = script.state.leader_epoch, len(stage.history.acknowledged)
    script.until("something is acknowledged", lambda: len(stage.history.acknowledged) > before)
    script.run_for(0, 400)
    for broker in (b, c):
        script.down(broker, KILL)
    script.until("nobody leads", lambda: not script.state.has_leader)
    script.up(a)
    script.run_for(0, 1500)
    script.up(b, c)
    script.until_led()
    script.expect(script.state.leader in (b, c), f"b or c leads, which have records of epoch {newer}, not {a}")


def _u2(stage: Stage) -> None:
    script = Script(stage, "U2")
    script.lose(b_by=KILL, a_by=KILL)
    _return_lost(script, script.b, script.a)
    script.stays_leaderless(3000)
    told = script.recovery()
    script.expect(list(told.waits_for) == [script.b], f"it waits for broker {script.b} alone: {told!r}")
    script.up(script.b)
    script.until_led()


def _u3(stage: Stage) -> None:
    script = Script(stage, "U3")
    script.lose(b_by=KILL, a_by=KILL)
    a, b = script.a, script.b
    _return_lost(script, b, a)

    def has_answered() -> bool:
        return any(replica.broker_id == a and replica.is_valid for replica in script.recovery().replicas)

    script.until("a has answered", has_answered)
    script.down(a, POWER_CUT)
    script.run_for(0, 300)
    script.up(*((a, b), (b, a))[script.random.randrange(0, 2)])
    script.until_led()


def _u4(stage: Stage) -> None:
    script = Script(stage, "U4")
    script.lose(b_by=STOP, a_by=(KILL, POWER_CUT)[script.random.randrange(0, 2)])
    script.up(script.c)
    script.until_registered(script.c)
    if stage.plan.topic_config[STRATEGY] == BALANCED:
        script.stays_leaderless(4000)
        script.up(script.b)
        script.until_led()
        script.expect(script.state.leader == script.b, f"broker {script.b} leads, which stopped cleanly")
        script.expect(script.lossy_elections == 0, "no election was lossy")
    else:
        script.until_led()
        script.expect(script.state.leader == script.c, f"broker {script.c} leads, the only one there")
        script.expect(_basis(script) is Basis.RECOVERED, "it was recovered")


def _u5(stage: Stage) -> None:
    """The controller is killed after its n-th event since the last of whom the recovery waits for was started."""
    script = Script(stage, "U5")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c, script.b)
    script.until_registered(script.b)
    script.up(script.a)
    for _ in range(script.random.randrange(1, 4)):
        _controller_dies_after(script, script.random.randrange(0, 120))
    script.until_led()


def _controller_dies_after(script: Script, events: int) -> None:
    controller = script.cluster.controller.name
    left = events

    def seen(node: str) -> None:
        nonlocal left
        left -= node == controller

    world = script.stage.world
    before = world.events_run
    while left > 0 and world.events_run - before < 20 * events + 2000:
        if not world.step(world.now_us + 5_000_000):
            break
        seen(world.last_events[-1][1])
    script.cluster.kill(controller, lose_unflushed=bool(script.random.randrange(0, 2)))
    script.run_for(0, 800)
    script.cluster.start(controller)


def _u6(stage: Stage) -> None:
    script = Script(stage, "U6")
    script.lose(b_by=STOP, a_by=KILL)
    script.up(script.c)
    script.until_registered(script.c)
    script.until("c is asked", lambda: script.recovery().state == "Recovering")
    # well within the window in which Aggressive waits for others
    script.run_for(0, 2000)
    script.up(script.b)
    script.until_led()
    script.expect(script.state.leader == script.b, f"broker {script.b} leads, which stopped cleanly")
    script.expect(script.lossy_elections == 0, "the election of a clean candidate is not counted as lossy")


def _u7(stage: Stage) -> None:
    script = Script(stage, "U7")
    script.lose(b_by=KILL, a_by=KILL)
    _return_lost(script, script.b, script.a)
    old = script.states()[0][0][0]
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=1000)
    script.ask(request)
    assignment = {TOPIC: [[int(script.a), int(script.c)]]}
    maker = stage.cluster.run_client(
        "maker", lambda env: TopicMaker(env, "maker", stage.cluster.bootstrap, assignment, {})
    )
    script.until("the topic is made again", lambda: maker.done)
    script.until_led()
    script.up(script.b)
    script.run_for(2000, 4000)
    script.expect(script.states()[0][0][0] != old, "the topic is another one")
    script.expect(script.lossy_elections == 0, "the old recovery elects nobody")
    script.expect(script.recovery().state == "Led", "nothing is recovered")


def _u8(stage: Stage) -> None:
    """An assignment without the one who would win is asked for while the last answers are on their way."""
    script = Script(stage, "U8")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c, script.b)
    script.until_registered(script.b)
    script.up(script.a)
    script.until_registered(script.a)
    script.run_for(0, 30)
    targets = [int(script.a), int(script.c)]
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=targets)
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name=TOPIC, partitions=[partition])
    script.ask(AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=1000))
    script.until_led()
    script.until("the assignment is the new one", lambda: sorted(script.state.replicas) == sorted(targets))


def _u9(stage: Stage) -> None:
    script = Script(stage, "U9")
    script.lose(b_by=KILL, a_by=KILL)
    _return_lost(script, script.b, script.a)
    script.stays_leaderless(1000)
    script.ask(topic_config(TOPIC, STRATEGY, NONE))
    script.up(script.b)
    script.until_registered(script.b)
    script.stays_leaderless(3000)
    script.expect(script.recovery().state == "ManualElectionRequired", "None leaves it to an operator")
    script.ask(topic_config(TOPIC, STRATEGY, AGGRESSIVE))
    script.until_led()


def _u10(stage: Stage) -> None:
    script = Script(stage, "U10")
    script.lose(b_by=KILL, a_by=KILL)
    script.up(script.c)
    script.until_registered(script.c)
    before = script.state
    for desired, code in (
        (NOT_A_BROKER, ErrorCode.INVALID_REQUEST),
        (int(script.a), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        told = script.elect(DESIGNATION, desired)
        script.expect(told == code, f"designating {desired} is {code.name}, not {told}")
    script.expect(script.state == before, "nothing has changed")
    stage.checker.bystander.operator_elects = True
    told = script.elect(DESIGNATION, int(script.c))
    script.expect(told == ErrorCode.NONE, f"designating {script.c} works: {told}")
    script.until("c leads", lambda: script.state.leader == script.c)
    script.expect(_basis(script) is Basis.DESIGNATED, "it was designated")
    told = script.elect(DESIGNATION, int(script.c))
    script.expect(told == ErrorCode.ELECTION_NOT_NEEDED, f"a leader is there: {told}")


def _u11(stage: Stage) -> None:
    script = Script(stage, "U11")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c)
    script.until_registered(script.c)
    script.stays_leaderless(500)
    script.up(script.b)
    script.until_registered(script.b)
    script.stays_leaderless(500)
    script.up(script.a)
    script.until_led()


def _u13(stage: Stage) -> None:
    script = Script(stage, "U13")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    names = [machine.name for machine in script.cluster.all_machines]
    controller = script.cluster.controller.name
    for name in names:
        if name != controller:
            for link in (script.cluster.network.link(name, controller), script.cluster.network.link(controller, name)):
                link.reset, link.loss = 0.02, 0.01
                link.span_us = script.random.randrange(1000, 400_000)
    brokers = [script.a, script.b, script.c]
    script.random.shuffle(brokers)
    for broker in brokers:
        script.up(broker)
        script.run_for(0, 1500)
    script.run_for(2000, 6000)
    for name in names:
        for other in names:
            if name != other:
                link = script.cluster.network.link(name, other)
                link.reset = link.loss = 0.0
                link.span_us = script.cluster.network.span_us
    script.until_led()


def _under_an_old_leader(random: Random) -> Plan:
    """With a min ISR of one, whoever falls behind is neither in the ISR nor in the ELR."""
    made = plan(random, strategy=AGGRESSIVE, tail=True)
    made.min_isr, made.interval_ms = 1, random.randrange(30, 80)
    return made


def _old_leader(stage: Stage) -> None:
    """b still follows a leader that the controller has given up, and is slow to hear of it; it is asked meanwhile."""
    script = Script(stage, "U13-old-leader")
    network, controller = script.cluster.network, script.cluster.controller.name
    script.run_for(800, 2500)
    script.roles()
    a, b = f"broker-{script.a}", f"broker-{script.b}"
    script.down(script.c, STOP)
    script.cluster.say(f"partition {b}>{a}")
    script.cluster.block(b, a)
    script.until("a is alone", lambda: script.state.isr == (script.a,))
    script.cluster.say(f"partition {a}>{controller} {controller}>{a}")
    script.cluster.block(a, controller)
    script.cluster.block(controller, a)
    script.cluster.heal(b, a)
    script.cluster.say(f"slow {controller}>{b}")
    network.link(controller, b).span_us = 1_500_000
    script.until("nobody leads", lambda: not script.state.has_leader)
    script.until_led()
    network.link(controller, b).span_us = network.span_us
    script.cluster.heal(a, controller)
    script.cluster.heal(controller, a)


def _u14(stage: Stage) -> None:
    script = Script(stage, "U14")
    script.run_for(800, 2000)
    for producer in stage.producers:
        producer.stop()
    script.run_for(3000, 4000)  # every replica has everything
    brokers = list(script.state.replicas)
    script.random.shuffle(brokers)
    for broker in brokers:
        script.down(broker, KILL)
    script.until("nobody leads", lambda: not script.state.has_leader)
    script.random.shuffle(brokers)
    script.up(*brokers)
    script.until_led()
    election = script.state.basis
    assert election is not None
    first = next(answer.broker for answer in election.replicas if answer.answered)
    script.expect(script.state.leader == first, f"broker {first} leads, the first in the assignment: {election}")


def _many(random: Random) -> Plan:
    made = plan(random, partitions=MANY)
    made.idempotent, made.batch_records, made.interval_ms = False, 2, 1500
    return made


def _u15(stage: Stage) -> None:
    script = Script(stage, "U15")
    script.run_for(2000, 3000)
    brokers = [BrokerId(1), BrokerId(2), BrokerId(3)]
    for broker in brokers:
        script.down(broker, KILL)
    script.until("nobody leads", lambda: not any(state.has_leader for _, state in script.states()))
    script.up(*brokers[:2])
    for broker in brokers[:2]:
        script.until_registered(broker)
    asked = script.cluster.network.sent[GetReplicaLogInfoRequest]
    script.up(brokers[2])
    script.until_registered(brokers[2])
    script.until("every partition is led", lambda: all(state.has_leader for _, state in script.states()), 2000)
    asked = script.cluster.network.sent[GetReplicaLogInfoRequest] - asked
    script.expect(asked <= 3 * len(brokers), f"requests are merged: {asked} were sent for {MANY} partitions")


def _u16(stage: Stage) -> None:
    """Everybody answers, and the operator takes the one with the least: the record tells exactly what is given up."""
    script = Script(stage, "U16")
    script.lose(b_by=KILL, a_by=(KILL, POWER_CUT)[script.random.randrange(0, 2)])
    script.up(script.a, script.b, script.c)
    for broker in (script.a, script.b, script.c):
        script.until_registered(broker)
    script.run_for(500, 1500)
    stage.checker.bystander.operator_elects = True
    script.until("c is designated", lambda: script.elect(DESIGNATION, int(script.c)) == ErrorCode.NONE)
    # the report is written by whoever leads its topic: neither of these may keep it from being written, or double it
    if script.random.randrange(0, 2):
        _controller_dies_after(script, script.random.randrange(0, 60))
    if script.random.randrange(0, 2):
        script.run_for(0, 200)
        script.down(script.c, KILL)
        script.run_for(0, 2000)
        script.up(script.c)
    script.run_for(0, 2000)


def _damaged(random: Random) -> Plan:
    made = plan(random)
    made.config = {"log.dirs": "/data/a,/data/b"}
    return made


CLEAN_FILE = ".kafka_cleanshutdown"


def _u18(stage: Stage) -> None:
    script = Script(stage, "U18")
    script.lose(b_by=STOP, a_by=KILL)
    _damage(script, f"broker-{script.b}")
    script.up(script.b, script.c)
    script.until_registered(script.b)
    script.expect(script.state.elr == (script.a,), f"b left the ELR, {script.state}")
    script.stays_leaderless(1500)
    script.up(script.a)
    script.until_led()


def _damage(script: Script, name: str) -> None:
    """The clean-shutdown file of one directory, while the broker is down."""
    machines = script.cluster.machines
    env = machines.boot(name)
    files: SimFiles = env.files
    path = f"{('/data/a', '/data/b')[script.random.randrange(0, 2)]}/{CLEAN_FILE}"
    file = files.open(path)
    content = file.pread(file.size, 0)
    files.unlink(path)
    how, damaged = DAMAGES[script.random.randrange(0, len(DAMAGES))]
    script.cluster.say(f"{path} of {name}: {how}")
    if damaged is not None:
        files.open(path, create=True).append(damaged(content))
    machines.kill(name)
    machines.disk(name).settle()


DAMAGES: tuple[tuple[str, Callable[[bytes], bytes] | None], ...] = (
    ("missing", None),
    ("torn", lambda content: content[: len(content) // 2]),
    ("empty", lambda content: b""),
    ("old epoch", lambda content: b'{"version":0,"brokerEpoch":1}'),
    ("no epoch", lambda content: b'{"version":0,"brokerEpoch":-1}'),
    ("wrong type", lambda content: b'{"version":0,"brokerEpoch":[1]}'),
    ("not JSON", lambda content: b"clean"),
)


def _basis(script: Script) -> Basis | None:
    state: PartitionState = script.state
    return None if state.basis is None else state.basis.basis


RECOVERIES: Mapping[str, tuple[Callable[[Random], Plan], Callable[[Stage], None]]] = {
    "U1": (_keeps_with_a_tail, _u1),
    "U2": (_keeps, _u2),
    "U3": (_keeps_with_a_tail, _u3),
    "U4": (_either, _u4),
    "U5": (_keeps, _u5),
    "U6": (_aggressive, _u6),
    "U7": (_balanced, _u7),
    "U8": (_keeps, _u8),
    "U9": (_balanced, _u9),
    "U10": (_none, _u10),
    "U11": (_keeps, _u11),
    "U11-manager-off": (_by_kafkas_rule, _u11),
    "U13": (_either, _u13),
    "U13-old-leader": (_under_an_old_leader, _old_leader),
    "U14": (_keeps, _u14),
    "U15": (_many, _u15),
    "U16": (_none, _u16),
    "U18": (_damaged, _u18),
}
