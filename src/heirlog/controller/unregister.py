"""UnregisterBroker: removes a broker that is not coming back from the cluster.

The broker leaves every ISR, ELR and LastKnownELR before its registration is removed. Otherwise partitions would wait
for an eligible replica that never comes back. Its replicas stay in the assignments until an operator reassigns them. A
broker that still runs may register again, as a new one.

Source: KIP-631; KIP-966 (lists name only brokers that can come back).
"""

from __future__ import annotations

from collections.abc import Iterable

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.sessions import Sessions
from heirlog.controller.turns import in_turns
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse
from heirlog.protocol.records import UnregisterBrokerRecord
from heirlog.protocol.types import BrokerId, PartitionKey


def unregister_broker(
    image: Image, static: StaticConfig, sessions: Sessions, request: UnregisterBrokerRequest
) -> ControllerResult[UnregisterBrokerResponse]:
    """Returns the records of one request: partitions first, so that no prefix leaves an unknown broker in a list."""
    broker_id = BrokerId(request.broker_id)
    registered = image.brokers.get(broker_id)
    if registered is None:
        return answer(
            UnregisterBrokerResponse(
                error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
                error_message=f"Broker ID {broker_id} is not currently registered",
            )
        )
    response = UnregisterBrokerResponse(error_message="")
    gone = UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=registered.epoch)

    def is_registered() -> bool:
        return image.brokers.get(broker_id) == registered

    def change(partitions: Iterable[PartitionKey]) -> Changes:
        return Leadership(image, static).broker_unregistered(broker_id, partitions)

    def last(*_: object) -> ControllerResult[UnregisterBrokerResponse]:
        if not is_registered():
            # between two turns it was fenced, or registered again: nothing of that may be lost
            return unregister_broker(image, static, sessions, request)
        changes = change(Leadership(image, static).named_in_lists(broker_id))
        sessions.end(broker_id)
        return ControllerResult(lambda base_offset: response, [*changes.records, gone], changes.elections)

    return in_turns(Leadership(image, static).named_in_lists(broker_id), change, last, is_wanted=is_registered)
