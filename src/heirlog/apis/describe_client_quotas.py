"""DescribeClientQuotas (key 48): the quotas of the entities that a filter matches (KIP-546, KIP-612).

v0, v1 flexible. Answered from the broker's own image. A filter has at most one condition for each type of entity. An
entity is matched if it has every type that a condition names, with the name that is asked for; with `Strict` it must
have no other type. So no condition at all matches everything, and with `Strict` nothing.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.ports import HasImage
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.client_quotas import CLIENT_ID, IP, USER, Entity
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

EXACT, DEFAULT, ANY = range(3)
_TITLES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}


def handle(
    node: HasImage, request: DescribeClientQuotasRequest, context: Context
) -> Reply[DescribeClientQuotasResponse]:
    try:
        conditions = _conditions(request)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    return DescribeClientQuotasResponse(
        entries=[
            DescribeClientQuotasResponse.EntryData(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                values=[
                    DescribeClientQuotasResponse.ValueData(key=key, value=value)
                    for key, value in sorted(quotas.items())
                ],
            )
            for entity, quotas in node.image.client_quotas.by_entity.items()
            if _matches(entity, conditions, request.strict)
        ]
    )


def _conditions(request: DescribeClientQuotasRequest) -> dict[str, tuple[int, str | None]]:
    """By type of entity. Raises KafkaError."""
    conditions: dict[str, tuple[int, str | None]] = {}
    for asked in request.components:
        kind = asked.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in conditions:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if asked.match_type not in _TITLES:
            raise _invalid(f"Unknown match type {asked.match_type}")
        if asked.match_type == EXACT and asked.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if asked.match_type != EXACT and asked.match is not None:
            raise _invalid(f"Request specified {_TITLES[asked.match_type]}, but also specified a match string.")
        conditions[kind] = asked.match_type, asked.match
    if IP in conditions and len(conditions) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return conditions


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _matches(entity: Entity, conditions: dict[str, tuple[int, str | None]], strict: bool) -> bool:
    names = dict(entity)
    if strict and len(names) != len(conditions):
        return False
    return all(
        kind in names and (match_type == ANY or names[kind] == name) for kind, (match_type, name) in conditions.items()
    )


def refused(request: DescribeClientQuotasRequest, code: ErrorCode) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=sentence(code), entries=None)


API = Api(
    key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    refused=refused,
    broker=Served((0, 1), handle, needs=(Need(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)),
    has_large_answer=True,
)
