"""What went wrong under a task, told apart (no broker is needed where the error says it all), and a task's memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from spark.topics import Topics

from heirlog.blocking import Client, EpochEnd, LogTruncated
from heirlog.client.leaders import UNKNOWN_END
from heirlog.protocol.batch import encode_batch
from heirlog.spark.plan import Range
from heirlog.spark.read import _what_happened
from heirlog.testing.cluster import Cluster

PLANNED = Range("t", 0, 40, 90, last_epoch=5)


@pytest.mark.parametrize(
    ("end", "first", "resume"),
    [(EpochEnd(3, 25), 25, 25), (EpochEnd(3, 0), 0, 0), (UNKNOWN_END, -1, 40)],
)
def test_a_truncation_is_read_on_from_where_the_logs_part_and_never_from_the_begin_for_want_of_that(
    end: EpochEnd, first: int, resume: int
) -> None:
    with Client("127.0.0.1:1") as client:
        lost, rest = _what_happened(client, PLANNED, LogTruncated("t", 0, 40, 5, end))
    assert (lost.cause, lost.first, lost.until, lost.resume) == ("truncated", first, 40, resume)
    assert rest == Range("t", 0, resume, 90, last_epoch=-1)
    assert ("the leader does not know their leader epoch" in str(lost)) is (end is UNKNOWN_END)


READ = """
import resource, sys
from heirlog.spark.decode import arrow_schema
from heirlog.spark.options import read_options
from heirlog.spark.plan import Range
from heirlog.spark.read import read_range

servers, topic, stop = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = read_options({"kafka.bootstrap.servers": servers, "subscribe": topic}, streaming=False)
def rows(stop):
    schema = arrow_schema(("value", "offset"))
    return sum(batch.num_rows for batch in read_range(options, Range(topic, 0, 0, stop), schema))
rows(stop // 4)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert rows(stop) == stop
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_task_needs_no_more_memory_for_a_larger_range(cluster: Cluster) -> None:
    topics = Topics(cluster)
    topic = topics.create(replicas=1)
    batch = encode_batch([(None, os.urandom(8192), (), 1)] * 100)
    batches = 160
    with Client(topics.servers) as client, client.producer() as producer:
        for _ in range(batches):
            producer.send(topic, 0, bytearray(batch))
    command = [sys.executable, "-c", READ, topics.servers, topic, str(100 * batches)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # of 131 MB, after a quarter of it
    assert int(done.stdout) * 1024 < 32 * 1024 * 1024
    topics.delete(topic)
