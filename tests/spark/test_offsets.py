from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from heirlog.spark.loss import Cause, DataLoss, Loss, handle
from heirlog.spark.offsets import StreamOffset, names, stream_offset
from heirlog.spark.option_values import OptionError
from heirlog.spark.options import read_options

LOSS = Loss("t", 0, 5, 9, 9, Cause.RETENTION.value)

topics = st.sampled_from(["a", "b", "c.d"])
partitions = st.tuples(topics, st.integers(0, 3))
losses = st.builds(
    Loss, topics, st.integers(0, 3), *[st.integers(0, 99)] * 3, st.sampled_from([cause.value for cause in Cause])
)


@settings(deadline=None)
@given(
    st.dictionaries(partitions, st.integers(0, 2**62)),
    st.dictionaries(topics, st.binary(min_size=16, max_size=16)),
    st.dictionaries(partitions, st.integers(0, 1000)),
    st.lists(losses, max_size=2, unique=True),
    st.dictionaries(partitions, st.integers(0, 2**62)),
)
def test_an_offset_is_the_same_after_the_checkpoint(offsets, topic_ids, epochs, lost, begins) -> None:  # type: ignore[no-untyped-def]
    offset = StreamOffset(offsets, topic_ids, epochs, tuple(sorted(lost)), begins)
    text = json.dumps(offset.as_json())
    assert stream_offset(json.loads(text)) == offset
    assert json.dumps(stream_offset(json.loads(text)).as_json()) == text


def test_it_is_spark_s_json_and_one_member_more() -> None:
    offset = StreamOffset({("t", 1): 5, ("t", 0): 7}, {"t": bytes(16)}, {("t", 0): 3})
    assert json.dumps(offset.as_json()) == (
        '{"t": {"0": 7, "1": 5}, "@heirlog": {"topicIds": {"t": "AAAAAAAAAAAAAAAAAAAAAA"}, "epochs": {"t": {"0": 3}}}}'
    )


def test_a_checkpoint_of_spark_s_own_source_is_read() -> None:
    assert stream_offset({"t": {"0": 7}}) == StreamOffset({("t", 0): 7})


@pytest.mark.parametrize(
    "given", [{"t": 5}, {"t": {"x": 1}}, {"t": {"0": 1}, "@heirlog": {"topicIds": {"t": "short"}}}]
)
def test_what_is_no_offset_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        stream_offset(given)


def test_a_batch_begins_behind_what_it_steps_over() -> None:
    before = StreamOffset({("t", 0): 5, ("t", 1): 3})
    assert StreamOffset({}, losses=(LOSS,)).resumed(before) == {("t", 0): 9, ("t", 1): 3}


def test_a_first_batch_begins_where_its_end_says() -> None:
    asked_later = StreamOffset({("t", 0): 5, ("t", 1): 3})
    assert StreamOffset({}, begins={("t", 0): 4}).resumed(asked_later) == {("t", 0): 4, ("t", 1): 3}


def test_partitions_are_named_in_order() -> None:
    assert names([("b", 1), ("a", 10), ("b", 0)]) == "a-10, b-0, b-1"


def options(**more: str):  # type: ignore[no-untyped-def]
    return read_options({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **more}, streaming=True)


def test_a_loss_fails_the_query_unless_it_is_told_otherwise() -> None:
    with pytest.raises(DataLoss, match=r"t-0: records 5 to 8 were deleted.*set onDataLoss to skip") as failed:
        handle([LOSS], options())
    assert pickle.loads(pickle.dumps(failed.value)).losses == (LOSS,)
    handle([LOSS], options(onDataLoss="skip"))
    handle([], options())


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_its_sentence(cause: Cause) -> None:
    assert str(Loss("t", 0, 5, 9, 7, cause.value)).startswith("t-0: ")


def test_quarantine_holds_each_loss_once_however_often_its_batch_runs(tmp_path: Path) -> None:
    quarantine = options(onDataLoss="quarantine", quarantinePath=str(tmp_path / "lost"))
    other = Loss("t", 1, 0, 2, 2, Cause.TRUNCATED.value)
    for _ in range(2):
        handle([LOSS, other], quarantine)
    rows = parquet.read_table(tmp_path / "lost").to_pylist()
    assert sorted(Loss.from_json(row) for row in rows) == [LOSS, other]
    assert len(list((tmp_path / "lost").iterdir())) == 2
