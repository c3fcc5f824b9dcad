"""DescribeUserScramCredentials (key 50): which users have passwords for SCRAM, and with how many iterations.

v0 only. Answered from this broker's own image. Neither salts nor keys are in the answer.
"""

from __future__ import annotations

from collections import Counter

from heirlog.apis.common.api import DESCRIBE_CLUSTER, Api, Served
from heirlog.apis.common.ports import HasImage
from heirlog.context import Context
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse

Described = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Info = DescribeUserScramCredentialsResponse.CredentialInfo


def handle(
    node: HasImage, request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    known: dict[str, list[Info]] = {}
    for (user, mechanism), credential in sorted(node.image.scram.items()):
        known.setdefault(user, []).append(Info(mechanism=mechanism, iterations=credential.iterations))
    times = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_described(user, known, times[user]) for user in times or known]
    )


def _described(user: str, known: dict[str, list[Info]], times: int) -> Described:
    if times > 1:
        return Described(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    if user not in known:
        return Described(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return Described(user=user, error_message=None, credential_infos=known[user])


API = Api(
    key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    broker=Served((0, 0), handle, needs=DESCRIBE_CLUSTER),
    has_large_answer=True,
    remarks="never salts or keys",
)
