"""ListTransactions: the list is always empty. No client can begin a transaction, so no broker coordinates one.

The answer is a success: a tool that looks for hanging transactions learns that there are none. Errors in the request
itself are the same as on Apache Kafka: states that do not exist, a pattern that is not a regular expression.

Source: KIP-664, KIP-1152.
"""

from __future__ import annotations

import re
from typing import Final

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListTransactionsRequest, ListTransactionsResponse

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_RE2_ONLY: Final = re.compile(r"\\(?:[pP](?:\{\^?\w+\}|\w)|[QEzC])")
"""Syntax that the expressions of Kafka's brokers (RE2) have and Python's do not."""


def list_transactions(request: ListTransactionsRequest) -> ListTransactionsResponse:
    """Returns no transactions; INVALID_REGULAR_EXPRESSION for an invalid pattern."""
    if request.transactional_id_pattern:
        try:
            re.compile(_RE2_ONLY.sub("x", request.transactional_id_pattern))
        except (re.error, OverflowError, RecursionError):
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown)
