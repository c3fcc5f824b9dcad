"""Our decisions beside those of Apache Kafka's own StandardAuthorizer class, on random ACLs and random questions.

Names are short and of few letters, so that literal names, prefixes and wildcards meet often. The class itself answers
(java/Decisions.java): whether a principal may do something with a resource, whether with any resource of a type, and
which ACLs a filter matches. Compared as well: principals as they travel in an Envelope, and addresses as ACLs have
them.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jars

from heirlog.apis.common.envelopes import principal_bytes, principal_text
from heirlog.metadata.acls import Acl, AclFilter, AclOperation, AclPermissionType, Acls, PatternType, ResourceType
from heirlog.metadata.address import kafka_host
from heirlog.metadata.authorizer import Authorizer
from heirlog.protocol.types import Uuid

JAVA = Path(__file__).resolve().parent / "java"
SEED = 966
WORLDS = 400
ACLS_MAX = 14
QUESTIONS = 60
SUPER_USERS = ("User:admin", "Group:ops")
NAMES = ("*", "a", "aa", "ab", "aab", "b", "ba", "*a", "a*", "kafka-cluster", "hardcode", "h", "ä", "a-")
ASKED_NAMES = tuple(name for name in NAMES if name == "*" or not name.startswith("*"))
"""Kafka takes ACLs on every name (`*`) for ACLs on no name that begins with an asterisk: a deviation of ours."""
PRINCIPALS = ("User:alice", "User:bob", "User:*", "User:admin", "Group:ops", "Group:dev", "User:a:b", "User:")
HOSTS = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "*")
TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ANY)
ADDRESSES = ("127.0.0.1", "::1", "::ffff:10.1.2.3", "2001:db8::8:800:200c:417a", "fe80::1", "::", "1:2:3:4:5:6:7:8")

Line = tuple[str, str]
"""A question, and our answer."""


def random_acl(rng: random.Random) -> Acl:
    return Acl(
        rng.choice((ResourceType.TOPIC, ResourceType.TOPIC, *TYPES)),
        rng.choice(NAMES),
        rng.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        rng.choice(PRINCIPALS),
        rng.choice(HOSTS),
        rng.choice(OPERATIONS),
        rng.choice((AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)),
    )


def words(*values: object) -> str:
    return "\t".join(str(int(value)) if isinstance(value, int) else str(value) for value in values)


def shown(acl: Acl) -> str:
    return ",".join(str(part) for part in words_of(acl))


def words_of(acl: Acl) -> tuple[object, ...]:
    return (
        int(acl.resource_type),
        acl.resource_name,
        int(acl.pattern_type),
        acl.principal,
        acl.host,
        int(acl.operation),
        int(acl.permission),
    )


def world(rng: random.Random) -> Iterator[Line]:
    """An authorizer, ACLs that come and go, and questions in between."""
    by_default = rng.random() < 0.3
    acls = Acls()
    authorizer = Authorizer(SUPER_USERS, by_default, lambda: acls)
    yield words("new", ";".join(SUPER_USERS), str(by_default).lower()), "ok"
    held: list[int] = []
    for number in range(rng.randint(0, ACLS_MAX)):
        acl = random_acl(rng)
        if acl in acls.by_id.values():
            # Kafka's controller never makes two of the same
            continue
        acls.put(_id(number), acl)
        held.append(number)
        yield words("put", number, *words_of(acl)), "ok"
        if held and rng.random() < 0.2:
            gone = held.pop(rng.randrange(len(held)))
            acls.put(_id(gone), None)
            yield words("drop", gone), "ok"
        for _ in range(QUESTIONS // ACLS_MAX):
            yield question(rng, authorizer)
    for _ in range(QUESTIONS):
        yield question(rng, authorizer)
        yield search(rng, acls)


def question(rng: random.Random, authorizer: Authorizer) -> Line:
    principal, host = rng.choice(PRINCIPALS[:2] + PRINCIPALS[3:]), rng.choice(HOSTS[:3])
    operation, kind = rng.choice(OPERATIONS), rng.choice((ResourceType.TOPIC, *TYPES))
    if rng.random() < 0.25 and operation is not AclOperation.ALL:
        answer = authorizer.may_any(principal, host, operation, kind)
        line = words("any", principal, host, operation, kind)
    else:
        name = rng.choice(ASKED_NAMES)
        answer = authorizer.may(principal, host, operation, kind, name)
        line = words("may", principal, host, operation, kind, name)
    return line, "ALLOWED" if answer else "DENIED"


def search(rng: random.Random, acls: Acls) -> Line:
    wanted = AclFilter(
        rng.choice((ResourceType.ANY, ResourceType.TOPIC, *TYPES)),
        rng.choice((None, *NAMES)),
        rng.choice((PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)),
        rng.choice((None, None, *PRINCIPALS)),
        rng.choice((None, None, *HOSTS)),
        rng.choice((AclOperation.ANY, AclOperation.ANY, *OPERATIONS)),
        rng.choice((AclPermissionType.ANY, AclPermissionType.DENY, AclPermissionType.ALLOW)),
    )
    asked = (
        wanted.resource_type,
        wanted.resource_name or "-",
        wanted.pattern_type,
        wanted.principal or "-",
        wanted.host or "-",
        wanted.operation,
        wanted.permission,
    )
    return words("find", *asked), " ".join(sorted({shown(acl) for _, acl in acls.matching(wanted)}, key=utf16))


def utf16(text: str) -> bytes:
    """Java's order of strings."""
    return text.encode("utf-16-be")


def _id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def bystanders() -> Iterator[Line]:
    for principal in (*PRINCIPALS, "User:CN=a,O=ü"):
        raw = principal_bytes(principal)
        assert principal_text(raw) == (principal, False)
        yield words("principal", raw.hex()), f"{principal}\t{raw.hex()}"
    for address in ADDRESSES:
        yield words("host", address), kafka_host(address)


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError at the first difference."""
    jars.fetch()
    rng = random.Random(SEED)
    lines = [*bystanders()]
    for _ in range(WORLDS):
        lines += world(rng)
    command = ["java", "-cp", jars.classpath(), str(JAVA / "Decisions.java")]
    given = "".join(f"{line}\n" for line, _ in lines)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300)
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines: {done.stderr[-2000:]}"
    for at, ((line, ours), theirs) in enumerate(zip(lines, answers, strict=True)):
        assert ours == theirs, f"line {at}: {line!r}: Kafka says {theirs!r}, we say {ours!r}"
    allowed = sum(answer == "ALLOWED" for answer in answers)
    denied = sum(answer == "DENIED" for answer in answers)
    return f"{WORLDS} sets of ACLs, {allowed} times allowed, {denied} times denied, the same as Kafka's class"
