"""AllocateProducerIds: blocks of ids for idempotent producers. No id is ever given out twice (KIP-730).

The next free id is metadata. A block is given out only after its record is committed. A copy of older metadata does
not know which blocks were given out later. With an id of such a block, the batches of a producer would be taken for
repetitions of another one's. So a wide range is left out.
"""

from __future__ import annotations

from typing import Final

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from heirlog.protocol.records import ProducerIdsRecord
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerId

BLOCK_SIZE: Final = 1000
LEFT_OUT: Final = BLOCK_SIZE << 20
"""Ids that may have been given out by controllers whose metadata are lost."""


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


def after_older_metadata(image: Image) -> ProducerIdsRecord:
    """Leave out what may have been given out since the copy was made."""
    next_id = max(image.next_producer_id, 0) + LEFT_OUT
    return ProducerIdsRecord(broker_id=BrokerId(-1), broker_epoch=NO_BROKER_EPOCH, next_producer_id=next_id)
