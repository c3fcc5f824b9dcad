"""`quorum-state`: this node's epoch, the leader that it follows, and its vote.

If a node forgot its vote it could vote twice, and an epoch could have two leaders. So the file is written and flushed
before a vote is sent, and before a leader appends to its epoch (guard 17).

    {"leaderId":1,"leaderEpoch":3,"votedId":1,"votedDirectoryId":"...","data_version":1}

Version 0 is written at kraft.version 0, as by Apache Kafka, and read at any level. It has no votedDirectoryId, as the
voters have none, and members that are not used:

    {"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":1,"appliedOffset":0,"currentVoters":[{"voterId":1}],
     "data_version":0}

A second line, which Apache Kafka does not read, has a checksum of the first (`heirlog.storage.check_line`): one bit
could turn the epoch or the vote into another one, and the node would vote twice.

Source: KIP-595 "Quorum State", KIP-853 for version 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heirlog.env import Files
from heirlog.protocol.types import ZERO_UUID, Uuid, uuid_from_text, uuid_text
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file
from heirlog.storage.check_line import checked, with_check_line

NAME = "quorum-state"
NOBODY = -1


@dataclass(frozen=True, slots=True)
class QuorumState:
    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


class MalformedQuorumState(ValueError):
    """The file exists and cannot be parsed; a node that continued could vote twice."""


def encode(state: QuorumState, static_voters: Iterable[int] = ()) -> bytes:
    """static_voters: ids of the voters, if they are those of the configuration."""
    voters = sorted(static_voters)
    members: dict[str, object] = (
        {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
        if voters
        else {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": uuid_text(state.voted_directory_id),
            "data_version": 1,
        }
    )
    return with_check_line(json.dumps(members, separators=(",", ":")) + "\n")


def decode(data: bytes) -> QuorumState:
    """Raises MalformedQuorumState."""
    try:
        members = json.loads(checked(data))
        if members["data_version"] not in (0, 1):
            raise MalformedQuorumState(f"quorum-state has version {members['data_version']}, known are 0 and 1")
        voted = members.get("votedDirectoryId")
        return QuorumState(
            int(members["leaderId"]),
            int(members["leaderEpoch"]),
            int(members["votedId"]),
            uuid_from_text(voted) if voted else ZERO_UUID,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedQuorumState(
            f"quorum-state is damaged ({error}): restore it; on a node that is no controller, or whose controller is "
            "the only one, removing it has the same effect"
        ) from error


def is_flushed(state: QuorumState, flushed: QuorumState | None) -> bool:
    """Guard 17: a node acts in an epoch, and answers a vote, once its state would survive a power cut.

    flushed: the state that is durable, None if that is not known. Called through this module's global, so that the
    simulator can remove the guard.
    """
    return state == flushed


class QuorumStateFile:
    """The file, read once and written as a whole."""

    def __init__(self, files: Files, directory: str, static_voters: Callable[[], Iterable[int]] = tuple) -> None:
        """static_voters: as of `encode`. Raises MalformedQuorumState."""
        self._static_voters = static_voters
        self._files = files
        self._parent = directory.rpartition("/")[0]
        self._file = AtomicFile(files, directory, NAME)
        data = read_file(files, f"{directory}/{NAME}")
        self.stored = QuorumState() if data is None else decode(data)
        """The state in the file once all requested writes are done."""
        self.flushed: QuorumState | None = None
        """The state that would survive a power cut; None before the first write, as the file may have been read before
        it was durable.
        """

    def write(self, state: QuorumState, on_durable: OnDurable) -> None:
        """Write `state`; `on_durable` is called once this or a newer state would survive a power cut."""

        def durable(error: OSError | None) -> None:
            if error is None:
                self.flushed = state
            on_durable(error)

        def written(error: OSError | None) -> None:
            if error is None and self.flushed is None:
                # without this a power cut could take the whole directory back, which a start may just have created
                self._files.sync_dir(self._parent, durable)
            else:
                durable(error)

        self.stored = state
        self._file.write(encode(state, self._static_voters()), written)

    def close(self) -> None:
        """Abandon the current write: the directory is about to be renamed."""
        self._file.close()
