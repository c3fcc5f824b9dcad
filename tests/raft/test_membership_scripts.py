"""Changes of the voters as text: the commands of `test_election_scripts.py`, and these.

    join                         one more controller starts, with an empty disk: an observer
    replace-disk 101             the process ends, and starts again with an empty disk of another id
    add 103, remove 101          AddRaftVoter and RemoveRaftVoter to the leader; shows the answer
    remove 101 0                 the key that it had with its first disk
    ask remove 101               the same without waiting for the answer
    static-voters 3              controllers 100, 101 and 102 with controller.quorum.voters (kraft.version 0), stopped
    raise-kraft-version          the leader raises kraft.version to 1
    answer                       of the requests that were not waited for, in their order; "none yet" without one

Each controller is followed by the voters that are in force on it, with `?` if that set is not committed as far as it
knows. `--rewrite` writes the results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from raft.quorum_world import Node, World, add_request, remove_request
from raft.test_election_scripts import LIMIT_MS, Elections, line
from textscript import ScriptError, play

from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.raft.epoch_state import QuorumRole

SCRIPTS = sorted(Path(__file__).with_name("membership").glob("*.txt"))


class Membership(Elections):
    def __init__(self) -> None:
        super().__init__()
        self._asked: list[list[Any]] = []

    def run(self, words: list[str]) -> list[str]:
        command, *arguments = words
        match command:
            case "static-voters":
                self._world = World(voters=int(arguments[0]))
                self._world.configure_voters()
                return []
            case "raise-kraft-version":
                return [self._raise_kraft_version(), *self._lines()]
            case "join":
                self._world.join()
                self._world.run_for(1_000)
                return self._lines()
            case "replace-disk":
                node = self._node(arguments[0])
                node.replace_disk()
                node.configured = [node.voter]
                node.start()
                self._world.run_for(1_000)
                return self._lines()
            case "ask":
                self._asked.append(self._world.ask(self._leader(), self._request(arguments)))
                return []
            case "answer":
                return [_shown(self._asked.pop(0)[0]) if self._asked[0] else "none yet"]
            case "add" | "remove":
                answers = self._world.ask(self._leader(), self._request(words))
                self._world.run_until(lambda: bool(answers), LIMIT_MS)
                self._world.run_for(100)
                return [_shown(answers[0]), *self._lines()]
        return super().run(words)

    def _raise_kraft_version(self) -> str:
        try:
            offset = self._leader().quorum.raise_kraft_version(validate_only=False)
        except KafkaError as refused:
            return f"{refused.code.name}: {refused.message}"
        self._world.run_for(100)
        return f"at offset {offset}"

    def _lines(self) -> list[str]:
        return [_line(node) for node in self._world.controllers]

    def _request(self, words: list[str]) -> Any:
        node = self._node(words[1])
        match words[0]:
            case "add":
                return add_request(node)
            case "remove" if len(words) == 2:
                return remove_request(node)
            case "remove":
                return remove_request(node, voter_directory_id=node.directory_of(int(words[2])))
        raise ScriptError(f"no such request: {words[0]}")

    def _leader(self) -> Node:
        for node in self._world.controllers:
            state = node.quorum.state if node.incarnation.alive else None
            if state is not None and state.role is QuorumRole.LEADER:
                return node
        raise ScriptError("no leader")


def _shown(answer: Any) -> str:
    code = ErrorCode(answer.error_code)
    return "done" if code is ErrorCode.NONE else f"{code.name}: {answer.error_message}"


def _line(node: Node) -> str:
    log = node.quorum.log if node.incarnation.alive else None
    if log is None:
        return line(node)
    is_committed = log.voters_offset < node.quorum.high_watermark
    voters = " ".join(str(voter.id) for voter in log.voters) or "-"
    kind = "voters" if log.kraft_version else "static voters"
    return f"{line(node)}  {kind} {voters}{'' if is_committed else ' ?'}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_gives_what_it_says(path: Path, pytestconfig: pytest.Config) -> None:
    text, result = play(path, Membership, pytestconfig.getoption("--rewrite"))
    assert result == text


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 12
