"""Written by `python -m heirlog.protocol.generator` from specs/records/leader_change_message.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_hi = _Shape(">hi").unpack_from
_pack_hi = _Shape(">hi").pack
_unpack_iuB = _Shape(">i16sB").unpack_from
_pack_iux = _Shape(">i16sx").pack
_unpack_iB = _Shape(">iB").unpack_from
_pack_ix = _Shape(">ix").pack


class LeaderChangeMessage(Message):
    __slots__ = (
        "version",
        "leader_id",
        "voters",
        "granting_voters",
    )
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    class Voter(Struct):
        __slots__ = (
            "voter_id",
            "voter_directory_id",
        )

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: bytes = ZERO_UUID,
        ) -> None:
            self.voter_id: int = voter_id
            self.voter_directory_id: bytes = voter_directory_id

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeMessage.Voter] = EMPTY,
        granting_voters: list[LeaderChangeMessage.Voter] = EMPTY,
    ) -> None:
        self.version: int = version
        self.leader_id: int = leader_id
        self.voters: list[LeaderChangeMessage.Voter] = [] if voters is EMPTY else voters
        self.granting_voters: list[LeaderChangeMessage.Voter] = [] if granting_voters is EMPTY else granting_voters


def _read_voter(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[LeaderChangeMessage.Voter], int]:
    items: list[LeaderChangeMessage.Voter] = []
    if version >= 1:
        for _ in range(count):
            x = new(LeaderChangeMessage.Voter)
            (x.voter_id, x.voter_directory_id, tags) = _unpack_iuB(buf, pos)
            pos += 21
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(LeaderChangeMessage.Voter)
            x.voter_directory_id = ZERO_UUID
            (x.voter_id, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_voter(out: Out, items: Sequence[LeaderChangeMessage.Voter], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_iux(x.voter_id, x.voter_directory_id))
    else:
        for x in items:
            w(_pack_ix(x.voter_id))


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[LeaderChangeMessage], int]:
    items: list[LeaderChangeMessage] = []
    for _ in range(count):
        x = new(LeaderChangeMessage)
        (x.version, x.leader_id) = _unpack_hi(buf, pos)
        pos += 6
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Voters")
        x.voters, pos = _read_voter(buf, pos, n, version)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("GrantingVoters")
        x.granting_voters, pos = _read_voter(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[LeaderChangeMessage], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hi(x.version, x.leader_id))
        voters = x.voters
        n = len(voters) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if voters:
            _write_voter(out, voters, version)
        granting_voters = x.granting_voters
        n = len(granting_voters) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if granting_voters:
            _write_voter(out, granting_voters, version)
        w(b"\0")


LeaderChangeMessage.READ = _read
LeaderChangeMessage.WRITE = _write
