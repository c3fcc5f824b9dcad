"""The default error message of each error code."""

from __future__ import annotations

from typing import Final

from heirlog.protocol.errors import ErrorCode

_SENTENCES: Final = {
    ErrorCode.NOT_CONTROLLER: "This is not the active controller; try again.",
    ErrorCode.REQUEST_TIMED_OUT: "The active controller did not answer in time.",
    ErrorCode.RECORD_LIST_TOO_LARGE: (
        "A metadata record would be larger than 8 MiB, the limit of a batch in the metadata log; "
        "make the value shorter."
    ),
    ErrorCode.SECURITY_DISABLED: "No Authorizer is configured.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed: an ACL on the cluster must allow this.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed: an ACL on the topic must allow this.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed: an ACL on the group must allow this.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Transactional Id authorization failed: an ACL on the transactional id must allow this."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def sentence(code: ErrorCode) -> str:
    """The default error message of the code."""
    return _SENTENCES.get(code, f"The controller refused the request with {code.name}.")
