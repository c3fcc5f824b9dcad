"""Transactions while brokers are killed, stopped and restarted, and at sizes beyond those of the other tests.

HEIRLOG_ALL_KILLS=1 plays the longer forms.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from patience import eventually
from processes.observing import address_of, client_of, create, delete, topics, wait_for
from processes.transacting import LIMIT_S, QUIET, Copier, committed_values, transactional, wait_until_decided

from heirlog.blocking import Client
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    CreatePartitionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from heirlog.testing.cluster import Cluster

pytestmark = pytest.mark.usefixtures("everybody_runs_again")

LONG = "HEIRLOG_ALL_KILLS" in os.environ
COPIED, KILLS = (20_000, 20) if LONG else (2_000, 3)
IDS = 1_000 if LONG else 200
PARTITIONS = 4
TRANSACTION = 1
"""Key type of FindCoordinator."""
CONFIG = {
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
    "transaction.state.log.num.partitions": 5,
    "offsets.topic.num.partitions": 5,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, config=CONFIG) as running:
        yield running


def states(cluster: Cluster, without: int = -1) -> dict[str, str]:
    """Transactional id → state. without: a broker that is not asked."""
    # one that does not answer would also be asked for the metadata
    reached = [f"{host}:{port}" for host, port in (address_of(cluster, b) for b in cluster.brokers if b != without)]
    with Client(reached) as client:
        brokers = sorted(client.brokers().keys() - {without})
        answers = [client.send_to_broker(broker, ListTransactionsRequest()) for broker in brokers]
    if any(answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS for answer in answers):
        return {}
    assert not any(answer.error_code for answer in answers), answers
    return {one.transactional_id: one.transaction_state for answer in answers for one in answer.transaction_states}


def open_transaction(cluster: Cluster, name: str, topic: str, *values: bytes) -> Producer:
    producer = transactional(cluster, name)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(LIMIT_S) == 0
    return producer


def test_every_record_is_copied_exactly_once_while_brokers_are_killed(cluster: Cluster) -> None:
    for topic in ("bounce-in", "bounce-out"):
        create(cluster, topic, partitions=PARTITIONS)
    with_acks = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, **QUIET})
    wanted = [b"%d" % number for number in range(COPIED)]
    copiers = [Copier(cluster.bootstrap_servers, number, "bounce-in", "bounce-out") for number in range(2)]
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number, part in enumerate(wanted[start::KILLS] for start in range(KILLS)):
        for value in part:
            with_acks.produce("bounce-in", value)
        assert with_acks.flush(LIMIT_S) == 0
        before = sum(copier.transactions for copier in copiers)
        victim = chance.choice(cluster.brokers)
        time.sleep(chance.random())  # so that it is hit anywhere in its work
        cluster.kill(victim)
        if not number:
            # the other brokers go on without it
            eventually(partial(_have_committed, copiers, before), "a commit", LIMIT_S)
        cluster.start(victim)
        for topic in ("__transaction_state", "bounce-out"):
            wait_for(cluster, topic, lambda view: len(view.isr) == 3)

    def copied() -> bool:
        return sum(committed_values(cluster, "bounce-out", range(PARTITIONS)).values()) >= COPIED

    eventually(copied, "all copies", LIMIT_S)
    for copier in copiers:
        copier.stop()
        # the next producer of the id ends what a copier has left open
        transactional(cluster, copier.name)
    wait_until_decided(cluster, "bounce-out", range(PARTITIONS))
    found = committed_values(cluster, "bounce-out", range(PARTITIONS))
    assert found == Counter(b"copy of " + value for value in wanted)
    assert sum(copier.transactions for copier in copiers) >= COPIED // 50


def _have_committed(copiers: list[Copier], before: int) -> bool:
    return sum(copier.transactions for copier in copiers) > before


def test_every_record_is_copied_exactly_once_although_copiers_are_killed(cluster: Cluster) -> None:
    for topic in ("killed-in", "killed-out"):
        create(cluster, topic, partitions=2)
    with_acks = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, **QUIET})
    wanted = [b"%d" % number for number in range(COPIED)]
    for value in wanted:
        with_acks.produce("killed-in", value)
    assert with_acks.flush(LIMIT_S) == 0
    command = [sys.executable, str(Path(__file__).with_name("copier_process.py")), cluster.bootstrap_servers]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}

    def start(number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, str(number), "killed-in", "killed-out"], env=path)

    def copied() -> int:
        return sum(committed_values(cluster, "killed-out", range(2)).values())

    copiers = [start(number) for number in range(2)]
    try:
        for kill in range(KILLS):
            reached = kill * COPIED // (KILLS + 1)
            eventually(partial(_is_above, copied, reached), f"more than {reached} copies", LIMIT_S)
            victim = kill % 2
            copiers[victim].kill()
            copiers[victim].wait()
            copiers[victim] = start(victim)
        eventually(partial(_is_above, copied, COPIED - 1), "all copies", LIMIT_S)
    finally:
        for copier in copiers:
            copier.kill()
            copier.wait()
    for number in range(2):
        transactional(cluster, f"copier-{number}")
    wait_until_decided(cluster, "killed-out", range(2))
    assert committed_values(cluster, "killed-out", range(2)) == Counter(b"copy of " + value for value in wanted)


def _is_above(count: Callable[[], int], reached: int) -> bool:
    return count() > reached


@pytest.mark.parametrize("how", ["killed", "without-power"] if LONG else ["without-power"])
def test_decided_transactions_are_finished_after_all_nodes_were_lost(how: str, tmp_path: Path) -> None:
    """The only replica of the partition does not answer when they are decided: their markers are still missing.

    Killed processes have lost nothing, so an open transaction is continued. After a power cut no coordinator knows
    whether newer states of an id were lost (here none is), so its producer is fenced, and the next one aborts what was
    open.
    """
    silent = 1
    data, config = tmp_path / "data", {**CONFIG, "replica.lag.time.max.ms": 2_000}
    with Cluster(nodes=3, config=config, data=data) as cluster:
        create(cluster, "decided", [silent], config={"min.insync.replicas": "1"})
        transactional(cluster, "first")
        prepared, aborted = (_id_of_another_coordinator(cluster, name, silent) for name in ("prepared", "aborted"))
        waiting = open_transaction(cluster, "open", "decided", b"open")
        committing = open_transaction(cluster, prepared, "decided", b"prepared")
        aborting = open_transaction(cluster, aborted, "decided", b"aborted")
        cluster.pause(silent)
        committing.commit_transaction(LIMIT_S)
        aborting.abort_transaction(LIMIT_S)
        assert [states(cluster, silent)[name] for name in (prepared, aborted)] == ["PrepareCommit", "PrepareAbort"]
        for node in cluster.node_ids:
            cluster.kill(node)
        marks = list(data.rglob(".heirlog_boot"))
        assert len(marks) == 3
        for mark in marks if how == "without-power" else ():
            mark.unlink()  # the machine has another boot id
        for node in [*cluster.controllers, *cluster.brokers]:
            cluster.start(node)
        cluster.wait_until_ready()
        eventually(lambda: not _loading(cluster), "the coordinators", LIMIT_S)
        eventually(lambda: states(cluster)[prepared] == "CompleteCommit", "the end of the decided one", LIMIT_S)
        eventually(lambda: states(cluster)[aborted] == "CompleteAbort", "the end of the aborted one", LIMIT_S)
        assert states(cluster)["open"] == "Ongoing"
        assert committed_values(cluster, "decided") == Counter()  # the open one began before
        waiting.produce("decided", b"more", partition=0)
        if how == "killed":
            waiting.commit_transaction(LIMIT_S)
        else:
            with pytest.raises(KafkaException, match="fenced"):
                waiting.commit_transaction(LIMIT_S)
            transactional(cluster, "open")
        wait_until_decided(cluster, "decided")
        kept = [b"open", b"prepared", b"more"] if how == "killed" else [b"prepared"]
        assert committed_values(cluster, "decided") == Counter(kept)


def test_an_open_transaction_goes_on_after_all_brokers_were_restarted_one_by_one(cluster: Cluster) -> None:
    create(cluster, "rolled", [1, 2, 3])
    producer = open_transaction(cluster, "rolled", "rolled", b"before")
    for broker in cluster.brokers:
        cluster.stop(broker)
        cluster.start(broker)
        wait_for(cluster, "rolled", lambda view: len(view.isr) == 3)
        wait_for(cluster, "__transaction_state", lambda view: len(view.isr) == 3)
        producer.produce("rolled", b"after %d" % broker, partition=0)
        assert producer.flush(LIMIT_S) == 0
    producer.commit_transaction(LIMIT_S)
    wait_until_decided(cluster, "rolled")
    assert committed_values(cluster, "rolled") == Counter([b"before", b"after 1", b"after 2", b"after 3"])


def test_a_data_folder_is_stopped_and_started_with_transactions(tmp_path: Path) -> None:
    with Cluster(nodes=3, config=CONFIG, data=tmp_path / "data") as cluster:
        create(cluster, "kept", [1, 2, 3])
        done = open_transaction(cluster, "kept-done", "kept", b"committed")
        done.commit_transaction(LIMIT_S)
        left = open_transaction(cluster, "kept-open", "kept", b"lost with its producer")
        left.purge()
    with Cluster(data=tmp_path / "data") as cluster:
        assert eventually(lambda: states(cluster), "the coordinators") == {
            "kept-done": "CompleteCommit",
            "kept-open": "Ongoing",
        }
        successor = transactional(cluster, "kept-open")
        successor.begin_transaction()
        successor.produce("kept", b"of the successor", partition=0)
        successor.commit_transaction(LIMIT_S)
        wait_until_decided(cluster, "kept")
        assert committed_values(cluster, "kept") == Counter([b"committed", b"of the successor"])


def test_no_record_is_lost_where_an_older_folder_of_the_coordinator_is_put_back(tmp_path: Path) -> None:
    """librdkafka keeps its epoch from one transaction to the next, so one that it gets a second time has batches."""
    committed: Counter[bytes] = Counter()

    def commit(cluster: Cluster, label: str, count: int) -> None:
        producer = transactional(cluster, "put-back")
        for number in range(count):
            producer.begin_transaction()
            producer.produce("kept", f"{label} {number}".encode(), partition=0)
            producer.commit_transaction(LIMIT_S)
            committed[f"{label} {number}".encode()] += 1

    with Cluster(nodes=1, data=tmp_path / "data", config={"transaction.state.log.num.partitions": 1}) as cluster:
        (broker,) = cluster.brokers
        create(cluster, "kept")
        commit(cluster, "before", 2)
        cluster.stop(broker)
        (folder,) = (tmp_path / "data").rglob("__transaction_state-0")
        shutil.copytree(folder, tmp_path / "copy")
        cluster.start(broker)
        cluster.wait_until_ready()
        commit(cluster, "later", 5)
        cluster.stop(broker)
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)
        cluster.start(broker)
        cluster.wait_until_ready()
        commit(cluster, "again", 5)
        wait_until_decided(cluster, "kept")
        assert committed_values(cluster, "kept") == committed


def test_partitions_that_a_topic_gets_meanwhile_take_part_in_an_open_transaction(cluster: Cluster) -> None:
    create(cluster, "grows")
    committing = open_transaction(cluster, "grows", "grows", b"first")
    aborting = open_transaction(cluster, "grows too", "grows", b"aborted")
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name="grows", count=3, assignments=None)
    with client_of(cluster) as client:
        (answer,) = client.send_to_any(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000)).results
    assert not answer.error_code, answer
    for producer, value in ((committing, b"second"), (aborting, b"aborted too")):
        eventually(partial(_knows_partitions, producer, "grows", 3), "the new partitions", LIMIT_S)
        producer.produce("grows", value, partition=2)
        assert producer.flush(LIMIT_S) == 0
    committing.commit_transaction(LIMIT_S)
    aborting.abort_transaction(LIMIT_S)
    wait_until_decided(cluster, "grows", range(3))
    assert committed_values(cluster, "grows", range(3)) == Counter([b"first", b"second"])


def _knows_partitions(producer: Producer, topic: str, count: int) -> bool:
    return len(producer.list_topics(topic, LIMIT_S).topics[topic].partitions) == count


def test_two_producers_of_one_id_never_mix_their_transactions(cluster: Cluster) -> None:
    create(cluster, "fenced", partitions=2)
    sure: Counter[bytes] = Counter()
    unsure: set[bytes] = set()
    fenced = [0, 0]

    def write(number: int) -> None:
        turn = 0
        # until they have met, which takes longer where one gets no CPU for a while
        while turn < 12 or (not sum(fenced) and turn < 200):
            turn += 1
            name = b"%d-%d" % (number, turn)
            try:
                producer = transactional(cluster, "fenced")
                for part in range(3):
                    value = name + b"-%d" % part
                    producer.begin_transaction()
                    for partition in (0, 1):
                        producer.produce("fenced", value, partition=partition)
                    unsure.add(value)
                    producer.commit_transaction(LIMIT_S)
                    sure[value] += 2
            except KafkaException:
                fenced[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S * 2)
        assert not thread.is_alive()
    # one that was fenced after it began has no successor if it was the last
    transactional(cluster, "fenced")
    wait_until_decided(cluster, "fenced", (0, 1))
    found = committed_values(cluster, "fenced", (0, 1))
    assert sum(fenced) > 0 and sure, "the producers never met"
    # atomic, once, and nothing that was not begun; what was acknowledged is there
    assert set(found.values()) == {2}, found
    assert set(sure) <= set(found) <= unsure


def test_a_topic_that_is_recreated_within_a_transaction_keeps_nothing_of_it(cluster: Cluster) -> None:
    create(cluster, "again", [1, 2, 3])
    create(cluster, "stays", [1, 2, 3])
    producer = open_transaction(cluster, "again", "again", b"of the first topic")
    producer.produce("stays", b"stays", partition=0)
    assert producer.flush(LIMIT_S) == 0
    delete(cluster, "again")
    eventually(lambda: "again" not in topics(cluster), "the deletion")
    create(cluster, "again", [1, 2, 3])
    producer.commit_transaction(LIMIT_S)
    eventually(lambda: states(cluster)["again"] == "CompleteCommit", "the end of the transaction", LIMIT_S)
    for topic in ("again", "stays"):
        wait_until_decided(cluster, topic)
    assert committed_values(cluster, "again") == Counter()
    assert committed_values(cluster, "stays") == Counter([b"stays"])
    producer.begin_transaction()
    producer.produce("stays", b"next", partition=0)
    producer.commit_transaction(LIMIT_S)
    wait_until_decided(cluster, "stays")
    assert committed_values(cluster, "stays") == Counter([b"stays", b"next"])


def test_one_transaction_has_five_hundred_partitions() -> None:
    many = 500
    config = {**CONFIG, "default.replication.factor": 1, "min.insync.replicas": 1}
    with Cluster(nodes=2, config=config) as cluster:
        create(cluster, "wide", partitions=many)
        for commit in (True, False):
            producer = transactional(cluster, "wide")
            producer.begin_transaction()
            for partition in range(many):
                producer.produce("wide", b"%d %d" % (commit, partition), partition=partition)
            producer.commit_transaction(LIMIT_S) if commit else producer.abort_transaction(LIMIT_S)
        wait_until_decided(cluster, "wide", range(many))
        assert committed_values(cluster, "wide", range(many)) == Counter(b"1 %d" % number for number in range(many))


def test_many_transactional_ids_survive_the_loss_of_all_brokers(cluster: Cluster) -> None:
    create(cluster, "ids", [1, 2, 3])
    names = [f"id-{number}" for number in range(IDS)]
    with client_of(cluster) as client:
        for number, name in enumerate(names):
            _run_transaction(client, name, commit=bool(number % 2))
    for broker in cluster.brokers:
        cluster.kill(broker)
    for broker in cluster.brokers:
        cluster.start(broker)
    cluster.wait_until_ready()
    eventually(lambda: not _loading(cluster), "the coordinators", LIMIT_S)
    wanted = {name: "CompleteCommit" if number % 2 else "CompleteAbort" for number, name in enumerate(names)}

    def are_complete() -> bool:
        found = states(cluster)
        return {name: found.get(name) for name in names} == wanted

    eventually(are_complete, "the end of every transaction", LIMIT_S)


def _id_of_another_coordinator(cluster: Cluster, prefix: str, broker: int) -> str:
    """A transactional id that `broker` does not coordinate."""
    names = [f"{prefix}-{number}" for number in range(20)]
    with client_of(cluster) as client:
        found = client.send_to_any(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=names)).coordinators
    return next(each.key for each in found if each.error_code == 0 and each.node_id != broker)


def _loading(cluster: Cluster) -> bool:
    with client_of(cluster) as client:
        return any(
            client.send_to_broker(broker, ListTransactionsRequest()).error_code for broker in sorted(client.brokers())
        )


def _run_transaction(client: Client, name: str, commit: bool) -> None:
    init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    found = client.send_to_coordinator(name, init, error_code=lambda got: got.error_code, key_type=TRANSACTION)
    assert found.error_code == 0, found
    added = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="ids", partitions=[0])],
    )
    answer = client.send_to_coordinator(
        name, AddPartitionsToTxnRequest(transactions=[added]), error_code=_code_of_adding, key_type=TRANSACTION
    )
    assert _code_of_adding(answer) == 0, answer
    end = EndTxnRequest(
        transactional_id=name,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        committed=commit,
    )
    ended = client.send_to_coordinator(name, end, error_code=lambda got: got.error_code, key_type=TRANSACTION)
    assert ended.error_code == 0, ended


def _code_of_adding(answer: AddPartitionsToTxnResponse) -> int:
    results = answer.results_by_transaction
    return answer.error_code or results[0].topic_results[0].results_by_partition[0].partition_error_code
