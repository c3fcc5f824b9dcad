"""What is fuzzed: functions of bytes that end, or raise what their callers expect, and nothing else.

    connection   frames to a whole node (`brain`)
    answers      what a peer answers: the decoding of every API's responses
    batch        what a producer sends: the checks of a leader, and everything that looks inside a batch
    recovery     the files of a log after any kind of stop; then appending, timestamp search and the log cleaner
    metadata     metadata records, control records, snapshots
    groups       records of __consumer_offsets
    logins       SASL tokens, and subjects of certificates
    sasl         frames to a whole node whose listener wants a login (`closed_brain`)
    tls          bytes to a listener with TLS, before and after its handshake (`handshakes`)

Memory is bounded by construction (no announced size is believed), which libFuzzer's -rss_limit_mb watches.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fuzz.brain import History, repair
from fuzz.closed_brain import ClosedBrain
from fuzz.handshakes import Listener
from jwt.algorithms import OKPAlgorithm
from storage.cleaning.compacting import compact, keyed
from storage.logs import DIR, open_log
from storage.memory_files import MemoryFiles

from heirlog.broker.groups.group import ClassicGroup
from heirlog.broker.groups.records import StoredGroup, read_record
from heirlog.oauth.jwk_set import JwkSet, UnusableKeySet
from heirlog.protocol.api import APIS
from heirlog.protocol.batch import HEADER_SIZE, crc_matches, decode_records, walk
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.frames import decode_response
from heirlog.protocol.metadata_record import decode_control, decode_record
from heirlog.protocol.primitives import Malformed
from heirlog.raft import snapshot
from heirlog.security.access_token import ClaimRules, SignedTokens, UnsecuredTokens
from heirlog.security.der import NotReadable
from heirlog.security.distinguished_name import UnusableName, subject_of
from heirlog.security.exchange import Accepted, Exchange, PlainExchange, Refused
from heirlog.security.oauthbearer import OAuthBearerExchange
from heirlog.security.pkcs12_cost import check_store_cost
from heirlog.security.principal_mapping import MappingError, PrincipalMapper
from heirlog.security.scram import ScramExchange, ScramMechanism, credential_of, salted_password
from heirlog.storage.cleaning.records import keyless
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import DamagedLog, LogError
from heirlog.storage.log import Log
from heirlog.storage.recompression import recompressed
from heirlog.storage.validation import check_client_batch

Target = Callable[[bytes], None]

HISTORY = History()
HISTORIES = {"connection": HISTORY, "sasl": History(ClosedBrain)}
"""Of the targets that are a whole node, whose state stays from one input to the next."""
WALL_MS = 1_700_000_000_000
PLAIN = LogConfig(segment_bytes=4096, index_interval_bytes=64)
CONFIGS = (PLAIN, replace(PLAIN, compact=True), replace(PLAIN, log_append_time=True))
RESPONSES = sorted(APIS)
SHA_256 = ScramMechanism.SHA_256
USERS = {"alice": credential_of(SHA_256, salted_password(SHA_256, "secret", b"salt", 4096), b"salt", 4096)}
BEARER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
RECOVERY_FILES = (
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "leader-epoch-checkpoint",
    "00000000000000000003.snapshot",
    "00000000000000000003.log",
    "00000000000000000000.txnindex",
)


def connection(data: bytes) -> None:
    HISTORY.feed(data)


def answers(data: bytes) -> None:
    """API, version, response."""
    if len(data) < 2:
        return
    api = APIS[RESPONSES[data[0] % len(RESPONSES)]]
    version = api.min_version + data[1] % (api.max_version - api.min_version + 1)
    try:
        decode_response(api.key, version, data[2:])
    except Malformed:
        pass


def batch_of_a_producer(data: bytes) -> None:
    """Flags (bit 7: make length and CRC right; else the configuration), one batch."""
    if not data:
        return
    records = bytearray(data[1:])
    if data[0] & 0x80:
        repair(records)
    for look in (lambda: check_client_batch(records, CONFIGS[data[0] % 3], WALL_MS), lambda: decode_records(records)):
        try:
            look()
        except KafkaError:
            pass
    try:
        header = check_client_batch(records, PLAIN, WALL_MS)
        recompressed(records, header, data[0] % 5, PLAIN)
    except KafkaError:
        pass
    try:
        for position, header in walk(records):
            if crc_matches(records, position, header):
                keyless(records[position:], header)
    except KafkaError:
        pass


def recovery(data: bytes) -> None:
    """Flags, recovery point, log start, then the files: a 16-bit length and the bytes of each.

    Flags: bit 0 clean stop, bit 1 compacted, bit 2 batches are repaired. A log that was read as a whole must be a log:
    readable from start to end, appendable, and the same after another recovery. What was trusted unread may turn out to
    be damaged, with Kafka's error.
    """
    if len(data) < 3:
        return
    flags, recovery_point, start = data[0], data[1] % 16, data[2] % 16
    files = MemoryFiles()
    files.mkdirs(DIR)
    at = 3
    for name in RECOVERY_FILES:
        size = int.from_bytes(data[at : at + 2], "big")
        content = bytearray(data[at + 2 : at + 2 + size])
        at += 2 + size
        if not content:
            continue
        if flags & 4 and name.endswith(".log"):
            _repair_each(content)
        files.open(f"{DIR}/{name}", create=True).append(content)
    config = CONFIGS[1] if flags & 2 else CONFIGS[0]
    log = open_log(
        files, config, clean=bool(flags & 1), recovery_point=recovery_point, log_start_offset=start, wall_ms=WALL_MS
    )
    try:
        _use(files, log)
    except (KafkaError, DamagedLog):
        if not (flags & 1 or recovery_point):
            raise
    log.close()
    again = open_log(files, config, recovery_point=0, log_start_offset=log.log_start_offset, wall_ms=WALL_MS)
    _use(files, again)
    again.close()


def _repair_each(content: bytearray) -> None:
    """Keep the lengths, as far as they are possible, and make the CRC of each batch right."""
    at = 0
    while at + HEADER_SIZE <= len(content):
        length = int.from_bytes(content[at + 8 : at + 12], "big", signed=True)
        end = min(len(content), at + 12 + max(length, HEADER_SIZE - 12))
        repair(memoryview(content)[at:end])
        at = end


def _use(files: MemoryFiles, log: Log) -> None:
    at = log.log_start_offset
    while at < log.log_end_offset:
        found = log.read(at, 1 << 20, log.log_end_offset)
        if not found.size:
            raise LogError(ErrorCode.CORRUPT_MESSAGE, f"nothing at {at} of a log that ends at {log.log_end_offset}")
        for region in found.regions:
            part = region.read()
            assert len(part) == region.size
            for _, header in walk(part):
                at = header.next_offset
    for search in (
        lambda: log.offset_for_timestamp(WALL_MS, log.log_end_offset),
        lambda: log.max_timestamp_offset(log.log_end_offset),
        lambda: compact(files, log, WALL_MS),
    ):
        try:
            search()
        except KafkaError:
            pass
    if log.log_end_offset < 2**62:
        before = log.log_end_offset
        epoch = log.epochs.latest
        log.append_as_leader(keyed(("k", "v"), timestamp_ms=WALL_MS), max(epoch, 0), WALL_MS)
        assert log.log_end_offset == before + 1
    log.flush(lambda error: None)
    files.run()


def metadata(data: bytes) -> None:
    """Kind, then a record, a control record (length of its key first), or a snapshot."""
    if len(data) < 2:
        return
    rest = data[1:]
    try:
        match data[0] % 3:
            case 0:
                decode_record(rest)
            case 1:
                size = rest[0] % 16
                decode_control(rest[1 : 1 + size], rest[1 + size :])
            case 2:
                whole = bytearray(rest)
                _repair_each(whole)
                list(snapshot.check(snapshot.SnapshotId(5, 1), bytes(whole)).records())
    except (Malformed, KafkaError, ValueError):
        pass


def groups(data: bytes) -> None:
    """Length of the key, key, value; without a value where nothing is left."""
    if len(data) < 2:
        return
    size = data[0] % 64
    key, value = data[1 : 1 + size], data[1 + size :]
    try:
        stored = read_record(key, value or None)
    except Malformed:
        return
    if isinstance(stored, StoredGroup) and stored.value is not None:
        ClassicGroup(stored.group).load(stored.value)


ISSUED = jwt.encode({"sub": "alice", "iat": 1, "exp": 100}, BEARER_KEY, "EdDSA", {"kid": "k"})
ISSUERS_KEYS = json.dumps({"keys": [{**OKPAlgorithm.to_jwk(BEARER_KEY.public_key(), True), "kid": "k"}]}).encode()
RULES = ClaimRules()
EXCHANGES: dict[bytes, Callable[[], Exchange]] = {
    b"p": lambda: PlainExchange({"alice": "secret"}),
    b"s": lambda: ScramExchange(SHA_256, USERS.get, "more", b""),
    b"o": lambda: OAuthBearerExchange(SignedTokens(JwkSet(ISSUERS_KEYS), RULES, lambda: 50_000)),
    b"u": lambda: OAuthBearerExchange(UnsecuredTokens(RULES, (), lambda: 50_000)),
}


def logins(data: bytes) -> None:
    """What is fuzzed, then tokens that are separated by 0xFF, or a certificate, an issuer's keys, a store (PKCS 12), or
    rules and a subject that are separated by 0xFF.
    """
    kind, rest = data[:1], data[1:]
    if kind == b"x":
        try:
            check_store_cost(rest)
        except NotReadable:
            pass
        return
    if kind == b"m":
        rules, _, subject = (part.decode("utf-8", "replace") for part in rest.partition(b"\xff"))
        try:
            PrincipalMapper(rules).name_of(subject)
        except MappingError:
            pass
        return
    if kind == b"k":
        try:
            JwkSet(rest)
        except UnusableKeySet:
            pass
        return
    if kind == b"c":
        try:
            assert subject_of(rest)
        except UnusableName:
            pass
        return
    exchange = EXCHANGES.get(kind, EXCHANGES[b"s"])()
    try:
        for token in rest.split(b"\xff"):
            step = exchange.respond(token)
            if isinstance(step, Accepted):
                assert step.name == "alice" or kind == b"u"
                return
    except Refused as refused:
        assert "secret" not in refused.sentence


def sasl(data: bytes) -> None:
    HISTORIES["sasl"].feed(data)


@cache
def tls_listener() -> Listener:
    return Listener()


def tls(data: bytes) -> None:
    if data:
        tls_listener().feed(data)


TARGETS: dict[str, Target] = {
    "connection": connection,
    "answers": answers,
    "batch": batch_of_a_producer,
    "recovery": recovery,
    "metadata": metadata,
    "groups": groups,
    "logins": logins,
    "sasl": sasl,
    "tls": tls,
}
