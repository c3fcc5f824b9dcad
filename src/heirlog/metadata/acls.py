"""Access control lists: the parts of an ACL, which ACLs apply to a resource, and which ones a filter matches.

    ACL      allow or deny | an operation or ALL | to a principal or `User:*` | from a host or `*`
             on a LITERAL name (the name `*` is every name), or on every name that begins with a PREFIXED one

`Acls` has the ACLs of an image, indexed by their resource names and by principal, so that a decision only looks at the
few that apply to its resource and its client: a cluster may have an ACL on `*` for each of its users, and a client may
ask for as many names as it likes. `authorizer.py` has the decisions.

Traps. A PREFIXED name `*` is not a wildcard. Numbers from a newer version are kept, because the snapshot must contain
them; in comparisons they are equal to no other number.

Source: KIP-11, KIP-290 (prefixes), KIP-801 (ACLs as metadata records); numbers on the wire as Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from typing import Final, TypeAlias

from heirlog.protocol.types import Uuid

ANY_HOST: Final = "*"
ANY_NAME: Final = "*"
ANY_USER: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name that the resource type CLUSTER has."""


class _Number(IntEnum):
    @classmethod
    def _missing_(cls, value: object) -> _Number:
        """A number from a newer version."""
        return cls(0)


class ResourceType(_Number):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Number):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """In a filter: every ACL that applies to the name, wildcards and prefixes included."""
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Number):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_Number):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations of each resource type. Descriptions of topics, groups and the cluster list the allowed ones (KIP-430).
"""


NOT_ASKED: Final = -(2**31)
"""In a response: the client did not ask which operations it may do."""


def bit_field(operations: Iterable[AclOperation]) -> int:
    """Operations as a bit field in responses: bit n for the operation with the number n."""
    return sum(1 << operation for operation in operations)


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """Fields are the numbers and texts of the record."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class AclFilter:
    """The ACLs that a filter matches; None and ANY match every value. The pattern type MATCH applies to the name."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @classmethod
    def of(cls, acl: Acl) -> AclFilter:
        """The filter that matches only this ACL."""
        return cls(
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission,
        )

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermissionType.ANY, acl.permission)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        name = self.resource_name
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if name is None or name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name == ANY_NAME


_ByPrincipal: TypeAlias = dict[str, dict[Uuid, Acl]]


class Acls:
    """The ACLs of an image. `version` grows with every change, and earlier decisions are then invalid."""

    __slots__ = ("_literal", "_prefix_lengths", "_prefixed", "by_id", "version")

    def __init__(self) -> None:
        self.by_id: dict[Uuid, Acl] = {}
        self.version = 0
        self._literal: dict[tuple[int, str], _ByPrincipal] = {}
        self._prefixed: dict[tuple[int, str], _ByPrincipal] = {}
        self._prefix_lengths: dict[int, dict[int, int]] = {}
        """The number of prefixes of each length, by resource type."""

    def copy(self) -> Acls:
        other = Acls()
        for acl_id, acl in self.by_id.items():
            other.put(acl_id, acl)
        return other

    def put(self, acl_id: Uuid, acl: Acl | None) -> None:
        """Set an ACL; None removes it."""
        before = self.by_id.pop(acl_id, None)
        if before is not None:
            self._leave(acl_id, before)
        if acl is not None:
            self.by_id[acl_id] = acl
            self._enter(acl_id, acl)
        self.version += 1

    def matching_resource(self, resource_type: int, name: str) -> Iterator[Acl]:
        """The ACLs of this name, of a prefix of it, or of every name."""
        for by_principal in self._of_name(resource_type, name):
            for acls in by_principal.values():
                yield from acls.values()

    def matching_principal(self, resource_type: int, name: str, principal: str) -> Iterator[Acl]:
        """Those of `matching_resource` that are for this principal or for every user."""
        for by_principal in self._of_name(resource_type, name):
            for each in (principal, ANY_USER):
                yield from by_principal.get(each, {}).values()

    def has_any(self, resource_type: int, name: str) -> bool:
        """Whether `matching_resource` has an ACL."""
        return next(self._of_name(resource_type, name), None) is not None

    def _of_name(self, resource_type: int, name: str) -> Iterator[_ByPrincipal]:
        """None of them empty."""
        for literal in (name, ANY_NAME) if name != ANY_NAME else (name,):
            if (found := self._literal.get((resource_type, literal))) is not None:
                yield found
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name) and (found := self._prefixed.get((resource_type, name[:length]))) is not None:
                yield found

    def matching(self, wanted: AclFilter) -> list[tuple[Uuid, Acl]]:
        return [(acl_id, acl) for acl_id, acl in self._candidates(wanted) if wanted.matches(acl)]

    def _candidates(self, wanted: AclFilter) -> Iterable[tuple[Uuid, Acl]]:
        """Few, where the filter names its resource: tools send thousands of such filters in one request."""
        is_one_pattern = wanted.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        if not is_one_pattern or wanted.resource_name is None or wanted.resource_type == ResourceType.ANY:
            return self.by_id.items()
        by_name = self._literal if wanted.pattern_type == PatternType.LITERAL else self._prefixed
        by_principal = by_name.get((wanted.resource_type, wanted.resource_name), {})
        if wanted.principal is not None:
            return by_principal.get(wanted.principal, {}).items()
        return chain.from_iterable(acls.items() for acls in by_principal.values())

    def _enter(self, acl_id: Uuid, acl: Acl) -> None:
        key = (acl.resource_type, acl.resource_name)
        if acl.pattern_type == PatternType.PREFIXED:
            if key not in self._prefixed:
                lengths = self._prefix_lengths.setdefault(acl.resource_type, {})
                lengths[len(acl.resource_name)] = lengths.get(len(acl.resource_name), 0) + 1
            self._prefixed.setdefault(key, {}).setdefault(acl.principal, {})[acl_id] = acl
        elif acl.pattern_type == PatternType.LITERAL:
            self._literal.setdefault(key, {}).setdefault(acl.principal, {})[acl_id] = acl

    def _leave(self, acl_id: Uuid, acl: Acl) -> None:
        key = (acl.resource_type, acl.resource_name)
        if acl.pattern_type == PatternType.PREFIXED:
            if _was_last(self._prefixed, key, acl_id, acl):
                lengths = self._prefix_lengths[acl.resource_type]
                lengths[len(acl.resource_name)] -= 1
                if not lengths[len(acl.resource_name)]:
                    del lengths[len(acl.resource_name)]
        elif acl.pattern_type == PatternType.LITERAL:
            _was_last(self._literal, key, acl_id, acl)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acls) and self.by_id == other.by_id

    __hash__ = None  # type: ignore[assignment]  # mutable


def _was_last(by_name: dict[tuple[int, str], _ByPrincipal], key: tuple[int, str], acl_id: Uuid, acl: Acl) -> bool:
    """Take an ACL out; whether its name has none any more."""
    by_principal = by_name[key]
    there = by_principal[acl.principal]
    del there[acl_id]
    if not there:
        del by_principal[acl.principal]
    if not by_principal:
        del by_name[key]
    return not by_principal
