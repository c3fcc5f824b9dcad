"""Conversion of ACLs and filters from and to messages and records.

An ACL has two parts: its resource pattern, and the entry that allows or denies an operation. A message holds both, or
many entries of one pattern. In CreateAcls the field of the pattern type has another name.
"""

from __future__ import annotations

from typing import Any, Protocol

from heirlog.metadata.acls import Acl, AclFilter
from heirlog.protocol.messages import CreateAclsRequest


class ResourcePattern(Protocol):
    resource_type: int
    resource_name: str
    pattern_type: int


class AclEntry(Protocol):
    principal: str
    host: str
    operation: int
    permission_type: int


class AclFilterMessage(Protocol):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def acl_of(pattern: ResourcePattern, entry: AclEntry) -> Acl:
    return Acl(
        pattern.resource_type,
        pattern.resource_name,
        pattern.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


def pattern_members(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
    }


def entry_members(acl: Acl) -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def acl_of_creation(creation: CreateAclsRequest.AclCreation) -> Acl:
    return Acl(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def creation_of(acl: Acl) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=acl.pattern_type,
        **entry_members(acl),
    )


def filter_of(said: AclFilterMessage) -> AclFilter:
    return AclFilter(
        said.resource_type_filter,
        said.resource_name_filter,
        said.pattern_type_filter,
        said.principal_filter,
        said.host_filter,
        said.operation,
        said.permission_type,
    )


def filter_members(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }
