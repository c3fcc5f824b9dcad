"""Written by `python -m heirlog.protocol.generator` from specs/records/partition.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_biiqiq = _Shape(">biiqiq").unpack_from
_pack_biiqiq = _Shape(">biiqiq").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iu = _Shape(">i16s").unpack_from
_pack_iu = _Shape(">i16s").pack
_unpack_iii = _Shape(">iii").unpack_from
_pack_iii = _Shape(">iii").pack
_unpack_iiiB = _Shape(">iiiB").unpack_from
_unpack_iqiqB = _Shape(">iqiqB").unpack_from
_pack_iqiqx = _Shape(">iqiqx").pack


class PartitionRecord(Message):
    __slots__ = (
        "partition_id",
        "topic_id",
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "leader",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
        "election_basis",
        "earlier_elections",
        "last_leader",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class ElectionBasis(Struct):
        __slots__ = (
            "basis",
            "leader",
            "leader_epoch",
            "end_offset",
            "controller_epoch",
            "timestamp_ms",
            "replicas",
        )

        def __init__(
            self,
            *,
            basis: int = -1,
            leader: int = -1,
            leader_epoch: int = -1,
            end_offset: int = -1,
            controller_epoch: int = -1,
            timestamp_ms: int = -1,
            replicas: list[PartitionRecord.ReplicaAnswer] = EMPTY,
        ) -> None:
            self.basis: int = basis
            self.leader: int = leader
            self.leader_epoch: int = leader_epoch
            self.end_offset: int = end_offset
            self.controller_epoch: int = controller_epoch
            self.timestamp_ms: int = timestamp_ms
            self.replicas: list[PartitionRecord.ReplicaAnswer] = [] if replicas is EMPTY else replicas

    class ReplicaAnswer(Struct):
        __slots__ = (
            "broker_id",
            "broker_epoch",
            "last_written_leader_epoch",
            "log_end_offset",
        )

        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
            last_written_leader_epoch: int = -1,
            log_end_offset: int = -1,
        ) -> None:
            self.broker_id: int = broker_id
            self.broker_epoch: int = broker_epoch
            self.last_written_leader_epoch: int = last_written_leader_epoch
            self.log_end_offset: int = log_end_offset

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ZERO_UUID,
        replicas: list[int] = EMPTY,
        isr: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        election_basis: PartitionRecord.ElectionBasis | None = None,
        earlier_elections: list[PartitionRecord.ElectionBasis] | None = None,
        last_leader: int = -1,
    ) -> None:
        self.partition_id: int = partition_id
        self.topic_id: bytes = topic_id
        self.replicas: list[int] = [] if replicas is EMPTY else replicas
        self.isr: list[int] = [] if isr is EMPTY else isr
        self.removing_replicas: list[int] = [] if removing_replicas is EMPTY else removing_replicas
        self.adding_replicas: list[int] = [] if adding_replicas is EMPTY else adding_replicas
        self.leader: int = leader
        self.leader_recovery_state: int = leader_recovery_state
        self.leader_epoch: int = leader_epoch
        self.partition_epoch: int = partition_epoch
        self.directories: list[bytes] = [] if directories is EMPTY else directories
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.election_basis: PartitionRecord.ElectionBasis | None = election_basis
        self.earlier_elections: list[PartitionRecord.ElectionBasis] | None = earlier_elections
        self.last_leader: int = last_leader


def _read_replica_answer(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[PartitionRecord.ReplicaAnswer], int]:
    items: list[PartitionRecord.ReplicaAnswer] = []
    for _ in range(count):
        x = new(PartitionRecord.ReplicaAnswer)
        (x.broker_id, x.broker_epoch, x.last_written_leader_epoch, x.log_end_offset, tags) = _unpack_iqiqB(buf, pos)
        pos += 25
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_replica_answer(out: Out, items: Sequence[PartitionRecord.ReplicaAnswer], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqiqx(x.broker_id, x.broker_epoch, x.last_written_leader_epoch, x.log_end_offset))


def _read_election_basis(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[PartitionRecord.ElectionBasis], int]:
    items: list[PartitionRecord.ElectionBasis] = []
    for _ in range(count):
        x = new(PartitionRecord.ElectionBasis)
        (x.basis, x.leader, x.leader_epoch, x.end_offset, x.controller_epoch, x.timestamp_ms) = _unpack_biiqiq(buf, pos)
        pos += 29
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Replicas")
        x.replicas, pos = _read_replica_answer(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_election_basis(out: Out, items: Sequence[PartitionRecord.ElectionBasis], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_biiqiq(x.basis, x.leader, x.leader_epoch, x.end_offset, x.controller_epoch, x.timestamp_ms))
        replicas = x.replicas
        n = len(replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if replicas:
            _write_replica_answer(out, replicas, version)
        w(b"\0")


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[PartitionRecord], int]:
    items: list[PartitionRecord] = []
    if version >= 2:
        for _ in range(count):
            x = new(PartitionRecord)
            x.leader_recovery_state = 0
            x.eligible_leader_replicas = None
            x.last_known_elr = None
            x.election_basis = None
            x.earlier_elections = None
            x.last_leader = -1
            (x.partition_id, x.topic_id) = _unpack_iu(buf, pos)
            pos += 20
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Replicas")
            x.replicas, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Isr")
            x.isr, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("RemovingReplicas")
            x.removing_replicas, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("AddingReplicas")
            x.adding_replicas, pos = p.read_int32s(buf, pos, n)
            (x.leader, x.leader_epoch, x.partition_epoch) = _unpack_iii(buf, pos)
            pos += 12
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Directories")
            x.directories, pos = p.read_uuids(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.leader_recovery_state,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("LeaderRecoveryState")
                    elif tag == 1:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            x.eligible_leader_replicas = None
                        else:
                            x.eligible_leader_replicas, pos = p.read_int32s(buf, pos, n)
                        if pos != end:
                            raise p.bad_tag("EligibleLeaderReplicas")
                    elif tag == 2:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            x.last_known_elr = None
                        else:
                            x.last_known_elr, pos = p.read_int32s(buf, pos, n)
                        if pos != end:
                            raise p.bad_tag("LastKnownElr")
                    elif tag == 10000:
                        (present,) = _unpack_b(buf, pos)
                        pos += 1
                        if present < 0:
                            x.election_basis = None
                        else:
                            ((x.election_basis,), pos) = _read_election_basis(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("ElectionBasis")
                    elif tag == 10001:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            x.earlier_elections = None
                        else:
                            x.earlier_elections, pos = _read_election_basis(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("EarlierElections")
                    elif tag == 10002:
                        (x.last_leader,) = _unpack_i(buf, pos)
                        pos += 4
                        if pos != end:
                            raise p.bad_tag("LastLeader")
                    else:
                        pos = end
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(PartitionRecord)
            x.leader_recovery_state = 0
            x.eligible_leader_replicas = None
            x.last_known_elr = None
            x.election_basis = None
            x.earlier_elections = None
            x.last_leader = -1
            (x.partition_id, x.topic_id) = _unpack_iu(buf, pos)
            pos += 20
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Replicas")
            x.replicas, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Isr")
            x.isr, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("RemovingReplicas")
            x.removing_replicas, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("AddingReplicas")
            x.adding_replicas, pos = p.read_int32s(buf, pos, n)
            (x.leader, x.leader_epoch, x.partition_epoch) = _unpack_iii(buf, pos)
            pos += 12
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Directories")
            x.directories, pos = p.read_uuids(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.leader_recovery_state,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("LeaderRecoveryState")
                    elif tag == 10000:
                        (present,) = _unpack_b(buf, pos)
                        pos += 1
                        if present < 0:
                            x.election_basis = None
                        else:
                            ((x.election_basis,), pos) = _read_election_basis(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("ElectionBasis")
                    elif tag == 10001:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            x.earlier_elections = None
                        else:
                            x.earlier_elections, pos = _read_election_basis(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("EarlierElections")
                    elif tag == 10002:
                        (x.last_leader,) = _unpack_i(buf, pos)
                        pos += 4
                        if pos != end:
                            raise p.bad_tag("LastLeader")
                    else:
                        pos = end
            items.append(x)
    else:
        for _ in range(count):
            x = new(PartitionRecord)
            x.leader_recovery_state = 0
            x.directories = []
            x.eligible_leader_replicas = None
            x.last_known_elr = None
            x.election_basis = None
            x.earlier_elections = None
            x.last_leader = -1
            (x.partition_id, x.topic_id) = _unpack_iu(buf, pos)
            pos += 20
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Replicas")
            x.replicas, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Isr")
            x.isr, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("RemovingReplicas")
            x.removing_replicas, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("AddingReplicas")
            x.adding_replicas, pos = p.read_int32s(buf, pos, n)
            (x.leader, x.leader_epoch, x.partition_epoch, tags) = _unpack_iiiB(buf, pos)
            pos += 13
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.leader_recovery_state,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("LeaderRecoveryState")
                    elif tag == 10000:
                        (present,) = _unpack_b(buf, pos)
                        pos += 1
                        if present < 0:
                            x.election_basis = None
                        else:
                            ((x.election_basis,), pos) = _read_election_basis(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("ElectionBasis")
                    elif tag == 10001:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            x.earlier_elections = None
                        else:
                            x.earlier_elections, pos = _read_election_basis(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("EarlierElections")
                    elif tag == 10002:
                        (x.last_leader,) = _unpack_i(buf, pos)
                        pos += 4
                        if pos != end:
                            raise p.bad_tag("LastLeader")
                    else:
                        pos = end
            items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[PartitionRecord], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 2:
        for x in items:
            w(_pack_iu(x.partition_id, x.topic_id))
            replicas = x.replicas
            n = len(replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if replicas:
                w(p.int32s(replicas))
            isr = x.isr
            n = len(isr) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if isr:
                w(p.int32s(isr))
            removing_replicas = x.removing_replicas
            n = len(removing_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if removing_replicas:
                w(p.int32s(removing_replicas))
            adding_replicas = x.adding_replicas
            n = len(adding_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if adding_replicas:
                w(p.int32s(adding_replicas))
            w(_pack_iii(x.leader, x.leader_epoch, x.partition_epoch))
            directories = x.directories
            n = len(directories) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if directories:
                w(p.uuids(directories))
            if x.leader_recovery_state != 0 or x.eligible_leader_replicas is not None or x.last_known_elr is not None or x.election_basis is not None or x.earlier_elections is not None or x.last_leader != -1:
                tagged = []
                if x.leader_recovery_state != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.leader_recovery_state))
                    tagged.append((0, inner))
                if x.eligible_leader_replicas is not None:
                    inner = Out()
                    eligible_leader_replicas = x.eligible_leader_replicas
                    n = len(eligible_leader_replicas) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if eligible_leader_replicas:
                        inner.small.append(p.int32s(eligible_leader_replicas))
                    tagged.append((1, inner))
                if x.last_known_elr is not None:
                    inner = Out()
                    last_known_elr = x.last_known_elr
                    n = len(last_known_elr) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if last_known_elr:
                        inner.small.append(p.int32s(last_known_elr))
                    tagged.append((2, inner))
                if x.election_basis is not None:
                    inner = Out()
                    inner.small.append(b"\1")
                    _write_election_basis(inner, (x.election_basis,), version)
                    tagged.append((10000, inner))
                if x.earlier_elections is not None:
                    inner = Out()
                    earlier_elections = x.earlier_elections
                    n = len(earlier_elections) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if earlier_elections:
                        _write_election_basis(inner, earlier_elections, version)
                    tagged.append((10001, inner))
                if x.last_leader != -1:
                    inner = Out()
                    inner.small.append(_pack_i(x.last_leader))
                    tagged.append((10002, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_iu(x.partition_id, x.topic_id))
            replicas = x.replicas
            n = len(replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if replicas:
                w(p.int32s(replicas))
            isr = x.isr
            n = len(isr) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if isr:
                w(p.int32s(isr))
            removing_replicas = x.removing_replicas
            n = len(removing_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if removing_replicas:
                w(p.int32s(removing_replicas))
            adding_replicas = x.adding_replicas
            n = len(adding_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if adding_replicas:
                w(p.int32s(adding_replicas))
            w(_pack_iii(x.leader, x.leader_epoch, x.partition_epoch))
            directories = x.directories
            n = len(directories) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if directories:
                w(p.uuids(directories))
            if x.leader_recovery_state != 0 or x.election_basis is not None or x.earlier_elections is not None or x.last_leader != -1:
                tagged = []
                if x.leader_recovery_state != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.leader_recovery_state))
                    tagged.append((0, inner))
                if x.election_basis is not None:
                    inner = Out()
                    inner.small.append(b"\1")
                    _write_election_basis(inner, (x.election_basis,), version)
                    tagged.append((10000, inner))
                if x.earlier_elections is not None:
                    inner = Out()
                    earlier_elections = x.earlier_elections
                    n = len(earlier_elections) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if earlier_elections:
                        _write_election_basis(inner, earlier_elections, version)
                    tagged.append((10001, inner))
                if x.last_leader != -1:
                    inner = Out()
                    inner.small.append(_pack_i(x.last_leader))
                    tagged.append((10002, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    else:
        for x in items:
            w(_pack_iu(x.partition_id, x.topic_id))
            replicas = x.replicas
            n = len(replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if replicas:
                w(p.int32s(replicas))
            isr = x.isr
            n = len(isr) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if isr:
                w(p.int32s(isr))
            removing_replicas = x.removing_replicas
            n = len(removing_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if removing_replicas:
                w(p.int32s(removing_replicas))
            adding_replicas = x.adding_replicas
            n = len(adding_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if adding_replicas:
                w(p.int32s(adding_replicas))
            w(_pack_iii(x.leader, x.leader_epoch, x.partition_epoch))
            if x.leader_recovery_state != 0 or x.election_basis is not None or x.earlier_elections is not None or x.last_leader != -1:
                tagged = []
                if x.leader_recovery_state != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.leader_recovery_state))
                    tagged.append((0, inner))
                if x.election_basis is not None:
                    inner = Out()
                    inner.small.append(b"\1")
                    _write_election_basis(inner, (x.election_basis,), version)
                    tagged.append((10000, inner))
                if x.earlier_elections is not None:
                    inner = Out()
                    earlier_elections = x.earlier_elections
                    n = len(earlier_elections) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if earlier_elections:
                        _write_election_basis(inner, earlier_elections, version)
                    tagged.append((10001, inner))
                if x.last_leader != -1:
                    inner = Out()
                    inner.small.append(_pack_i(x.last_leader))
                    tagged.append((10002, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")


PartitionRecord.READ = _read
PartitionRecord.WRITE = _write
