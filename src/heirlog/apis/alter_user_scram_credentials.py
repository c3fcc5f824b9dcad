"""AlterUserScramCredentials (key 51): the active controller sets and deletes passwords of users, brokers forward it.

v0 only. The password comes salted and hashed; results have one entry per user. The rules are in `controller.scram`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Limit, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller import scram
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from heirlog.security.scram import SALT_BYTES_MAX


def refused(request: AlterUserScramCredentialsRequest, code: ErrorCode) -> AlterUserScramCredentialsResponse:
    return scram.refused(request, code, sentence(code))


def handle(
    node: OnController[ChangesMetadata], request: AlterUserScramCredentialsRequest, context: Context
) -> Reply[AlterUserScramCredentialsResponse]:
    controller = node.controller
    return controller.submit(
        lambda: scram.alter_scram_credentials(controller.image, request), partial(refused, request)
    )


API = Api(
    key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    broker=Forwarded((0, 0)),
    controller=Served((0, 0), handle, needs=ALTER_CLUSTER),
    refused=refused,
    is_change=True,
    limits=(
        Limit(MAX_RECORDS_PER_USER_OP, "users", ErrorCode.POLICY_VIOLATION),
        Limit(SALT_BYTES_MAX, "bytes of a salt", ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ),
    remarks="a user once per request, as on Kafka",
)
