"""Events during a recovery, or before it: the controller is killed, the topic is re-created, the assignment changes,
many partitions wait at once, the clean-shutdown file is damaged, a disk is replaced.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.protocol.messages import DeleteTopicsRequest, GetReplicaLogInfoRequest
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import TopicCreator, reassignment
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.recoveries.plans import LOG_DIRS, MANY
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE

DAMAGES: tuple[tuple[str, Callable[[bytes], bytes] | None], ...] = (
    ("missing", None),
    ("torn", lambda content: content[: len(content) // 2]),
    ("empty", lambda content: b""),
    ("old epoch", lambda content: b'{"version":0,"brokerEpoch":1}'),
    ("no epoch", lambda content: b'{"version":0,"brokerEpoch":-1}'),
    ("wrong type", lambda content: b'{"version":0,"brokerEpoch":[1]}'),
    ("not JSON", lambda content: b"clean"),
)


def replaced_disk(simulation: Simulation) -> None:
    """One of the two replicas that may have the lost records comes back with an empty disk."""
    script = Script(simulation, "replaced-disk")
    is_last = bool(script.random.randrange(0, 2))
    script.lose(b_by=KILL if is_last else POWER_CUT, a_by=POWER_CUT if is_last else KILL)
    replaced = script.a if is_last else script.b
    script.cluster.replace_disk(f"broker-{replaced}")
    brokers = [script.a, script.b, script.c]
    script.random.shuffle(brokers)
    for broker in brokers:
        script.up(broker)
        script.run_for(0, 1500)
    script.until_led()
    script.expect(script.state.leader != replaced, f"broker {replaced} does not lead, which has nothing left")


def u5(simulation: Simulation) -> None:
    """The controller is killed after its n-th event since the start of the last broker that the recovery waits for."""
    script = Script(simulation, "U5")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c, script.b)
    script.until_registered(script.b)
    script.up(script.a)
    for _ in range(script.random.randrange(1, 4)):
        script.controller_dies_after(script.random.randrange(0, 120))
    script.until_led()


def u7(simulation: Simulation) -> None:
    script = Script(simulation, "U7")
    script.lose(b_by=KILL, a_by=KILL)
    script.return_lost(script.b, script.a)
    old = script.states()[0][0][0]
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=1000)
    script.ask(request)
    assignment = {TOPIC: [[int(script.a), int(script.c)]]}
    maker = simulation.cluster.run_client(
        "maker", lambda env: TopicCreator(env, "maker", simulation.cluster.bootstrap, assignment, {})
    )
    script.until("the topic is recreated", lambda: maker.done)
    script.until_led()
    script.up(script.b)
    script.run_for(2000, 4000)
    script.expect(script.states()[0][0][0] != old, "the topic is another one")
    script.expect(script.lossy_elections == 0, "the old recovery elects no replica")
    script.expect(script.recovery().state == "Led", "nothing is recovered")


def u8(simulation: Simulation) -> None:
    """A new assignment without the winner is requested while the last answers are in flight."""
    script = Script(simulation, "U8")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c, script.b)
    script.until_registered(script.b)
    script.up(script.a)
    script.until_registered(script.a)
    script.run_for(0, 30)
    targets = [int(script.a), int(script.c)]
    script.ask(reassignment(TOPIC, 0, targets))
    script.until_led()
    script.until("the assignment is the new one", lambda: sorted(script.state.replicas) == sorted(targets))


def u15(simulation: Simulation) -> None:
    script = Script(simulation, "U15")
    script.run_for(2000, 3000)
    brokers = [BrokerId(1), BrokerId(2), BrokerId(3)]
    for broker in brokers:
        script.down(broker, KILL)
    script.until("no replica leads", lambda: not any(state.has_leader for _, state in script.states()))
    script.up(*brokers[:2])
    for broker in brokers[:2]:
        script.until_registered(broker)
    asked = script.cluster.network.sent[GetReplicaLogInfoRequest]
    script.up(brokers[2])
    script.until_registered(brokers[2])
    script.until("every partition is led", lambda: all(state.has_leader for _, state in script.states()), 2000)
    asked = script.cluster.network.sent[GetReplicaLogInfoRequest] - asked
    script.expect(asked <= 3 * len(brokers), f"requests are merged: {asked} were sent for {MANY} partitions")


def u18(simulation: Simulation) -> None:
    script = Script(simulation, "U18")
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
    path = f"{LOG_DIRS[script.random.randrange(0, len(LOG_DIRS))]}/{CLEAN_SHUTDOWN_FILE}"
    file = files.open(path)
    content = file.pread(file.size, 0)
    files.unlink(path)
    how, damaged = DAMAGES[script.random.randrange(0, len(DAMAGES))]
    script.cluster.say(f"{path} of {name}: {how}")
    if damaged is not None:
        files.open(path, create=True).append(damaged(content))
    machines.kill(name)
    machines.disk(name).settle()
