"""SCRAM credentials in an image: records that come, go, are undone, are in snapshots and in what a publisher sees."""

from __future__ import annotations

import pytest

from heirlog.metadata.apply import UnsupportedRecord, apply_all, image_of_snapshot
from heirlog.metadata.image import Image
from heirlog.node.metadata_publisher import differences
from heirlog.protocol.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord


def record(name: str, mechanism: int = 1, iterations: int = 4096) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v", iterations=iterations
    )


def image_of(*records: object) -> Image:
    image = Image()
    apply_all(image, records, 0, 1)
    return image


def test_a_user_has_a_credential_for_each_mechanism_and_the_last_record_counts() -> None:
    image = image_of(record("a", 1), record("a", 2), record("a", 1, 8192))
    assert {key: one.iterations for key, one in image.scram.items()} == {("a", 1): 8192, ("a", 2): 4096}
    apply_all(image, [RemoveUserScramCredentialRecord(name="a", mechanism=1)], 3, 1)
    assert list(image.scram) == [("a", 2)]


def test_a_removal_of_what_is_not_there_stops_the_reading() -> None:
    with pytest.raises(UnsupportedRecord, match="does not exist"):
        image_of(RemoveUserScramCredentialRecord(name="a", mechanism=1))


def test_a_journal_puts_back_what_records_changed() -> None:
    image = image_of(record("a"))
    journal = image.journal()
    removal = RemoveUserScramCredentialRecord(name="a", mechanism=1)
    apply_all(image, [record("b"), removal, record("a", 1, 8192)], 1, 1, journal)
    assert not journal.is_empty
    image.undo(journal)
    assert image == image_of(record("a"))


def test_a_snapshot_keeps_every_credential() -> None:
    image = image_of(record("b", 2), record("a"))
    assert list(image.records()) == [record("a"), record("b", 2)]
    assert image_of_snapshot(image.records(), 1, 1) == image
    assert image != image_of(record("b", 2), record("c"))


def test_what_a_snapshot_changed_is_found() -> None:
    before, after = image_of(record("a"), record("b")), image_of(record("b", 1, 8192), record("c"))
    assert set(differences(before, after, after.journal()).scram) == {("a", 1), ("b", 1), ("c", 1)}
