"""SaslHandshake (key 17): which SASL mechanism the client will use (KIP-43).

v1 tokens follow in SaslAuthenticate (KIP-152), after v0 as bare bytes. On a listener with SASL it never comes here but
to `node.sasl_connection`; here it is out of place: on a listener without SASL, or again in a session without an end.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Served
from heirlog.context import Context
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


def handle(node: object, request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


API = Api(
    key=ApiKey.SASL_HANDSHAKE,
    broker=Served((0, 1), handle),
    controller=Served((0, 1), handle),
    remarks="mechanisms PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER; no GSSAPI",
)
