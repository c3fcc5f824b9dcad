"""What the finalized level of transaction.version changes in a coordinator, also while transactions are open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from heirlog.broker.transactions.marker_sender import CHANNEL
from heirlog.broker.transactions.records import read_value
from heirlog.env import SendFailure
from heirlog.metadata.state import TRANSACTION_VERSION
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.messages import AddPartitionsToTxnRequest

from ..fakes import answer_of, context
from .test_coordinator import TRANSACTIONS, Coordinating, add_partitions_to_txn, code, partition_codes, producer

LAST = 32766


class Levelled(Coordinating):
    def level(self, level: int) -> None:
        self.image.set_feature(TRANSACTION_VERSION, level or None, self.journal)
        self.publish()

    def brokers_add(self, producer: tuple[int, int], *indexes: int) -> list[str]:
        """What the leader of a partition sends for a client at level 2."""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="foo", partitions=list(indexes))
        added = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], topics=[topic]
        )
        request = AddPartitionsToTxnRequest(transactions=[added])
        answer = answer_of(add_partitions_to_txn(self.broker.transactions, self.image, request, context(5)))
        return partition_codes(answer.results_by_transaction[0].topic_results)

    def written(self) -> list[tuple[int, Any]]:
        """Version and value of each record of `t`."""
        log = self.partition(TRANSACTIONS).log
        data = b"".join(region.read() for region in log.read(0, 1 << 20, log.log_end_offset).regions)
        found = []
        for position, _ in walk(data):
            for record in decode_records(data, position):
                read = read_value(record.key, record.value)
                if read is not None and read.transactional_id == "t" and record.value is not None:
                    found.append((int.from_bytes(record.value[:2], "big"), read.value))
        return found

    def used_up(self) -> tuple[int, int]:
        """A producer with the last epoch of its id."""
        me = producer(self.init())
        shard = self.broker.transactions.shard_of("t")
        entry = shard._entries["t"]  # type: ignore[union-attr]
        # 32,766 transactions would take minutes
        entry.transaction = replace(entry.transaction, producer_epoch=LAST)
        return me[0], LAST

    def fail_over(self) -> None:
        epoch = self.partition(TRANSACTIONS).leader_epoch
        self.lead(epoch + 1, leader=2)
        self.lead(epoch + 2)
        self.env.advance(10)


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_level_of_the_moment_decides_the_version_of_each_record(level: int, version: int) -> None:
    rig = Levelled()
    rig.level(2 - level)
    me = producer(rig.init())
    rig.level(level)
    rig.add(me, 0)
    assert rig.written()[-1][0] == version


def test_a_client_of_level_2_ends_its_transaction_after_a_downgrade_to_0() -> None:
    # Apache Kafka cannot write the client's level in a value of version 0, and refuses the transaction
    rig = Levelled()
    rig.level(2)
    me = producer(rig.init())
    assert rig.brokers_add(me, 0) == ["NONE"]
    rig.level(0)
    following = producer(rig.end(me, v=5))
    assert following == (me[0], me[1] + 1)
    assert rig.written()[-1][0] == 0
    (marker,) = rig.answer_markers().markers
    assert (marker.producer_epoch, marker.transaction_version) == (me[1] + 1, 2)
    assert rig.state_name == "CompleteCommit"
    assert rig.brokers_add(following, 1) == ["NONE"]
    rig.fail_over()
    assert producer(rig.end(following, v=5)) == (me[0], me[1] + 2)


def test_a_client_of_level_0_goes_on_after_an_upgrade_and_turns_to_level_2_between_transactions() -> None:
    rig = Levelled()
    me = producer(rig.init())
    rig.add(me, 0)
    rig.level(2)
    assert code(rig.end(me, v=4)) == "NONE"
    (marker,) = rig.answer_markers().markers
    assert (marker.producer_epoch, marker.transaction_version) == (me[1], 0)
    bumped = producer(rig.init(given=me))
    assert bumped == (me[0], me[1] + 1)
    assert rig.brokers_add(bumped, 0) == ["NONE"]
    assert producer(rig.end(bumped, v=5)) == (me[0], me[1] + 2)
    assert rig.answer_markers().markers[0].transaction_version == 2


def test_a_transaction_begun_by_the_client_and_ended_with_version_5_is_one_of_level_2() -> None:
    # KAFKA-18227: the client has learned of the upgrade within its transaction
    rig = Levelled()
    me = producer(rig.init())
    rig.add(me, 0)
    rig.level(2)
    assert producer(rig.end(me, v=5)) == (me[0], me[1] + 1)
    assert rig.answer_markers().markers[0].transaction_version == 2


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 0), (2, 2)])
def test_the_coordinator_aborts_by_the_level_of_the_cluster_whatever_the_client_speaks(
    level: int, version: int
) -> None:
    for client in (3, 5):
        rig = Levelled()
        rig.level(level)
        me = producer(rig.init())
        rig.add(me, 0) if client == 3 else rig.brokers_add(me, 0)
        assert code(rig.init()) == "CONCURRENT_TRANSACTIONS"
        (marker,) = rig.answer_markers().markers
        assert (marker.producer_epoch, marker.transaction_version) == (me[1] + 1, version)
        assert producer(rig.init()) == (me[0], me[1] + 2)


def test_a_late_end_after_the_coordinators_abort() -> None:
    rig = Levelled()
    rig.level(2)
    me = producer(rig.init(timeout_ms=1000))
    rig.brokers_add(me, 0)
    rig.env.advance(12_000)
    rig.answer_markers()
    assert rig.state_name == "CompleteAbort"
    assert code(rig.end(me, v=5)) == "PRODUCER_FENCED"
    assert code(rig.end(me, v=4, commit=False)) == "PRODUCER_FENCED"
    # the client uses the epoch that it gets from now on
    assert producer(rig.end(me, v=5, commit=False)) == (me[0], me[1] + 1)
    assert rig.brokers_add((me[0], me[1] + 1), 0) == ["NONE"]


@pytest.mark.parametrize("moment", ["before the markers", "after the markers"])
def test_the_next_coordinator_knows_the_producer_id_that_follows_a_used_up_one(moment: str) -> None:
    # KAFKA-20310: Apache Kafka 4.2 does not store it, and refuses the producer
    rig = Levelled()
    rig.level(2)
    old, _ = rig.used_up()
    rig.brokers_add((old, LAST), 0)
    following = producer(rig.end((old, LAST), v=5))
    assert following[0] != old and following[1] == 0
    if moment == "after the markers":
        rig.answer_markers()
        rig.fail_over()
    else:
        late = rig.env.take(CHANNEL)
        rig.fail_over()
        late.on_result(SendFailure("disconnected"))
        (marker,) = rig.answer_markers().markers
        assert (marker.producer_id, marker.producer_epoch) == (old, LAST + 1)
    assert rig.state_name == "CompleteCommit"
    assert producer(rig.end((old, LAST), v=5)) == following, "the answer was lost"
    assert rig.brokers_add(following, 0) == ["NONE"]


def test_until_the_markers_are_written_the_producer_id_that_follows_waits() -> None:
    rig = Levelled()
    rig.level(2)
    old, _ = rig.used_up()
    rig.brokers_add((old, LAST), 0)
    following = producer(rig.end((old, LAST), v=5))
    assert rig.brokers_add(following, 0) == ["CONCURRENT_TRANSACTIONS"]
    rig.answer_markers()
    assert rig.brokers_add(following, 0) == ["NONE"]


def test_the_coordinators_abort_at_the_last_epoch_gives_the_client_its_next_id() -> None:
    # KAFKA-20090: Apache Kafka 4.2 leaves the id at epoch 32767, where it can neither end nor be fenced
    rig = Levelled()
    rig.level(2)
    old, _ = rig.used_up()
    rig.brokers_add((old, LAST), 0)
    rig.env.advance(75_000)
    (marker,) = rig.answer_markers().markers
    assert (marker.producer_id, marker.producer_epoch) == (old, LAST + 1)
    following = producer(rig.end((old, LAST), v=5, commit=False))
    assert following[0] != old and following[1] == 0
    assert rig.brokers_add(following, 0) == ["NONE"]


def test_a_partition_that_the_coordinator_does_not_know_yet_is_not_added_for_its_leader() -> None:
    # the leader has a newer image; at the end of the transaction the partition would pass for a deleted one
    rig = Levelled()
    rig.level(2)
    me = producer(rig.init())
    assert rig.brokers_add(me, 0, 7) == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert rig.state_name == "Empty"
    assert rig.verify(me, 0, 7) == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert rig.brokers_add(me, 0, 0) == ["NONE"], "a partition that is named twice has one answer"
    assert rig.verify(me, 0, 1) == ["NONE", "TRANSACTION_ABORTABLE"]
