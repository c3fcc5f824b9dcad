"""Elections of the metadata quorum as text: a command per line, and below it what each controller is afterwards.

    voters 3                     controllers 100, 101 and 102, formatted and stopped
    log 100 1 1 3                before its start: a log with records of these epochs, each named "epoch.offset"
    seen 3                       before the start: all controllers know this epoch, and have not voted in it
    start [100 ...]              all, or these
    elect                        until a leader is active
    append 100 a                 the leader appends a record; nothing is waited for
    run 3000                     so many milliseconds pass
    kill 100, power-cut 100      the process ends; what was not flushed is lost with the power
    stop 100                     a clean stop: it hands over first
    cut 100, cut 100 > 101       no message passes, in both directions or in one
    heal

The numbers of epochs and who wins a race depend on the seed, which is fixed. `--rewrite` writes the results.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from raft.quorum_world import Incarnation, MemoryEnv, Node, World, topic
from textscript import ScriptError, play

from heirlog.protocol.batch import encode_batch
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.leader import NotLeader
from heirlog.raft.metadata_log import open_log
from heirlog.raft.quorum_state import QuorumState, QuorumStateFile
from heirlog.raft.values import encode_value

SCRIPTS = sorted(Path(__file__).with_name("elections").glob("*.txt"))
LIMIT_MS = 20_000


class Elections:
    def __init__(self) -> None:
        self._world = World(voters=1)

    def run(self, words: list[str]) -> list[str]:
        command, *arguments = words
        match command:
            case "voters":
                self._world = World(voters=int(arguments[0]))
                return []
            case "log":
                write_log(self._node(arguments[0]), [int(epoch) for epoch in arguments[1:]])
                return []
            case "seen":
                for node in self._world.controllers:
                    write_epoch(node, int(arguments[0]))
                return []
            case "start":
                for node in self._named(arguments):
                    node.start()
                return []
            case "elect":
                self._world.run_until(lambda: any(map(leads, self._world.controllers)), LIMIT_MS)
                self._world.run_for(100)
            case "append":
                return self._append(self._node(arguments[0]), arguments[1])
            case "run":
                self._world.run_for(int(arguments[0]))
            case "kill":
                self._node(arguments[0]).kill()
            case "power-cut":
                self._node(arguments[0]).power_cut()
            case "stop":
                self._stop(self._node(arguments[0]))
            case "cut":
                self._cut(arguments)
                return []
            case "heal":
                self._world.heal()
                return []
            case _:
                raise ScriptError(f"no such command: {command}")
        return self._lines()

    def _lines(self) -> list[str]:
        return [line(node) for node in self._world.controllers]

    def _node(self, name: str) -> Node:
        return next(node for node in self._world.controllers if node.id == int(name))

    def _named(self, names: list[str]) -> list[Node]:
        return [self._node(name) for name in names] if names else self._world.controllers

    def _append(self, node: Node, name: str) -> list[str]:
        try:
            return [f"at offset {node.quorum.append([topic(name)])}"]
        except NotLeader:
            return ["refused: it does not lead"]

    def _stop(self, node: Node) -> None:
        handed_over: list[bool] = []
        node.quorum.hand_over(lambda: handed_over.append(True))
        self._world.run_until(lambda: bool(handed_over), LIMIT_MS)
        node.kill()

    def _cut(self, arguments: list[str]) -> None:
        one = self._node(arguments[0])
        if len(arguments) == 1:
            self._world.isolate(one)
        else:
            self._world.cut.add((one.id, self._node(arguments[2]).id))


def write_log(node: Node, epochs: list[int]) -> None:
    node.incarnation = node.disk.owner = Incarnation()
    log = open_log(MemoryEnv(node.world, node), node.log_directory, node.config)
    for offset, epoch in enumerate(epochs):
        value = encode_value(topic(f"{epoch}.{offset}"))
        log.append(encode_batch([(None, value, (), 0)], offset, epoch), epoch)
    flushed: list[OSError | None] = []
    log.flush(flushed.append)
    node.world.run_until(lambda: bool(flushed))
    log.close()
    node.incarnation.alive = False


def write_epoch(node: Node, epoch: int) -> None:
    node.incarnation = node.disk.owner = Incarnation()
    written: list[OSError | None] = []
    state = QuorumStateFile(node.disk, node.log_directory)
    state.write(QuorumState(leader_epoch=epoch), written.append)
    node.world.run_until(lambda: bool(written))
    node.incarnation.alive = False


def leads(node: Node) -> bool:
    return node.incarnation.alive and node.quorum.is_leader


def line(node: Node) -> str:
    if not node.incarnation.alive:
        return f"{node.id} down"
    quorum = node.quorum
    state = quorum.state
    assert state is not None
    role = state.role.value
    if state.role is QuorumRole.FOLLOWER:
        role += f" of {state.leader_id}"
    parts = [f"{node.id} {role}", f"epoch {state.epoch}", f"end {quorum.log_end_offset}"]
    parts.append(f"committed {quorum.high_watermark if quorum.high_watermark >= 0 else '-'}")
    if state.voted is not None:
        parts.append(f"voted {state.voted.id}")
    if node.seen.names:
        parts.append(f"has {' '.join(node.seen.names)}")
    return "  ".join(parts)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_gives_what_it_says(path: Path, pytestconfig: pytest.Config) -> None:
    text, result = play(path, Elections, pytestconfig.getoption("--rewrite"))
    assert result == text


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 6
