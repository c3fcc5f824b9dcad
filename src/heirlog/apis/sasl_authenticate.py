"""SaslAuthenticate (key 36): a token of the SASL mechanism that the client has chosen (KIP-152).

v1 the lifetime of the session (KIP-368), v2 flexible. On a listener with SASL it goes to `node.sasl_connection` until
the client is authenticated; here it is out of place.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Served
from heirlog.context import Context
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse

OUT_OF_PLACE = "SaslAuthenticate request received after successful authentication"


def handle(node: object, request: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=OUT_OF_PLACE)


API = Api(
    key=ApiKey.SASL_AUTHENTICATE,
    broker=Served((0, 2), handle),
    controller=Served((0, 2), handle),
)
