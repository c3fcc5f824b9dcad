"""Where a fuzzer begins: for each target, inputs made from valid messages, files and records."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from ssl import PEM_cert_to_DER_cert

from fuzz import closed_brain, handshakes, plausible
from fuzz.targets import ISSUED, ISSUERS_KEYS, RECOVERY_FILES, RESPONSES, SHA_256, USERS, WALL_MS
from local.authorities import issued
from protocol.oracle import NOT_IN_KIO, kio_bytes, kio_class, random_entity
from storage.cleaning.compacting import keyed
from storage.logs import DIR, open_log
from storage.memory_files import MemoryFiles

from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.records import group_record, offset_record
from heirlog.client.sasl import Scram
from heirlog.client.security import UnsecuredToken
from heirlog.oauth.tokens import unsecured_jwt
from heirlog.protocol.api import APIS, response_class
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.frames import encode_response
from heirlog.protocol.metadata_record import encode_control, encode_record
from heirlog.protocol.records import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    GroupMetadataValue,
    PartitionRecord,
    TopicRecord,
)
from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft import snapshot
from heirlog.raft.control import Voter
from heirlog.security.exchange import Challenge
from heirlog.security.scram import ScramExchange
from heirlog.storage.config import LogConfig


def seeds(target: str) -> Iterator[bytes]:
    match target:
        case "connection":
            yield from (data for _, data in plausible.seeds())
        case "answers":
            yield from _answers()
        case "batch":
            yield from (bytes([flags]) + batch for flags in (0x80, 0x81, 0x82) for batch in _batches())
        case "recovery":
            yield from _directories()
        case "metadata":
            yield from _metadata()
        case "groups":
            yield from _groups()
        case "logins":
            yield from _logins()
        case "sasl":
            yield from closed_brain.seeds()
        case "tls":
            yield from handshakes.seeds()


def _answers() -> Iterator[bytes]:
    rng = random.Random(1)
    for number, key in enumerate(RESPONSES):
        api = APIS[key]
        for version in range(api.min_version, api.max_version + 1):
            if version > api.kafka_max_version or (api.name, version) in NOT_IN_KIO:
                frame = b"".join(encode_response(key, version, 0, response_class(key)()))
                yield bytes([number, version - api.min_version]) + frame[plausible.LENGTH_BYTES :]
                continue
            entity = random_entity(rng, kio_class(api, "response", version))
            tags = b"\0" if version >= api.flexible_version and key != 18 else b""
            yield bytes([number, version - api.min_version]) + bytes(4) + tags + kio_bytes(entity)


def _batches() -> Iterator[bytes]:
    for codec in range(5):
        yield bytes(keyed(("k", "v"), ("l", None), ("k", "w" * 40), compression=codec, timestamp_ms=WALL_MS))
        yield bytes(encode_batch([(None, b"v", (("h", b"x"), ("i", None)), WALL_MS)], compression=codec))
    yield bytes(keyed(("k", "v"), producer_id=7, producer_epoch=1, base_sequence=0, control=True))


def _directories() -> Iterator[bytes]:
    for flags, codec in ((4, 0), (5, 0), (6, 0), (7, 1), (4, 2), (6, 3), (6, 4), (0, 0), (1, 0)):
        files = MemoryFiles()
        log = open_log(files, LogConfig(segment_bytes=400, index_interval_bytes=64))
        for number in range(8):
            values = [(f"k{number % 3}", None if number == 5 else f"v{number}" * 4)]
            producer = {"producer_id": 3, "producer_epoch": 0, "base_sequence": number}
            batch = keyed(*values, compression=codec, timestamp_ms=WALL_MS, **producer)  # type: ignore[arg-type]
            log.append_as_leader(batch, number // 3, WALL_MS)
        log.flush(lambda error: None)
        files.run()
        log.close()
        data = bytearray([flags, 0, 0])
        for name in RECOVERY_FILES:
            content = bytes(files.inodes[f"{DIR}/{name}"].data) if files.exists(f"{DIR}/{name}") else b""
            data += struct.pack(">H", len(content)) + content
        yield bytes(data)


def _metadata() -> Iterator[bytes]:
    for cls in METADATA_RECORDS.values():
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            yield b"\0" + encode_record(cls(), version)
    for cls in CONTROL_RECORDS.values():
        key, value = encode_control(cls(), cls.MIN_VERSION)
        yield b"\1" + bytes([len(key)]) + key + value
    voter = Voter(BrokerId(1), Uuid(bytes(15) + b"\1"), Endpoint("h", 9093))
    records = [TopicRecord(name="t", topic_id=bytes(15) + b"\2"), PartitionRecord(replicas=[1], isr=[1])]
    yield b"\2" + b"".join(snapshot.encode(records, 1, WALL_MS, [voter]))
    yield b"\2" + b"".join(snapshot.encode(records, 1, WALL_MS, []))


def _groups() -> Iterator[bytes]:
    offset = OffsetAndMetadata(offset=5, leader_epoch=1, metadata="m", commit_ms=WALL_MS)
    member = GroupMetadataValue.MemberMetadata(member_id="m", client_id="c", client_host="h", session_timeout=6000)
    group = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member])
    for key, value in (
        offset_record("g", ("t", 0), offset),
        offset_record("g", ("t", 0), None),
        group_record("g", group),
        group_record("g", None),
    ):
        yield bytes([len(key)]) + key + (value or b"")


def _logins() -> Iterator[bytes]:
    yield b"p\0alice\0secret"
    yield b"pbob\0alice\0secret"
    client = Scram("SCRAM-SHA-256", "alice", "secret", "nonce")
    first = client.first()
    step = ScramExchange(SHA_256, USERS.get, "more", b"").respond(first)
    assert isinstance(step, Challenge)
    yield b"s" + first + b"\xff" + (client.answer(step.token) or b"")
    yield b"sn,a=alice,n=a=2Cb=3D,r=x,tokenauth=true\xffc=biws,r=xmore,p=AAAA"
    yield b"on,a=alice,\x01auth=Bearer " + ISSUED.encode() + b"\x01trace=1\x01\x01"
    header, claims, _ = unsecured_jwt(UnsecuredToken("alice", scope=("a", "b")), 20).split(".")
    yield f"un,,\x01auth=Bearer {header}.{claims}.\x01\x01".encode() + b"\xff\x01"
    yield f"on,,\x01auth=Bearer {header}.{claims}.AAAA\x01\x01".encode() + b"\xff\x01"
    yield b"k" + ISSUERS_KEYS
    yield b"x" + (Path(__file__).parent.parent / "blocking/certificates/client.p12").read_bytes()
    rules = rb"RULE:^CN=(?<user>.*?),OU=(\w+)(,.*)?$/$1@$2${user}\$/L,RULE:(?i)(cn=.*)/$1/,DEFAULT"
    yield b"m" + rules + b"\xffCN=a b,OU=c,O=\xc3\xa9"
    yield b"c" + PEM_cert_to_DER_cert(issued("alice").partition("-----END PRIVATE KEY-----\n")[2])
