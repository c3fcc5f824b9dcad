"""Client quotas in an image: which limit counts for a client, and records that come, go, are undone and snapshot."""

from __future__ import annotations

import math

import pytest

from heirlog.metadata.apply import apply_all, image_of_snapshot
from heirlog.metadata.as_records import client_quota_record
from heirlog.metadata.client_quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    USER,
    ClientQuotas,
    Entity,
    entity_of,
)
from heirlog.metadata.image import Image


def entity(**names: str | None) -> Entity:
    return entity_of((CLIENT_ID if kind == "client" else kind, name) for kind, name in names.items())


# rows of KIP-55, each with its bucket for alice with client c
PRECEDENCE = [
    (entity(user="alice", client="c"), ("alice", "c")),
    (entity(user="alice", client=None), ("alice", "c")),
    (entity(user="alice"), ("alice", "")),
    (entity(user=None, client="c"), ("alice", "c")),
    (entity(user=None, client=None), ("alice", "c")),
    (entity(user=None), ("alice", "")),
    (entity(client="c"), ("", "c")),
    (entity(client=None), ("", "c")),
]


@pytest.mark.parametrize("row", range(len(PRECEDENCE)))
def test_the_first_row_that_is_configured_counts(row: int) -> None:
    quotas = ClientQuotas()
    for number, (configured, _) in enumerate(PRECEDENCE[row:], row):
        quotas.put(configured, PRODUCER_BYTE_RATE, 1000.0 + number)
    assert quotas.limit(PRODUCER_BYTE_RATE, "alice", "c") == (1000.0 + row, PRECEDENCE[row][1])


def test_each_key_has_its_own_precedence() -> None:
    quotas = ClientQuotas()
    quotas.put(entity(user="alice"), CONSUMER_BYTE_RATE, 5.0)
    quotas.put(entity(client=None), PRODUCER_BYTE_RATE, 7.0)
    assert quotas.limit(PRODUCER_BYTE_RATE, "alice", "c") == (7.0, ("", "c"))
    assert quotas.limit(CONSUMER_BYTE_RATE, "bob", "c") is None


@pytest.mark.parametrize("stored", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_a_stored_value_that_is_no_limit_limits_nobody(stored: float) -> None:
    """Apache Kafka takes NaN in AlterClientQuotas, and no client of it waits; heirlog may run on its metadata."""
    image = image_of_snapshot(
        [
            client_quota_record(entity(user="alice"), PRODUCER_BYTE_RATE, stored),
            client_quota_record(entity(ip=None), CONNECTION_CREATION_RATE, stored),
        ],
        1,
        1,
    )
    quotas = image.client_quotas
    quotas.put(entity(client=None), PRODUCER_BYTE_RATE, 5.0)
    assert quotas.limit(PRODUCER_BYTE_RATE, "alice", "c") is None
    assert quotas.limit(PRODUCER_BYTE_RATE, "bob", "c") == (5.0, ("", "c"))
    assert quotas.ip_limit("10.0.0.1") is None


def test_without_any_quota_of_a_key_nothing_is_counted() -> None:
    quotas = ClientQuotas()
    quotas.put(entity(user="alice"), CONSUMER_BYTE_RATE, 5.0)
    assert quotas.has(CONSUMER_BYTE_RATE) and not quotas.has(PRODUCER_BYTE_RATE)
    quotas.put(entity(user="alice"), CONSUMER_BYTE_RATE, None)
    assert not quotas.has(CONSUMER_BYTE_RATE) and not quotas.by_entity


def test_an_address_has_its_own_limit_or_the_default_in_any_spelling() -> None:
    quotas = ClientQuotas()
    quotas.put(entity(ip="::1"), CONNECTION_CREATION_RATE, 3.0)
    assert quotas.ip_limit("10.0.0.1") is None
    quotas.put(entity(ip=None), CONNECTION_CREATION_RATE, 9.0)
    assert quotas.ip_limit("0:0:0:0:0:0:0:1") == 3.0
    assert quotas.ip_limit("10.0.0.1") == 9.0


def image_of(*records: object) -> Image:
    image = Image()
    apply_all(image, records, 0, 1)
    return image


ALICE = client_quota_record(entity(user="alice"), PRODUCER_BYTE_RATE, 10.0)
ALICE_MORE = client_quota_record(entity(user="alice"), PRODUCER_BYTE_RATE, 20.0)
ALICE_GONE = client_quota_record(entity(user="alice"), PRODUCER_BYTE_RATE, None)
EVERY_IP = client_quota_record(((IP, None),), CONNECTION_CREATION_RATE, 2.0)


def test_records_set_change_and_remove_quotas() -> None:
    image = image_of(ALICE, EVERY_IP, ALICE_MORE)
    assert image.client_quotas.by_entity == {
        ((USER, "alice"),): {PRODUCER_BYTE_RATE: 20.0},
        ((IP, None),): {CONNECTION_CREATION_RATE: 2.0},
    }
    assert image_of(ALICE, EVERY_IP, ALICE_GONE) != image_of(ALICE, EVERY_IP)
    assert image_of(ALICE, ALICE_GONE, ALICE_GONE).client_quotas == ClientQuotas(), "a removal may be repeated"


def test_a_journal_puts_back_what_records_changed() -> None:
    image = image_of(ALICE)
    journal = image.journal()
    apply_all(image, [ALICE_GONE, ALICE_MORE, EVERY_IP], 1, 1, journal)
    assert not journal.is_empty
    image.undo(journal)
    assert image == image_of(ALICE)
    assert image.client_quotas.limit(PRODUCER_BYTE_RATE, "alice", "") == (10.0, ("alice", ""))
    assert image.client_quotas.ip_limit("10.0.0.1") is None


def test_a_snapshot_keeps_every_quota_as_it_was_when_it_began() -> None:
    image = image_of(ALICE, EVERY_IP)
    records = image.records()
    apply_all(image, [ALICE_GONE], 2, 1)
    assert list(records) == [ALICE, EVERY_IP]
    assert image_of_snapshot(image.records(), 2, 1) == image
