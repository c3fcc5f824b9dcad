"""The ledger of exactlyOnce: what can be known of a batch that comes again."""

from __future__ import annotations

import itertools

import pytest
from patience import eventually
from spark.topics import Topics

from heirlog.blocking import Client, CommittedOffset
from heirlog.spark import ledger
from heirlog.spark.ledger import KnownBatches
from heirlog.testing.cluster import Cluster

_numbers = itertools.count()


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    cluster.wait_until_ready()
    return Topics(cluster).create(2)


@pytest.fixture
def transactional_id() -> str:
    return f"ledger-{next(_numbers)}"


@pytest.mark.parametrize(("age_ms", "is_unknown"), [(0, False), (ledger.MAY_HAVE_EXPIRED_MS, True)])
def test_without_an_entry_a_batch_is_unknown_once_its_entry_may_have_expired(
    cluster: Cluster, topic: str, transactional_id: str, age_ms: int, is_unknown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator has forgotten the id too (transactional.id.expiration.ms), or the transaction was aborted."""
    with Client(cluster.bootstrap_servers) as client:
        ledger.note(client, transactional_id, (topic, 0), "a b")
        now_ms = ledger._now_ms()
        monkeypatch.setattr(ledger, "_now_ms", lambda: now_ms + age_ms)
        assert ledger.read(client, transactional_id) == KnownBatches(frozenset(), "a b" if is_unknown else None)


def test_an_entry_says_it_whatever_was_noted(cluster: Cluster, topic: str, transactional_id: str) -> None:
    with Client(cluster.bootstrap_servers) as client:
        ledger.note(client, transactional_id, (topic, 0), "b")
        client.commit(transactional_id, {(topic, 0): CommittedOffset(0, metadata="a")})
        assert ledger.read(client, transactional_id) == KnownBatches(frozenset({"a"}))


def test_of_the_notes_of_several_topics_the_newest_counts(
    cluster: Cluster, topic: str, transactional_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(cluster.bootstrap_servers) as client:
        for at_ms, place in ((3, 1), (20, 0)):
            monkeypatch.setattr(ledger, "_now_ms", lambda at_ms=at_ms: at_ms)
            ledger.note(client, transactional_id, (topic, place), f"at {at_ms}")
        monkeypatch.undo()
        assert ledger.read(client, transactional_id).unknown == "at 20"


def is_committed(client: Client, transactional_id: str) -> bool:
    last = ledger.described(client, transactional_id)
    return last is not None and last.transaction_state == ledger.COMMITTED


def test_of_two_notes_the_newest_is_unknown_at_each_restart(
    cluster: Cluster, topic: str, transactional_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch 6 went to another topic than 5, was committed, and its entry is gone before the note is old."""
    other = Topics(cluster).create(1)
    now_ms = ledger._now_ms()
    with Client(cluster.bootstrap_servers) as client:
        for age_ms, place, name in ((1000, (topic, 0), "query/5"), (0, (other, 0), "query/6")):
            monkeypatch.setattr(ledger, "_now_ms", lambda age_ms=age_ms: now_ms - age_ms)
            ledger.note(client, transactional_id, place, name)
        monkeypatch.undo()
        with client.transactional_producer(transactional_id) as producer:
            producer.begin()
            producer.send_offsets("of-nothing", {(topic, 0): CommittedOffset(0)})
            producer.commit()
        eventually(lambda: is_committed(client, transactional_id))
        for _ in range(3):
            assert ledger.read(client, transactional_id) == KnownBatches(frozenset(), "query/6")
            client.transactional_producer(transactional_id).initialize()


def test_an_id_that_was_never_used_knows_nothing(cluster: Cluster, topic: str, transactional_id: str) -> None:
    with Client(cluster.bootstrap_servers) as client:
        assert ledger.read(client, transactional_id) == KnownBatches(frozenset())
