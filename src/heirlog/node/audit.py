"""The audit log: who changed or deleted what, from where, and what came of it. A line per request, also a refused one.

    {"event": "operation", "logger": "heirlog.node.audit", "principal": "User:alice", "host": "10.0.0.7",
     "client_id": "admin-1", "api": "DeleteTopics", "on": ["orders"], "outcome": {"NONE": 1}}

The node that executes a request writes the line: the active controller for topics, configurations, ACLs, users, quotas,
elections, features and voters, under the principal of the client that a broker forwarded; the broker for records,
groups and offsets. `outcome` counts the error codes of the answer. Names are at most `NAMES_MAX`; values of
configurations, passwords and keys are in none.

    {"event": "operations-left-out", "logger": "heirlog.node.audit", "principal": "User:alice", "host": "10.0.0.7",
     "api": "DeleteTopics", "requests": 420, "on": ["t1", "t2"], "outcome": {"NONE": 420}}

What a client does more often than `node/audit_budget.py` allows is counted, and never left out without a line.

    {"event": "authorization-denied", "logger": "heirlog.node.audit", "principal": "User:alice", "host": "10.0.0.7",
     "operation": "WRITE", "resource_type": "TOPIC", "resource": "orders", "suppressed": 0}

What the ACLs deny, of every API: a line in ten seconds for each user and address, since clients repeat what is denied.
Failed logins are `authentication-failed`, of the logger heirlog.node or heirlog.server. The level of the logger
heirlog.node.audit can be set alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from heirlog.context import Context
from heirlog.env import Cancel, EventLog
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.address import kafka_host
from heirlog.node.audit_budget import AuditBudget, AuditKind, LeftOut
from heirlog.node.error_counts import ErrorCounts, error_counter
from heirlog.protocol.api import APIS
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.rate_limited_log import RateLimitedLog

NAMES_MAX: Final = 10
NAME_CHARS_MAX: Final = 249
"""As long as the name of a topic may be; other names have no limit of their own."""
_NAMES: Final = ("resource_name", "name", "topic", "topic_name", "group_id", "broker_id", "voter_id", "feature")


class AuditLog:
    def __init__(
        self,
        log: EventLog,
        now_ms: Callable[[], int],
        call_later: Callable[[int, Callable[[], None]], Cancel],
    ) -> None:
        self._log = log
        self._log_limited = RateLimitedLog(log, now_ms)
        self._budget = AuditBudget(now_ms, call_later, self._write_left_out)

    def denied(self, context: Context, operation: AclOperation, resource_type: ResourceType, resource: str) -> None:
        host = kafka_host(context.client_host)
        self._log_limited.of_client(
            "info",
            "authorization-denied",
            f"{context.principal}@{host}",
            principal=context.principal,
            host=host,
            operation=operation.name,
            resource_type=resource_type.name,
            resource=resource,
        )

    def write(self, key: int, request: Any, context: Context, response: Any) -> None:
        counts: ErrorCounts = defaultdict(int)
        error_counter(key)(response, counts)
        outcome = {error_code(code).name: count for code, count in sorted(counts.items())}
        names = names_in(request)
        is_executed = ErrorCode.NONE in counts
        kind = AuditKind(context.principal, context.client_host, APIS[key].name, is_executed)
        if not self._budget.allows(kind):
            self._budget.leave_out(kind, names, outcome)
            return
        self._log(
            "info",
            "operation",
            principal=context.principal,
            host=context.client_host,
            client_id=context.client_id,
            api=kind.api,
            on=names,
            outcome=outcome,
        )

    def write_left_out(self) -> None:
        """The node stops: what was counted so far."""
        self._budget.write_all()

    def _write_left_out(self, kind: AuditKind, found: LeftOut) -> None:
        self._log(
            "info",
            "operations-left-out",
            principal=kind.principal,
            host=kind.host,
            api=kind.api,
            requests=found.requests,
            on=found.shown(),
            outcome=dict(found.outcome),
        )


def names_in(request: Any) -> list[str]:
    """The first names of what a request is about; `...` stands for further ones."""
    found: dict[str, None] = {}
    own = _name_of(request)
    if own is None:
        # a delegation token for another user, by which its bearer can do all that this user can
        own = _shown(getattr(request, "owner_principal_name", None) or None)
    if own is not None:
        found[own] = None
    for field in request.FIELDS:
        elements = getattr(request, field)
        for element in elements if isinstance(elements, list) else ():
            name = _shown(element) if isinstance(element, str) else _name_of(element)
            if name is not None:
                found[name] = None
            if len(found) > NAMES_MAX:
                return [*list(found)[:NAMES_MAX], "..."]
    return list(found)


def _name_of(struct: Any) -> str | None:
    fields = getattr(struct, "FIELDS", ())
    return next((_shown(str(getattr(struct, name))) for name in _NAMES if name in fields), None)


def _shown(name: str | None) -> str | None:
    return name if name is None or len(name) <= NAME_CHARS_MAX else f"{name[:NAME_CHARS_MAX]}..."
