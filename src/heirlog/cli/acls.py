"""`heirlog acls list|add|remove`: who may do what, in the words of kafka-acls.

    heirlog acls add --allow-principal User:alice --operation Read --topic orders
    heirlog acls add --allow-principal User:alice --producer --topic orders
    heirlog acls remove --topic orders

An ACL is made of every principal, host, operation and resource that the options name: all combinations of them. The
short forms stand for what a client needs: --producer WRITE, DESCRIBE and CREATE on the topics (with --transactional-id
WRITE and DESCRIBE of it, with --idempotent IDEMPOTENT_WRITE on the cluster), --consumer READ and DESCRIBE on the topics
and READ on the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.option_groups import grouped
from heirlog.cli.render import Json, Yes, confirm, show_rows

if TYPE_CHECKING:
    from heirlog.metadata.acls import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType

app = typer.Typer(help="Show, add and remove access control lists.", no_args_is_help=True)

ANY = "*"

Names = list[str] | None

COLUMNS = {
    "resource_type": "ResourceType",
    "resource_name": "ResourceName",
    "pattern_type": "PatternType",
    "principal": "Principal",
    "host": "Host",
    "operation": "Operation",
    "permission": "Permission",
}


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that the options name, by kind."""

    topics: Annotated[Names, typer.Option("--topic", help="A topic, or * for all topics. May be repeated.")] = None
    groups: Annotated[
        Names, typer.Option("--group", help="A consumer group, or * for all groups. May be repeated.")
    ] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster itself.")] = False
    transactional_ids: Annotated[Names, typer.Option("--transactional-id", help="May be repeated.")] = None
    delegation_tokens: Annotated[Names, typer.Option("--delegation-token", help="May be repeated.")] = None
    users: Annotated[Names, typer.Option("--user-principal", help="A user as a resource. May be repeated.")] = None
    pattern_type: Annotated[
        str, typer.Option("--resource-pattern-type", help="literal or prefixed; to list or remove also match or any.")
    ] = "literal"

    def __iter__(self) -> Iterator[tuple[ResourceType, str]]:
        from heirlog.metadata.acls import CLUSTER_NAME, ResourceType

        for kind, names in (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.CLUSTER, [CLUSTER_NAME] if self.cluster else None),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.delegation_tokens),
            (ResourceType.USER, self.users),
        ):
            for name in names or ():
                yield kind, name

    @property
    def pattern(self) -> PatternType:
        """Raises UsageError."""
        from heirlog.metadata.acls import PatternType

        known = {kind.name: kind for kind in PatternType if kind is not PatternType.UNKNOWN}
        found = known.get(self.pattern_type.upper())
        if found is None:
            raise UsageError(f"--resource-pattern-type {self.pattern_type}: one of {', '.join(sorted(known)).lower()}")
        return found


@dataclass(frozen=True, slots=True)
class Entries:
    """The principals that are allowed or denied, and their hosts."""

    allowed: Annotated[
        Names, typer.Option("--allow-principal", help="A principal as type:name, such as User:alice. May be repeated.")
    ] = None
    denied: Annotated[Names, typer.Option("--deny-principal", help="A principal as type:name. May be repeated.")] = None
    allowed_hosts: Annotated[Names, typer.Option("--allow-host", help="An IP address. Default: all addresses.")] = None
    denied_hosts: Annotated[Names, typer.Option("--deny-host", help="An IP address. Default: all addresses.")] = None

    def __iter__(self) -> Iterator[tuple[AclPermissionType, str, str]]:
        """Raises UsageError: a principal of another form."""
        from heirlog.metadata.acls import AclPermissionType

        for permission, principals, hosts in (
            (AclPermissionType.ALLOW, self.allowed, self.allowed_hosts),
            (AclPermissionType.DENY, self.denied, self.denied_hosts),
        ):
            for principal, host in product(principals or (), hosts or [ANY]):
                if ":" not in principal:
                    raise UsageError(f"{principal!r} is not a principal: write type:name, as in User:alice")
                yield permission, principal.strip(), host.strip()


@dataclass(frozen=True, slots=True)
class Operations:
    """What the entries are about: single operations, or a short form for all that a client needs."""

    named: Annotated[
        Names, typer.Option("--operation", help="An operation, such as Read or Write. Default: All. May be repeated.")
    ] = None
    producer: Annotated[
        bool, typer.Option("--producer", help="All operations that a producer to the topics needs.")
    ] = False
    consumer: Annotated[
        bool, typer.Option("--consumer", help="All operations that a consumer of the topics in the groups needs.")
    ] = False
    idempotent: Annotated[bool, typer.Option("--idempotent", help="With --producer: also allow idempotent writes.")] = (
        False
    )

    @property
    def are_given(self) -> bool:
        return bool(self.named) or self.producer or self.consumer


@app.command("list")
@grouped
def list_acls(
    resources: Resources,
    principal: Annotated[
        Names, typer.Option("--principal", help="Only ACLs of this principal; may be repeated.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show the ACLs of the named resources, or all ACLs."""
    from heirlog.client.acls import describe_acls
    from heirlog.metadata.acls import AclFilter, AclOperation, AclPermissionType

    whose: list[str | None] = [*(principal or ())] or [None]
    filters = [
        AclFilter(kind, name, pattern, who, None, AclOperation.ANY, AclPermissionType.ANY)
        for kind, name, pattern in _named(resources)
        for who in whose
    ]
    found: dict[Acl, None] = {}
    with connected(bootstrap_server) as client:
        for wanted in filters:
            found.update(dict.fromkeys(client.run(describe_acls(wanted))))
    _show(found, as_json)


@app.command("add")
@grouped
def add(
    resources: Resources,
    entries: Entries,
    operations: Operations,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Add ACLs, and show them. ACLs that already exist are kept."""
    from heirlog.client.acls import create_acls
    from heirlog.metadata.acls import PatternType

    if not entries.allowed and not entries.denied:
        raise UsageError("an ACL belongs to a principal: name one with --allow-principal or --deny-principal")
    if resources.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(f"--resource-pattern-type {resources.pattern_type} finds ACLs; to add them: literal, prefixed")
    acls = list(dict.fromkeys(_acls(resources, entries, operations)))
    with connected(bootstrap_server) as client:
        refused = [
            (acl, error) for acl, error in zip(acls, client.run(create_acls(acls)), strict=True) if error is not None
        ]
    if refused:
        acl, error = refused[0]
        raise CommandError(
            f"{len(refused)} of {len(acls)} ACLs were not added, first {acl.principal} on {acl.resource_name}: {error}"
        )
    _show(acls, as_json)


@app.command("remove")
@grouped
def remove(
    resources: Resources,
    entries: Entries,
    operations: Operations,
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Remove the ACLs that the options describe, and show them. Without a principal, remove all ACLs of the
    resources."""
    from heirlog.client.acls import delete_acls
    from heirlog.metadata.acls import AclFilter, AclOperation, AclPermissionType

    pattern = resources.pattern
    if not list(resources):
        raise UsageError("name the resources: --topic, --group, --cluster, --transactional-id, ...")
    filters: list[AclFilter]
    if list(entries):
        filters = [AclFilter.of(acl) for acl in _acls(resources, entries, operations)]
    elif operations.are_given:
        raise UsageError("name the principal whose ACLs to remove, with --allow-principal or --deny-principal")
    else:
        filters = [
            AclFilter(kind, name, pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)
            for kind, name in resources
        ]
    if not yes:
        what = ", ".join(f"{kind.name.lower()} {name}" for kind, name in resources)
        confirm(f"Remove {'these' if list(entries) else 'all'} ACLs of {what}?")
    with connected(bootstrap_server) as client:
        removed = list(client.run(delete_acls(list(dict.fromkeys(filters)))))
    if not removed:
        # a script would believe that it has withdrawn a right
        raise CommandError("no ACL is like that, so none was removed; heirlog acls list shows those that there are")
    _show(removed, as_json)


def _named(resources: Resources) -> list[tuple[int, str | None, PatternType]]:
    """For a filter: everything, if nothing is named."""
    from heirlog.metadata.acls import PatternType, ResourceType

    named: list[tuple[int, str | None, PatternType]] = [(kind, name, resources.pattern) for kind, name in resources]
    return named or [(ResourceType.ANY, None, PatternType.ANY)]


def _acls(resources: Resources, entries: Entries, operations: Operations) -> Iterator[Acl]:
    """Raises UsageError."""
    from heirlog.metadata.acls import Acl, PatternType

    if operations.producer or operations.consumer:
        if operations.named:
            raise UsageError("--producer and --consumer already choose the operations: remove --operation")
        places = list(_convenient(resources, operations))
    else:
        places = [
            (kind, name, operation)
            for kind, name in resources
            for operation in (_operation(text, kind) for text in operations.named or ["All"])
        ]
    if not places:
        raise UsageError("name the resources: --topic, --group, --cluster, --transactional-id, ...")
    for (kind, name, operation), (permission, principal, host) in product(places, list(entries)):
        # the cluster has one name, and no prefixes of it
        own = PatternType.LITERAL if kind.name == "CLUSTER" else resources.pattern
        yield Acl(kind, name, own, principal, host, operation, permission)


def _convenient(resources: Resources, operations: Operations) -> Iterator[tuple[ResourceType, str, AclOperation]]:
    """Raises UsageError."""
    from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, ResourceType

    if not resources.topics or (operations.consumer and not resources.groups):
        raise UsageError("--producer needs --topic, --consumer needs --topic and --group")
    if operations.producer:
        for topic, operation in product(
            resources.topics, (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
        ):
            yield ResourceType.TOPIC, topic, operation
        for name, operation in product(resources.transactional_ids or (), (AclOperation.WRITE, AclOperation.DESCRIBE)):
            yield ResourceType.TRANSACTIONAL_ID, name, operation
        if operations.idempotent:
            yield ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE
    if operations.consumer:
        for topic, operation in product(resources.topics, (AclOperation.READ, AclOperation.DESCRIBE)):
            yield ResourceType.TOPIC, topic, operation
        for group in resources.groups or ():
            yield ResourceType.GROUP, group, AclOperation.READ


def _operation(text: str, kind: ResourceType) -> AclOperation:
    """Raises UsageError: not an operation, or not one of this kind of resource."""
    from heirlog.metadata.acls import OPERATIONS, AclOperation

    known = {operation.name.replace("_", ""): operation for operation in AclOperation}
    operation = known.get(text.replace("_", "").replace("-", "").upper(), AclOperation.UNKNOWN)
    if operation is AclOperation.ALL:
        return operation
    of_kind = OPERATIONS[kind]
    if operation not in of_kind:
        names = ", ".join(_pascal(each.name) for each in (*of_kind, AclOperation.ALL))
        raise UsageError(f"--operation {text}: of a {kind.name.lower()} there are {names}")
    return operation


def _show(acls: Iterable[Acl], as_json: bool) -> None:
    from heirlog.metadata.acls import AclOperation, AclPermissionType, PatternType, ResourceType

    def row(acl: Acl) -> dict[str, Any]:
        return {
            "resource_type": ResourceType(acl.resource_type).name,
            "resource_name": acl.resource_name,
            "pattern_type": PatternType(acl.pattern_type).name,
            "principal": acl.principal,
            "host": acl.host,
            "operation": AclOperation(acl.operation).name,
            "permission": AclPermissionType(acl.permission).name,
        }

    rows = sorted((row(acl) for acl in acls), key=lambda one: tuple(one.values()))
    if rows or as_json:
        show_rows(COLUMNS, rows, as_json)
    else:
        print("no ACL")


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
