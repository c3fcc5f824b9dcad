"""The streaming read as Spark calls it, without Spark: offsets, limits and losses on a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from spark.topics import Topics

from heirlog.blocking import LATEST, Client
from heirlog.protocol.errors import KafkaError
from heirlog.spark.decode import arrow_schema
from heirlog.spark.loss import DataLoss, OtherTopics
from heirlog.spark.offsets import MEMBER, stream_offset
from heirlog.spark.options import read_options
from heirlog.spark.partitioners import topic_to_write
from heirlog.spark.resolve import NoOffset, epochs_before
from heirlog.spark.source import HeirlogReader, spark_schema
from heirlog.spark.stream import HeirlogStreamReader
from heirlog.testing.cluster import Cluster

ALL = ReadAllAvailable()


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


@pytest.fixture(scope="module")
def frail() -> Iterator[Topics]:
    """A node alone, whose power can be cut: what was acknowledged and not flushed is gone then."""
    with Cluster(nodes=1, combined=True) as cluster:
        yield Topics(cluster)


def reader(topics: Topics, topic: str, **options: str) -> HeirlogStreamReader:
    given = {"kafka.bootstrap.servers": topics.servers, "startingOffsets": "earliest", **options}
    if not {"subscribePattern", "assign"} & set(options):
        given["subscribe"] = topic
    return HeirlogStreamReader(read_options(given, streaming=True), arrow_schema(("partition", "offset", "value")))


def batch_rows(topics: Topics, topic: str, start: dict[str, Any], **options: str) -> list[tuple[int, int, bytes]]:
    """What a batch read finds that begins where a stream stopped."""
    given = {"kafka.bootstrap.servers": topics.servers, "subscribe": topic, "columns": "partition,offset,value"}
    given |= {"startingOffsets": json.dumps(start), **options}
    batch = HeirlogReader(read_options(given, streaming=False), spark_schema(("partition", "offset", "value")))
    return sorted(
        (row["partition"], row["offset"], row["value"])
        for part in batch.partitions()
        for found in batch.read(part)
        for row in found.to_pylist()
    )


def rows(of: HeirlogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, bytes]]:
    found = [
        (row["partition"], row["offset"], row["value"])
        for part in of.partitions(start, end)
        for batch in of.read(part)
        for row in batch.to_pylist()
    ]
    return sorted(found)


def stored(offset: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from a checkpoint."""
    return json.loads(json.dumps(offset))


def losses(offset: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    return [(loss.cause, loss.first, loss.until, loss.resume) for loss in stream_offset(offset).losses]


def test_a_stream_reads_what_came_since_and_nothing_twice(topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 10, 2)
    stream = reader(topics, topic)
    start = stored(stream.initialOffset())
    middle = stored(stream.latestOffset(start, ALL))
    assert len(rows(stream, start, middle)) == 10
    assert stored(stream.latestOffset(middle, ALL)) == middle, "nothing came: the same text, or Spark runs a batch"
    topics.fill(topic, 4, 2)
    end = stored(stream.latestOffset(middle, ALL))
    assert [offset for _, offset, _ in rows(stream, middle, end)] == [5, 6, 5, 6]
    reported = stream.reportLatestOffset()
    assert reported == {topic: {"0": 7, "1": 7}, MEMBER: {"lag": {topic: {"0": 0, "1": 0}}}}
    # not behind latestOffset: the logs are asked, and the batch is not known
    topics.fill(topic, 1)
    assert stream.reportLatestOffset() == {topic: {"0": 8, "1": 7}}


def test_the_lag_of_a_batch_is_what_its_limit_leaves(topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 20, 2)
    stream = reader(topics, topic, maxOffsetsPerTrigger="8")
    offset, lags = stream.initialOffset(), []
    while (end := stream.latestOffset(offset, stream.getDefaultReadLimit())) != offset:
        reported = stream.reportLatestOffset()
        assert reported is not None
        lags.append(reported[MEMBER]["lag"][topic])
        offset = end
    assert lags == [{"0": 6, "1": 6}, {"0": 2, "1": 2}, {"0": 0, "1": 0}]


def test_the_offset_remembers_the_topic_and_the_epoch_of_the_last_record(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 3)
    stream = reader(topics, topic)
    start = stream.initialOffset()
    assert set(start) == {topic, MEMBER}
    assert start[topic] == {"0": 0}
    end = stream_offset(stream.latestOffset(start, ALL))
    assert set(end.topic_ids) == {topic}
    assert end.epochs == {(topic, 0): 0}


def test_a_first_batch_begins_where_the_query_did_however_often_and_wherever_it_is_run(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 3)
    stream = reader(topics, topic, startingOffsets="latest")
    start = stored(stream.initialOffset())
    topics.fill(topic, 2)
    end = stored(stream.latestOffset(start, ALL))
    topics.fill(topic, 4)
    # Spark asks for the start once more before it plans the batch
    assert [offset for _, offset, _ in rows(stream, stored(stream.initialOffset()), end)] == [3, 4]
    restarted = reader(topics, topic, startingOffsets="latest")
    assert restarted.initialOffset()[topic] == {"0": 9}
    assert [offset for _, offset, _ in rows(restarted, stored(restarted.initialOffset()), end)] == [3, 4]
    second = stored(restarted.latestOffset(end, ALL))
    assert [offset for _, offset, _ in rows(restarted, end, second)] == [5, 6, 7, 8]
    assert "begins" not in second[MEMBER]


def test_a_query_that_starts_at_the_end_of_a_topic_and_finds_nothing_new_can_be_run_again(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 3)
    stream = reader(topics, topic, startingOffsets="latest")
    empty = stored(stream.latestOffset(stream.initialOffset(), ALL))
    topics.fill(topic, 2)
    restarted = reader(topics, topic, startingOffsets="latest")
    assert rows(restarted, stored(restarted.initialOffset()), empty) == []
    end = stored(restarted.latestOffset(empty, ALL))
    assert [offset for _, offset, _ in rows(restarted, empty, end)] == [3, 4]


def test_a_checkpoint_without_our_member_goes_on(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 3)
    stream = reader(topics, topic)
    end = stream.latestOffset({topic: {"0": 1}}, ALL)
    assert [offset for _, offset, _ in rows(stream, {topic: {"0": 1}}, end)] == [1, 2]
    assert MEMBER in end


def test_a_maximum_is_shared_and_a_minimum_waits_until_its_delay_is_over(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    stream = reader(topics, topic, minOffsetsPerTrigger="4", maxOffsetsPerTrigger="8")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(8)
    first = stored(stream.latestOffset(stream.initialOffset(), limit))
    assert first[topic] == {"0": 8}, "the first batch does not wait"
    assert stored(stream.latestOffset(first, limit)) == first, "two are fewer than four"
    impatient = reader(topics, topic, minOffsetsPerTrigger="4", maxTriggerDelay="0s")
    assert impatient.latestOffset(first, impatient.getDefaultReadLimit())[topic] == {"0": 10}
    assert stream.latestOffset(first, ALL)[topic] == {"0": 10}, "Spark asks for everything: the options do not count"


def test_available_now_ends_where_the_topic_ended_and_ignores_the_minimum(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    stream = reader(topics, topic, maxOffsetsPerTrigger="6", minOffsetsPerTrigger="5")
    stream.prepareForTriggerAvailableNow()
    topics.fill(topic, 7)
    limit, offset, seen = stream.getDefaultReadLimit(), stream.initialOffset(), []
    while (end := stream.latestOffset(offset, limit)) != offset:
        seen.append(end[topic]["0"])
        offset = end
    assert seen == [6, 10]


def test_new_partitions_and_topics_are_read_from_their_begin(topics: Topics) -> None:
    first = topics.create(name="grown-a")
    topics.fill(first, 2)
    stream = reader(topics, "", subscribePattern="grown-.*", startingOffsets="latest")
    start = stream.initialOffset()
    second = topics.create(name="grown-b")
    topics.fill(second, 3)
    end = stream.latestOffset(start, ALL)
    assert [offset for _, offset, _ in rows(stream, start, end)] == [0, 1, 2]


def test_a_named_topic_that_is_not_there_is_an_error_and_a_pattern_that_matches_nothing_is_none(topics: Topics) -> None:
    with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PARTITION"):
        reader(topics, "no-such-topic").initialOffset()
    assert set(reader(topics, "", subscribePattern="no-such-.*").initialOffset()) == {MEMBER}


def test_a_pattern_is_looked_for_anywhere_in_a_name(topics: Topics) -> None:
    names = [topics.create(name=name) for name in ("found-anywhere", "it-is-found-too")]
    assert set(reader(topics, "", subscribePattern="found").initialOffset()) == {MEMBER, *names}
    assert set(reader(topics, "", subscribePattern="^found.*$").initialOffset()) == {MEMBER, names[0]}


def test_of_what_is_assigned_a_partition_may_be_missing_and_a_topic_may_not(topics: Topics) -> None:
    topic = topics.create()
    assert reader(topics, "", assign=json.dumps({topic: [0, 7]})).initialOffset()[topic] == {"0": 0}
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        reader(topics, "", assign=json.dumps({topic: [0], "no-such-topic": [0]})).initialOffset()


def test_a_question_is_asked_as_often_as_the_options_say(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    options = {"fetchOffset.numRetries": "3", "fetchOffset.retryIntervalMs": "1"}
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        reader(topics, "no-such-topic", **options).initialOffset()
    assert [record.levelname for record in caplog.records if "retry in 1 ms" in record.message] == ["WARNING"] * 2


def test_a_topic_that_a_write_creates_is_named_in_a_warning(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    there, absent = topics.create(2), f"{topics.create()}-misspelt"
    with Client(topics.servers) as client:
        assert [len(topic_to_write(client, name).partitions) for name in (there, absent, absent)] == [2, 1, 1]
    assert [record.message.split(":")[0] for record in caplog.records if record.name == "heirlog.spark"] == [
        f"topic {absent} does not exist"
    ]


def test_offsets_must_name_every_partition_unless_there_is_a_default(topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 10, 2)
    partial = json.dumps({topic: {"0": 3}})
    with pytest.raises(NoOffset, match=rf"Missing: {topic}-1"):
        reader(topics, topic, startingOffsets=partial).initialOffset()
    stream = reader(topics, topic, startingOffsets=partial, startingOffsetsDefault="latest")
    assert stream.initialOffset()[topic] == {"0": 3, "1": 5}
    with pytest.raises(NoOffset, match=rf"not read: {topic}-7"):
        reader(topics, topic, startingOffsets=json.dumps({topic: {"0": 1, "1": 1, "7": 1}})).initialOffset()


def test_a_begin_by_time_is_the_first_record_not_before_it(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, ({"value": "x", "timestamp": 1_000_000 + number} for number in range(10)))
    assert reader(topics, topic, startingTimestamp="1000004").initialOffset()[topic] == {"0": 4}
    by_time = json.dumps({topic: {"0": 1_000_009}})
    assert reader(topics, topic, startingOffsetsByTimestamp=by_time).initialOffset()[topic] == {"0": 9}
    late = {"startingTimestamp": "1000010"}
    with pytest.raises(NoOffset, match=f"No offset matched from request of topic-partition {topic}-0"):
        reader(topics, topic, **late).initialOffset()
    stream = reader(topics, topic, **late, startingOffsetsByTimestampStrategy="latest")
    assert stream.initialOffset()[topic] == {"0": 10}


def test_a_batch_whose_end_turns_out_to_lie_before_its_begin_is_refused(topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, ({"value": "x", "timestamp": 1_000_000 + number} for number in range(10)))
    times = {"startingTimestamp": "1000008", "endingTimestamp": "1000002"}
    with pytest.raises(NoOffset, match=f"{topic}-0 would be read from 8 on and only up to 2"):
        batch_rows(topics, topic, {topic: {"0": 0}}, **times)
    topics.delete_records(topic, 0, 6)
    with pytest.raises(NoOffset, match=f"{topic}-0 would be read from 6 on and only up to 3"):
        batch_rows(topics, topic, {topic: {"0": -2}}, endingOffsets=json.dumps({topic: {"0": 3}}))
    lost = {"endingOffsets": json.dumps({topic: {"0": 3}}), "failOnDataLoss": "false"}
    assert batch_rows(topics, topic, {topic: {"0": 0}}, **lost) == [], "what lay between was deleted"


# losses


def test_records_deleted_before_they_were_read_fail_the_query_or_are_stepped_over(
    topics: Topics, tmp_path: Any
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    start = {topic: {"0": 2}}
    topics.delete_records(topic, 0, 6)
    with pytest.raises(DataLoss, match=f"{topic}-0: records 2 to 5 were deleted"):
        reader(topics, topic).latestOffset(start, ALL)
    stream = reader(topics, topic, onDataLoss="quarantine", quarantinePath=str(tmp_path / "lost"))
    end = stored(stream.latestOffset(start, ALL))
    assert losses(end) == [("retention", 2, 6, 6)]
    again = reader(topics, topic, onDataLoss="skip")
    for one in (stream, again):
        assert [offset for _, offset, _ in rows(one, start, end)] == [6, 7, 8, 9], "also when the batch is run again"
    assert stored(stream.latestOffset(end, ALL)) == end
    (row,) = parquet.read_table(tmp_path / "lost").to_pylist()
    assert (row["topic"], row["first"], row["until"], row["cause"]) == (topic, 2, 6, "retention")


def test_records_deleted_between_planning_and_reading_are_noticed_by_the_task(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    stream, skipping = reader(topics, topic), reader(topics, topic, failOnDataLoss="false")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    topics.delete_records(topic, 0, 6)
    with pytest.raises(DataLoss, match="records 0 to 5 were deleted"):
        rows(stream, start, end)
    assert [offset for _, offset, _ in rows(skipping, start, end)] == [6, 7, 8, 9]


def test_a_topic_created_again_is_told_from_the_old_one_also_after_a_restart(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 4)
    before = reader(topics, topic)
    start = stored(before.latestOffset(before.initialOffset(), ALL))
    topics.delete(topic)
    with pytest.raises(DataLoss, match=f"{topic}-0: the partition was deleted"):
        reader(topics, topic).latestOffset(start, ALL)
    topics.create(name=topic)
    topics.fill(topic, 7)
    with pytest.raises(DataLoss, match=f"{topic}-0: the topic was deleted and created again"):
        reader(topics, topic).latestOffset(start, ALL)
    stream = reader(topics, topic, onDataLoss="skip")
    end = stored(stream.latestOffset(start, ALL))
    assert losses(end) == [("recreated", 4, -1, 0)]
    assert [offset for _, offset, _ in rows(stream, start, end)] == list(range(7))

    # a batch read from there on says the same, and so does one that would end there
    with pytest.raises(DataLoss, match=f"{topic}-0: the topic was deleted and created again"):
        batch_rows(topics, topic, start)
    assert [offset for _, offset, _ in batch_rows(topics, topic, start, onDataLoss="skip")] == list(range(7))
    ends = {"endingOffsets": json.dumps(start)}
    with pytest.raises(DataLoss, match=f"{topic}-0: the topic was deleted and created again"):
        batch_rows(topics, topic, {topic: {"0": 0}}, **ends)
    assert batch_rows(topics, topic, {topic: {"0": 0}}, **ends, onDataLoss="skip") == []
    assert len(batch_rows(topics, topic, end)) == 0


def test_a_topic_created_again_between_two_questions_is_no_truncation(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create()
    topics.fill(topic, 4)
    stream = reader(topics, topic, onDataLoss="skip")
    start = stored(stream.latestOffset(stream.initialOffset(), ALL))
    ask = Client.end_offset_for_epoch

    def once_more(client: Client, epochs: Mapping[tuple[str, int], int]) -> Any:
        monkeypatch.undo()
        topics.delete(topic)
        topics.create(name=topic)
        topics.fill(topic, 2)
        return ask(client, epochs)

    monkeypatch.setattr(Client, "end_offset_for_epoch", once_more)
    end = stored(stream.latestOffset(start, ALL))
    assert losses(end) == [("recreated", 4, -1, 0)]
    assert [offset for _, offset, _ in rows(stream, start, end)] == [0, 1]


def test_a_topic_that_went_and_was_stepped_over_is_waited_for(topics: Topics) -> None:
    kept, gone = topics.create(), topics.create()
    both = f"{kept},{gone}"
    topics.fill(gone, 3)
    stream = reader(topics, both, onDataLoss="skip")
    start = stored(stream.latestOffset(stream.initialOffset(), ALL))
    topics.delete(gone)
    failing = reader(topics, both)
    failing.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=f"{gone}-0: the partition was deleted"):
        failing.latestOffset(start, ALL)
    end = stored(stream.latestOffset(start, ALL))
    assert losses(end) == [("deleted", 3, -1, 3)]
    assert stream.latestOffset(end, ALL) == end, "no news"
    topics.fill(kept, 2)
    later = reader(topics, both, onDataLoss="skip")
    later.prepareForTriggerAvailableNow()
    news = stored(later.latestOffset(end, ALL))
    for run in (later, reader(topics, both, onDataLoss="skip")):
        assert [offset for _, offset, _ in rows(run, end, news)] == [0, 1], "also when the batch is run again"
    topics.create(name=gone)
    topics.fill(gone, 5)
    assert [offset for _, offset, _ in rows(stream, news, stream.latestOffset(news, ALL))] == list(range(5))
    with pytest.raises(KafkaError):
        reader(topics, f"{kept},never-was", onDataLoss="skip").latestOffset(news, ALL)


def test_a_batch_planned_on_the_old_topic_does_not_read_the_new_one(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 4)
    before = reader(topics, topic)
    start = before.initialOffset()
    end = stored(before.latestOffset(start, ALL))
    topics.delete(topic)
    topics.create(name=topic)
    topics.fill(topic, 5)
    with pytest.raises(DataLoss, match="created again"):
        rows(reader(topics, topic), start, end)
    assert rows(reader(topics, topic, onDataLoss="skip"), start, end) == []


def test_an_offset_behind_the_end_that_nothing_explains_is_a_loss_too(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 4)
    start = {topic: {"0": 9}}
    with pytest.raises(DataLoss, match="should continue at offset 9, but the log ends at 4"):
        reader(topics, topic).latestOffset(start, ALL)
    end = reader(topics, topic, onDataLoss="skip").latestOffset(start, ALL)
    assert losses(end) == [("beyond", 4, 9, 4)]
    with pytest.raises(DataLoss, match="the log ends at 4"):
        reader(topics, topic).partitions({topic: {"0": 0}}, {topic: {"0": 9}})
    made_up = reader(topics, topic, startingOffsets=json.dumps(start))
    with pytest.raises(DataLoss, match="should continue at offset 9, but the log ends at 4"):
        made_up.latestOffset(stored(made_up.initialOffset()), ALL)


def test_a_checkpoint_of_other_topics_is_named_and_is_no_loss(topics: Topics) -> None:
    before, now = topics.create(2), topics.create()
    topics.fill(before, 8, 2)
    topics.fill(now, 1)
    stream = reader(topics, before)
    start = stored(stream.initialOffset())
    end = stored(stream.latestOffset(start, ALL))
    sentence = f"the checkpoint has offsets of the topic {before} that this query does not read"
    for other in (
        reader(topics, now),
        reader(topics, "", subscribePattern=f"^{now}$"),
        reader(topics, "", assign=json.dumps({now: [0]})),
    ):
        with pytest.raises(OtherTopics, match=sentence) as refused:
            other.latestOffset(end, ALL)
        assert "onDataLoss=skip" in str(refused.value) and "lost" not in str(refused.value)
        # a batch that was planned and not finished is planned again
        with pytest.raises(OtherTopics, match=sentence):
            other.partitions(start, end)
    skipping = reader(topics, now, onDataLoss="skip")
    after = stored(skipping.latestOffset(end, ALL))
    assert [loss[0] for loss in losses(after)] == ["unsubscribed", "unsubscribed"]
    assert [value for _, _, value in rows(skipping, end, after)] == [b"0"]
    assert rows(skipping, start, end) == []
    assert stored(skipping.latestOffset(after, ALL)) == after, "it is noted once"


def test_acknowledged_records_lost_with_the_power_are_a_truncation(frail: Topics) -> None:
    topic = frail.create(replicas=1)
    frail.fill(topic, 10)
    stream = reader(frail, topic)
    start = stored(stream.latestOffset(stream.initialOffset(), ALL))
    assert start[topic] == {"0": 10}
    frail.cluster.lose_unflushed(1)
    frail.cluster.start(1)
    frail.cluster.wait_until_ready()
    frail.fill(topic, 15)
    with Client(frail.servers) as client:
        latest = client.list_offsets({(topic, 0): LATEST})
        assert epochs_before(client, {(topic, 0): 15}, {}, latest)[topic, 0] > 0
    with pytest.raises(DataLoss, match=f"{topic}-0: records 0 to 9, which were read, are no longer in the log"):
        reader(frail, topic).latestOffset(start, ALL)
    skipping = reader(frail, topic, onDataLoss="skip")
    end = stored(skipping.latestOffset(start, ALL))
    assert losses(end) == [("truncated", 0, 10, 0)]
    assert [offset for _, offset, _ in rows(skipping, start, end)] == list(range(15)), "the new records, all of them"

    with pytest.raises(DataLoss, match=f"{topic}-0: records 0 to 9, which were read, are no longer in the log"):
        batch_rows(frail, topic, start)
    assert len(batch_rows(frail, topic, start, onDataLoss="skip")) == 15
    assert [offset for _, offset, _ in batch_rows(frail, topic, {topic: {"0": 10}})] == list(range(10, 15))


# groups


def test_offsets_are_committed_to_a_group_for_tools_that_watch_it(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 3)
    stream = reader(topics, topic, commitGroup="watched")
    end = stored(stream.latestOffset(stream.initialOffset(), ALL))
    stream.commit(end)
    with Client(topics.servers) as client:
        committed = client.committed("watched", [(topic, 0)])
    assert (committed[topic, 0].offset, committed[topic, 0].leader_epoch) == (3, 0)


def test_the_group_is_told_of_a_batch_when_the_next_one_is_looked_for(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 3)
    stream = reader(topics, topic, commitGroup="told")
    with Client(topics.servers) as client:
        end = stored(stream.latestOffset(stream.initialOffset(), ALL))
        assert client.committed("told", [(topic, 0)])[topic, 0].offset == 0, "the batch is not in the sink yet"
        assert stored(stream.latestOffset(end, ALL)) == end
        assert client.committed("told", [(topic, 0)])[topic, 0].offset == 3
