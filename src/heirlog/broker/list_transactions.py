"""ListTransactions: none. Nobody can begin a transaction here, so no broker coordinates one.

That is an answer and no refusal: whoever looks for hanging transactions is told that there are none. What is wrong with
the question itself is told as by Apache Kafka: states that do not exist, a pattern that is no regular expression.

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
"""What the expressions of Kafka's brokers (RE2) know and Python's do not."""


def list_transactions(request: ListTransactionsRequest) -> ListTransactionsResponse:
    """No transactions; INVALID_REGULAR_EXPRESSION for a pattern that is none."""
    if request.transactional_id_pattern:
        try:
            re.compile(_RE2_ONLY.sub("x", request.transactional_id_pattern))
        except (re.error, OverflowError, RecursionError):
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown)
