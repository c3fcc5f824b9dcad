from __future__ import annotations

import pytest
from spark.given_options import batch, stream

from heirlog.spark.offset_limits import EARLIEST, LATEST
from heirlog.spark.option_values import OptionError


def test_a_default_without_offsets_is_where_every_partition_begins() -> None:
    assert stream(startingOffsetsDefault="earliest").starting.offset == EARLIEST
    assert stream(startingOffsets="latest", startingOffsetsDefault="earliest").starting.offset == LATEST
    with pytest.raises(OptionError, match="startingOffsetsDefault is 'soon'"):
        stream(startingOffsets="latest", startingOffsetsDefault="soon")


def test_the_more_precise_of_several_begins_wins() -> None:
    options = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    assert batch(**options).starting.timestamps == {("t", 0): 7}
    assert batch(**options, startingTimestamp="9").starting.timestamp_ms == 9


def test_a_timestamp_that_nothing_reaches_is_an_error_at_the_begin_and_the_end_at_the_end() -> None:
    options = batch(startingTimestamp="9", endingTimestamp="10")
    assert not options.starting.latest_if_none
    assert options.ending.latest_if_none
    assert batch(startingTimestamp="9", startingOffsetsByTimestampStrategy="latest").starting.latest_if_none


def test_offsets_may_come_with_what_a_stream_remembers_beside_them() -> None:
    text = '{"t":{"0":5},"@heirlog":{"topicIds":{},"epochs":{}}}'
    assert stream(startingOffsets=text, startingOffsetsDefault="earliest").starting.offsets == {("t", 0): 5}


@pytest.mark.parametrize("kind", ["Offsets", "OffsetsByTimestamp"])
def test_a_batch_that_would_end_before_it_begins_is_refused(kind: str) -> None:
    def both(start: int, end: int) -> dict[str, str]:
        return {f"starting{kind}": f'{{"t":{{"0":{start}}}}}', f"ending{kind}": f'{{"t":{{"0":{end}}}}}'}

    assert batch(**both(5, 5)).ending
    with pytest.raises(OptionError, match=rf"starting{kind} for t-0 is 6, behind its ending{kind}, 5"):
        batch(**both(6, 5))
    if kind == "Offsets":
        assert batch(**both(6, -1)).ending, "the end is not known yet"


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"t":{"0":-1}}'},
        {"startingOffsets": '{"t":{"0":1}}', "startingOffsetsDefault": "latest"},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"t":{"0":-2}}'},
    ],
)
def test_a_batch_cannot_begin_at_the_end_nor_end_at_the_begin(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"can't be (latest|earliest) for batch queries"):
        batch(**options)
