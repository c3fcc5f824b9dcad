"""Authorization: the decisions of Apache Kafka's StandardAuthorizer, from the ACLs of an image.

    super user                                                  yes, whatever the ACLs say
    an ACL denies this operation (or ALL)                       no
    an ACL allows it (or ALL, or an operation that implies it)  yes
    there are ACLs for the resource, and none of them applies   no
    there is no ACL for the resource                            `allow.everyone.if.no.acl.found`

An ACL applies to a request if its principal is the client's or `User:*`, and its host the client's or `*`. Allowing
READ, WRITE, DELETE or ALTER allows DESCRIBE, and ALTER_CONFIGS allows DESCRIBE_CONFIGS. Denying an operation denies no
other one.

Decisions are cached until the next change of any ACL. The cache holds at most `DECISIONS_MAX` and none for a long name,
because clients choose the names.

Source: KIP-11, KIP-290, KIP-801; KIP-679 for "any resource of a type".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from heirlog.metadata.acls import (
    ANY_HOST,
    ANY_NAME,
    ANY_USER,
    OPERATIONS,
    Acl,
    AclOperation,
    AclPermissionType,
    Acls,
    PatternType,
    ResourceType,
    bit_field,
)

DECISIONS_MAX: Final = 10_000
REMEMBERED_NAME_MAX: Final = 256
"""Characters: a topic's name has at most 249."""
HARDCODED_NAME: Final = "hardcode"
"""The name that Kafka uses to check whether an operation is allowed on any name."""
_Decisions: TypeAlias = dict[tuple[str, str, int, int, str | None], bool]
"""By principal, host, operation, resource type and name; without a name: of any resource of the type."""
_IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: frozenset((AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)),
    AclOperation.DESCRIBE_CONFIGS: frozenset((AclOperation.ALTER_CONFIGS,)),
}
_NOTHING: Final[frozenset[AclOperation]] = frozenset()


def decide(acls: Iterable[Acl], principal: str, host: str, operation: AclOperation) -> bool:
    """acls: those of the resource; any for others than the principal do not count."""
    implied_by = _IMPLIED_BY.get(operation, _NOTHING)
    allowed = False
    for acl in acls:
        if acl.principal not in (principal, ANY_USER) or acl.host not in (host, ANY_HOST):
            continue
        named = acl.operation in (operation, AclOperation.ALL)
        if acl.permission == AclPermissionType.ALLOW:
            allowed = allowed or named or acl.operation in implied_by
        elif named:
            return False
    return allowed


def decide_any(acls: Iterable[Acl], principal: str, host: str, operation: AclOperation, resource_type: int) -> bool:
    """Whether there is some resource of the type that the principal may `operation`, as Kafka finds it.

    Stricter than `decide`: only ACLs for the operation itself, or for ALL, count.
    """
    said = [
        acl
        for acl in acls
        if acl.resource_type == resource_type
        and acl.principal in (principal, ANY_USER)
        and acl.host in (host, ANY_HOST)
        and acl.operation in (operation, AclOperation.ALL)
    ]
    denied = {(acl.pattern_type, acl.resource_name) for acl in said if acl.permission == AclPermissionType.DENY}
    if (PatternType.LITERAL, ANY_NAME) in denied:
        return False
    return any(not _is_dominated(acl, denied) for acl in said if acl.permission == AclPermissionType.ALLOW)


def _is_dominated(allowing: Acl, denied: set[tuple[int, str]]) -> bool:
    """Whether every name that the ACL allows is denied by another one."""
    name = allowing.resource_name
    if allowing.pattern_type == PatternType.LITERAL:
        if name == ANY_NAME:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


class Authorizer:
    """The authorizer of one node.

    acls: those of the current image. is_loaded: that image has everything that was committed when the node started;
    until then only super users are served (`Node`).
    """

    def __init__(self, super_users: Iterable[str], allows_by_default: bool, acls: Callable[[], Acls]) -> None:
        self._super_users = frozenset(super_users)
        self._allows_by_default = allows_by_default
        self._acls = acls
        self.is_loaded = False
        self._decisions: _Decisions = {}
        self._decided_on: Acls | None = None
        self._version = -1

    def is_super_user(self, principal: str) -> bool:
        return principal in self._super_users

    def may(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        if principal in self._super_users:
            return True
        decisions = self._remembered()
        key = (principal, host, operation, resource_type, name)
        decision = decisions.get(key)
        if decision is None:
            acls = self._acls()
            decision = decide(acls.matching_principal(resource_type, name, principal), principal, host, operation)
            if not decision and self._allows_by_default:
                decision = not acls.has_any(resource_type, name)
            if len(name) <= REMEMBERED_NAME_MAX:
                decisions[key] = decision
        return decision

    def may_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether there is some resource of this type that the principal may `operation`."""
        if self.may(principal, host, operation, resource_type, HARDCODED_NAME):
            return True
        decisions = self._remembered()
        key = (principal, host, operation, resource_type, None)
        decision = decisions.get(key)
        if decision is None:
            decision = decide_any(self._acls().by_id.values(), principal, host, operation, resource_type)
            decisions[key] = decision
        return decision

    def operations(self, principal: str, host: str, resource_type: ResourceType, name: str) -> int:
        """Every operation that is allowed on the resource, as a bit field."""
        return bit_field(self._allowed(principal, host, resource_type, name))

    def _allowed(self, principal: str, host: str, resource_type: ResourceType, name: str) -> Iterator[AclOperation]:
        return (each for each in OPERATIONS[resource_type] if self.may(principal, host, each, resource_type, name))

    def _remembered(self) -> _Decisions:
        """The cached decisions for the current ACLs, with room for one more."""
        acls = self._acls()
        if acls is not self._decided_on or acls.version != self._version or len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
            self._decided_on, self._version = acls, acls.version
        return self._decisions
