"""Errors whose sentence says all, without the frames below them and without the errors that led to them.

Spark shows an error of a Python data source as the text of its whole traceback, within the message of its own
exception, so a notebook shows dozens of lines before the sentence. A data source can leave out only its own frames;
`spark.sql.execution.pyspark.udf.hideTraceback.enabled` leaves out those of PySpark.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from heirlog.protocol.errors import KafkaError
from heirlog.spark.loss import DataLoss, OtherTopics
from heirlog.spark.option_values import OptionError
from heirlog.spark.resolve import NoOffset

P = ParamSpec("P")
R = TypeVar("R")
SENTENCES = (OptionError, NoOffset, DataLoss, OtherTopics, KafkaError, OSError)
"""An OSError is a broker that does not answer, or a file that cannot be read: both are named in it."""


def in_one_sentence(function: Callable[P, R]) -> Callable[P, R]:
    """A method that Spark calls."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SENTENCES as error:
            raise error.with_traceback(None) from None

    return called
