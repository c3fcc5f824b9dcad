"""AllocateProducerIds: blocks of ids for idempotent producers. No id is ever given out twice (KIP-730).

The next free id is metadata. A block is given out only after its record is committed.
"""

from __future__ import annotations

from typing import Final

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from heirlog.protocol.records import ProducerIdsRecord
from heirlog.protocol.types import BrokerId

BLOCK_SIZE: Final = 1000


def allocate_producer_ids(
    image: Image, request: AllocateProducerIdsRequest
) -> ControllerResult[AllocateProducerIdsResponse]:
    broker = image.brokers.get(BrokerId(request.broker_id))
    if broker is None or broker.epoch != request.broker_epoch:
        return answer(AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    start = image.next_producer_id
    record = ProducerIdsRecord(broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=start + BLOCK_SIZE)
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return ControllerResult(lambda base_offset: response, [record])
