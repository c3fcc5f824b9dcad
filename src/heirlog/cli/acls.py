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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.render import Json, show_rows

if TYPE_CHECKING:
    from heirlog.metadata.acls import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType

app = typer.Typer(help="Show, add and remove access control lists.", no_args_is_help=True)

ANY = "*"

Names = list[str] | None
Topics = Annotated[Names, typer.Option("--topic", help="A topic, or * for all topics. May be repeated.")]
Groups = Annotated[Names, typer.Option("--group", help="A consumer group, or * for all groups. May be repeated.")]
TransactionalIds = Annotated[Names, typer.Option("--transactional-id", help="May be repeated.")]
DelegationTokens = Annotated[Names, typer.Option("--delegation-token", help="May be repeated.")]
UserPrincipals = Annotated[Names, typer.Option("--user-principal", help="A user as a resource. May be repeated.")]
OnCluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Pattern = Annotated[
    str, typer.Option("--resource-pattern-type", help="literal or prefixed; to list or remove also match or any.")
]
Allowed = Annotated[
    Names, typer.Option("--allow-principal", help="A principal as type:name, such as User:alice. May be repeated.")
]
Denied = Annotated[Names, typer.Option("--deny-principal", help="A principal as type:name. May be repeated.")]
AllowedHosts = Annotated[Names, typer.Option("--allow-host", help="An IP address. Default: all addresses.")]
DeniedHosts = Annotated[Names, typer.Option("--deny-host", help="An IP address. Default: all addresses.")]
Operations = Annotated[
    Names, typer.Option("--operation", help="An operation, such as Read or Write. Default: All. May be repeated.")
]
Producer = Annotated[bool, typer.Option("--producer", help="All operations that a producer to the topics needs.")]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="All operations that a consumer of the topics in the groups needs.")
]
Idempotent = Annotated[bool, typer.Option("--idempotent", help="With --producer: also allow idempotent writes.")]

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
    """What the options name, by kind."""

    topics: Sequence[str]
    groups: Sequence[str]
    transactional_ids: Sequence[str]
    delegation_tokens: Sequence[str]
    users: Sequence[str]
    cluster: bool

    def __iter__(self) -> Iterator[tuple[ResourceType, str]]:
        from heirlog.metadata.acls import CLUSTER_NAME, ResourceType

        for kind, names in (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.CLUSTER, [CLUSTER_NAME] if self.cluster else []),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.delegation_tokens),
            (ResourceType.USER, self.users),
        ):
            for name in names:
                yield kind, name


@dataclass(frozen=True, slots=True)
class Entries:
    """Who is allowed or denied what, from where."""

    allowed: Sequence[str]
    denied: Sequence[str]
    allowed_hosts: Sequence[str]
    denied_hosts: Sequence[str]

    def __iter__(self) -> Iterator[tuple[AclPermissionType, str, str]]:
        """Raises UsageError: a principal of another form."""
        from heirlog.metadata.acls import AclPermissionType

        for permission, principals, hosts in (
            (AclPermissionType.ALLOW, self.allowed, self.allowed_hosts),
            (AclPermissionType.DENY, self.denied, self.denied_hosts),
        ):
            for principal, host in product(principals, hosts or [ANY]):
                if ":" not in principal:
                    raise UsageError(f"{principal!r} is not a principal: write type:name, as in User:alice")
                yield permission, principal.strip(), host.strip()


@app.command("list")
def list_acls(
    topic: Topics = None,
    group: Groups = None,
    cluster: OnCluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: Pattern = "literal",
    principal: Annotated[
        Names, typer.Option("--principal", help="Only ACLs of this principal; may be repeated.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show the ACLs of the named resources, or all ACLs."""
    from heirlog.client.acls import describe_acls
    from heirlog.metadata.acls import AclFilter, AclOperation, AclPermissionType

    resources = _resources(topic, group, cluster, transactional_id, delegation_token, user_principal)
    whose: list[str | None] = [*(principal or ())] or [None]
    filters = [
        AclFilter(kind, name, pattern, who, None, AclOperation.ANY, AclPermissionType.ANY)
        for kind, name, pattern in _named(resources, resource_pattern_type)
        for who in whose
    ]
    found: dict[Acl, None] = {}
    with connected(bootstrap_server) as client:
        for wanted in filters:
            found.update(dict.fromkeys(client.run(describe_acls(wanted))))
    _show(found, as_json)


@app.command("add")
def add(
    topic: Topics = None,
    group: Groups = None,
    cluster: OnCluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: Pattern = "literal",
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    allow_host: AllowedHosts = None,
    deny_host: DeniedHosts = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Add ACLs, and show them. ACLs that already exist are kept."""
    from heirlog.client.acls import create_acls
    from heirlog.metadata.acls import PatternType

    resources = _resources(topic, group, cluster, transactional_id, delegation_token, user_principal)
    entries = Entries(allow_principal or (), deny_principal or (), allow_host or (), deny_host or ())
    if not allow_principal and not deny_principal:
        raise UsageError("an ACL belongs to a principal: name one with --allow-principal or --deny-principal")
    pattern = _pattern(resource_pattern_type)
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(f"--resource-pattern-type {resource_pattern_type} finds ACLs; to add them: literal, prefixed")
    acls = list(dict.fromkeys(_acls(resources, entries, pattern, operation, producer, consumer, idempotent)))
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
def remove(
    topic: Topics = None,
    group: Groups = None,
    cluster: OnCluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: Pattern = "literal",
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    allow_host: AllowedHosts = None,
    deny_host: DeniedHosts = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    force: Annotated[bool, typer.Option("--force", help="Do not ask for confirmation.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Remove the ACLs that the options describe, and show them. Without a principal, remove all ACLs of the
    resources."""
    from heirlog.client.acls import delete_acls
    from heirlog.metadata.acls import AclFilter, AclOperation, AclPermissionType

    resources = _resources(topic, group, cluster, transactional_id, delegation_token, user_principal)
    entries = Entries(allow_principal or (), deny_principal or (), allow_host or (), deny_host or ())
    pattern = _pattern(resource_pattern_type)
    if not list(resources):
        raise UsageError("name the resources: --topic, --group, --cluster, --transactional-id, ...")
    filters: list[AclFilter]
    if list(entries):
        filters = [
            AclFilter.of(acl) for acl in _acls(resources, entries, pattern, operation, producer, consumer, idempotent)
        ]
    elif operation or producer or consumer:
        raise UsageError("name the principal whose ACLs to remove, with --allow-principal or --deny-principal")
    else:
        filters = [
            AclFilter(kind, name, pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)
            for kind, name in resources
        ]
    if not force:
        what = ", ".join(f"{kind.name.lower()} {name}" for kind, name in resources)
        typer.confirm(f"Remove {'these' if list(entries) else 'all'} ACLs of {what}?", abort=True, err=True)
    with connected(bootstrap_server) as client:
        removed = client.run(delete_acls(list(dict.fromkeys(filters))))
    _show(removed, as_json)


def _resources(
    topics: Names, groups: Names, cluster: bool, transactional_ids: Names, tokens: Names, users: Names
) -> Resources:
    return Resources(topics or (), groups or (), transactional_ids or (), tokens or (), users or (), cluster)


def _named(resources: Resources, pattern: str) -> list[tuple[int, str | None, PatternType]]:
    """For a filter: everything, if nothing is named."""
    from heirlog.metadata.acls import PatternType, ResourceType

    named: list[tuple[int, str | None, PatternType]] = [(kind, name, _pattern(pattern)) for kind, name in resources]
    return named or [(ResourceType.ANY, None, PatternType.ANY)]


def _acls(
    resources: Resources,
    entries: Entries,
    pattern: PatternType,
    operations: Names,
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> Iterator[Acl]:
    """Raises UsageError."""
    from heirlog.metadata.acls import Acl, PatternType

    if producer or consumer:
        if operations:
            raise UsageError("--producer and --consumer already choose the operations: remove --operation")
        places = list(_convenient(resources, producer, consumer, idempotent))
    else:
        places = [
            (kind, name, operation)
            for kind, name in resources
            for operation in (_operation(text, kind) for text in operations or ["All"])
        ]
    if not places:
        raise UsageError("name the resources: --topic, --group, --cluster, --transactional-id, ...")
    for (kind, name, operation), (permission, principal, host) in product(places, list(entries)):
        # the cluster has one name, and no prefixes of it
        own = PatternType.LITERAL if kind.name == "CLUSTER" else pattern
        yield Acl(kind, name, own, principal, host, operation, permission)


def _convenient(
    resources: Resources, producer: bool, consumer: bool, idempotent: bool
) -> Iterator[tuple[ResourceType, str, AclOperation]]:
    """Raises UsageError."""
    from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, ResourceType

    if not resources.topics or (consumer and not resources.groups):
        raise UsageError("--producer needs --topic, --consumer needs --topic and --group")
    if producer:
        for topic, operation in product(
            resources.topics, (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
        ):
            yield ResourceType.TOPIC, topic, operation
        for name, operation in product(resources.transactional_ids, (AclOperation.WRITE, AclOperation.DESCRIBE)):
            yield ResourceType.TRANSACTIONAL_ID, name, operation
        if idempotent:
            yield ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE
    if consumer:
        for topic, operation in product(resources.topics, (AclOperation.READ, AclOperation.DESCRIBE)):
            yield ResourceType.TOPIC, topic, operation
        for group in resources.groups:
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


def _pattern(text: str) -> PatternType:
    """Raises UsageError."""
    from heirlog.metadata.acls import PatternType

    known = {kind.name: kind for kind in PatternType if kind is not PatternType.UNKNOWN}
    found = known.get(text.upper())
    if found is None:
        raise UsageError(f"--resource-pattern-type {text}: one of {', '.join(sorted(known)).lower()}")
    return found


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
