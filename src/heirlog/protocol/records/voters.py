"""Written by `python -m heirlog.protocol.generator` from specs/records/voters.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_HB = _Shape(">HB").unpack_from
_pack_Hx = _Shape(">Hx").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hhB = _Shape(">hhB").unpack_from
_pack_hhx = _Shape(">hhx").pack
_unpack_iu = _Shape(">i16s").unpack_from
_pack_iu = _Shape(">i16s").pack


class VotersRecord(Message):
    __slots__ = (
        "version",
        "voters",
    )
    API_KEY = 6
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class Voter(Struct):
        __slots__ = (
            "voter_id",
            "voter_directory_id",
            "endpoints",
            "k_raft_version_feature",
        )

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: bytes = ZERO_UUID,
            endpoints: list[VotersRecord.Endpoint] = EMPTY,
            k_raft_version_feature: VotersRecord.KRaftVersionFeature | None = None,
        ) -> None:
            self.voter_id: int = voter_id
            self.voter_directory_id: bytes = voter_directory_id
            self.endpoints: list[VotersRecord.Endpoint] = [] if endpoints is EMPTY else endpoints
            self.k_raft_version_feature: VotersRecord.KRaftVersionFeature = VotersRecord.KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature

    class Endpoint(Struct):
        __slots__ = (
            "name",
            "host",
            "port",
        )

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None:
            self.name: str = name
            self.host: str = host
            self.port: int = port

    class KRaftVersionFeature(Struct):
        __slots__ = (
            "min_supported_version",
            "max_supported_version",
        )

        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.min_supported_version: int = min_supported_version
            self.max_supported_version: int = max_supported_version

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[VotersRecord.Voter] = EMPTY,
    ) -> None:
        self.version: int = version
        self.voters: list[VotersRecord.Voter] = [] if voters is EMPTY else voters


def _read_k_raft_version_feature(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VotersRecord.KRaftVersionFeature], int]:
    items: list[VotersRecord.KRaftVersionFeature] = []
    for _ in range(count):
        x = new(VotersRecord.KRaftVersionFeature)
        (x.min_supported_version, x.max_supported_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_k_raft_version_feature(out: Out, items: Sequence[VotersRecord.KRaftVersionFeature], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hhx(x.min_supported_version, x.max_supported_version))


def _read_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VotersRecord.Endpoint], int]:
    items: list[VotersRecord.Endpoint] = []
    for _ in range(count):
        x = new(VotersRecord.Endpoint)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, tags) = _unpack_HB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_endpoint(out: Out, items: Sequence[VotersRecord.Endpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hx(x.port))


def _read_voter(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VotersRecord.Voter], int]:
    items: list[VotersRecord.Voter] = []
    for _ in range(count):
        x = new(VotersRecord.Voter)
        (x.voter_id, x.voter_directory_id) = _unpack_iu(buf, pos)
        pos += 20
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Endpoints")
        x.endpoints, pos = _read_endpoint(buf, pos, n, version)
        ((x.k_raft_version_feature,), pos) = _read_k_raft_version_feature(buf, pos, 1, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_voter(out: Out, items: Sequence[VotersRecord.Voter], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iu(x.voter_id, x.voter_directory_id))
        endpoints = x.endpoints
        n = len(endpoints) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if endpoints:
            _write_endpoint(out, endpoints, version)
        _write_k_raft_version_feature(out, (x.k_raft_version_feature,), version)
        w(b"\0")


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VotersRecord], int]:
    items: list[VotersRecord] = []
    for _ in range(count):
        x = new(VotersRecord)
        (x.version,) = _unpack_h(buf, pos)
        pos += 2
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Voters")
        x.voters, pos = _read_voter(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[VotersRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_h(x.version))
        voters = x.voters
        n = len(voters) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if voters:
            _write_voter(out, voters, version)
        w(b"\0")


VotersRecord.READ = _read
VotersRecord.WRITE = _write
