"""AlterClientQuotas: each entity is checked on its own, and all quotas of one entity are set together or not at all.

An entity that is refused does not prevent the changes of the others in the request. To set the value that is stored, or
to remove a quota that does not exist, succeeds and writes no record.

Deviations. An entity that comes twice is refused at each of its places, and nothing of it is written: Apache Kafka
writes the first and answers for both with an error. A value must be a finite number: Kafka accepts NaN for rates. An
address must be written as one: Kafka's controller would look a host name up in the DNS.

Source: KIP-546, KIP-612.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Final

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP, too_large
from heirlog.metadata.address import UNNAMED_HOST, host_bytes
from heirlog.metadata.as_records import client_quota_record
from heirlog.metadata.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    IP,
    IP_KEYS,
    USER,
    USER_AND_CLIENT_KEYS,
    Entity,
    entity_of,
)
from heirlog.metadata.definition import INT_MAX
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from heirlog.protocol.records import ClientQuotaRecord

Asked = AlterClientQuotasRequest.EntryData
Op = AlterClientQuotasRequest.OpData
WHOLE_NUMBER_MAX: Final = float(2**63 - 1)
_WHOLE: Final = 1e-6
"""A value this near to a whole number counts as one, as on Apache Kafka."""


def alter_client_quotas(image: Image, request: AlterClientQuotasRequest) -> ControllerResult[AlterClientQuotasResponse]:
    """Returns a record for each quota that changes, and one result per entity, in the order of the request."""
    how_often = Counter(_parts(asked) for asked in request.entries)
    records: list[ClientQuotaRecord] = []
    results = []
    for asked in request.entries:
        try:
            if how_often[_parts(asked)] > 1:
                raise _invalid("Ignoring duplicate entity: name each entity once, with all its quotas")
            records += _records(image, asked)
        except KafkaError as error:
            results.append(result_of(asked, error.code, error.message))
        else:
            results.append(result_of(asked, ErrorCode.NONE, None))
    if len(records) > MAX_RECORDS_PER_USER_OP:
        refusal = too_large("Too many quotas to change in one request", "change them in several requests")
        refused = [result_of(asked, refusal.code, refusal.message) for asked in request.entries]
        return answer(AlterClientQuotasResponse(entries=refused))
    response = AlterClientQuotasResponse(entries=results)
    return ControllerResult(lambda base_offset: response, [] if request.validate_only else list(records))


def result_of(asked: Asked, code: ErrorCode, message: str | None) -> AlterClientQuotasResponse.EntryData:
    return AlterClientQuotasResponse.EntryData(
        error_code=code,
        error_message=message,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in asked.entity
        ],
    )


def _parts(asked: Asked) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in asked.entity)


def _records(image: Image, asked: Asked) -> list[ClientQuotaRecord]:
    """Raises KafkaError INVALID_REQUEST."""
    entity = _checked_entity([(part.entity_type, part.entity_name) for part in asked.entity])
    keys = IP_KEYS if entity[0][0] == IP else USER_AND_CLIENT_KEYS
    repeated = [key for key, count in Counter(op.key for op in asked.ops).items() if count > 1]
    if repeated:
        raise _invalid(f"Duplicate quota key {repeated[0]}: name each quota of an entity once")
    records = []
    for op in asked.ops:
        before = image.client_quotas.value(entity, op.key)
        after = None if op.remove else _checked_value(keys, op)
        if after != before:
            records.append(client_quota_record(entity, op.key, after))
    return records


def _checked_entity(parts: Sequence[tuple[str, str | None]]) -> Entity:
    """Raises KafkaError INVALID_REQUEST."""
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    names: dict[str, str | None] = {}
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if kind in names:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        names[kind] = name
    if IP in names:
        if len(names) > 1:
            raise _invalid("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
        address = names[IP]
        if address is not None and address != "0.0.0.0" and host_bytes(address) == UNNAMED_HOST:
            raise _invalid(f"{address} is not a valid IP address; a quota needs the address itself, not a host name")
    return entity_of(names.items())


def _checked_value(keys: dict[str, bool], op: Op) -> float:
    """Raises KafkaError INVALID_REQUEST."""
    if op.key not in keys:
        raise _invalid(f"Invalid configuration key {op.key}")
    if op.value <= 0:
        raise _invalid(f"Quota {op.key} must be greater than 0")
    if not isfinite(op.value):
        raise _invalid(f"Quota {op.key} must be a number")
    if keys[op.key]:
        if op.value < 1:
            raise _invalid(f"{op.key} must be at least 1")
        if op.key == CONNECTION_CREATION_RATE and op.value > INT_MAX:
            raise _invalid(f"Proposed value for {op.key} is too large for an INT.")
        if op.value > WHOLE_NUMBER_MAX:
            raise _invalid(f"Proposed value for {op.key} is too large for a LONG.")
        if op.value % 1.0 > _WHOLE:
            raise _invalid(f"{op.key} cannot be a fractional value.")
    return op.value


def _invalid(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, sentence)
