"""The image: what records do to it, what a snapshot keeps, and how a journal finds the way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heirlog.metadata.apply import UnsupportedRecord, apply, apply_all, image_of_snapshot
from heirlog.metadata.broker_partitions import BrokerPartitions
from heirlog.metadata.image import ELR_VERSION, METADATA_VERSION, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.protocol.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    VotersRecord,
)

FOO, BAR = b"f" * 16, b"b" * 16


def image_of(*records: Any) -> Image:
    image = Image()
    apply_all(image, records, 0, 1)
    return image


def partition(topic_id: bytes = FOO, number: int = 0, **more: Any) -> PartitionRecord:
    values: dict[str, Any] = {
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "leader": 1,
        "leader_epoch": 5,
        "partition_epoch": 7,
    }
    return PartitionRecord(topic_id=topic_id, partition_id=number, **(values | more))


FIRST = (TopicRecord(name="foo", topic_id=FOO), partition())


def seats_from_scratch(image: Image) -> tuple[BrokerPartitions, BrokerPartitions, BrokerPartitions]:
    """The slow second definition of the three indexes."""
    isr, elr, leaders = BrokerPartitions(), BrokerPartitions(), BrokerPartitions()
    for topic_id, partitions in image.partitions.items():
        for number, state in partitions.items():
            isr.move(topic_id, number, (), state.isr)
            elr.move(topic_id, number, (), state.elr)
            leaders.move(topic_id, number, (), (state.leader,))
    return isr, elr, leaders


def test_a_change_that_names_a_leader_bumps_both_epochs_also_for_the_same_leader() -> None:
    image = image_of(*FIRST, PartitionChangeRecord(topic_id=FOO, partition_id=0, leader=1))
    state = image.partitions[FOO][0]
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 6, 8)


def test_a_change_without_a_leader_bumps_the_partition_epoch_only() -> None:
    image = image_of(*FIRST, PartitionChangeRecord(topic_id=FOO, partition_id=0, isr=[1]))
    state = image.partitions[FOO][0]
    assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((1,), 1, 5, 8)


def test_clear_elr_touches_only_partitions_that_have_something_to_clear() -> None:
    image = image_of(
        TopicRecord(name="foo", topic_id=FOO),
        partition(isr=[1], eligible_leader_replicas=[3, 2], last_known_elr=[3]),
        partition(number=1),
        ClearElrRecord(topic_name="foo"),
    )
    cleared, untouched = image.partitions[FOO][0], image.partitions[FOO][1]
    assert (cleared.elr, cleared.last_known_elr, cleared.partition_epoch) == ((), (), 8)
    assert untouched.partition_epoch == 7
    assert not image.in_elr.any(2)


def test_clear_elr_behind_a_deletion_does_not_bring_the_topic_back() -> None:
    image = image_of(*FIRST, RemoveTopicRecord(topic_id=FOO), ClearElrRecord(topic_name="foo"))
    assert not image.topics and not image.topic_ids and not image.partitions


def test_a_deleted_topic_takes_its_configs_and_seats_along() -> None:
    config = ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="1")
    image = image_of(*FIRST, config, RemoveTopicRecord(topic_id=FOO))
    assert not image.configs
    assert not image.in_isr.any(1) and not image.leaders.any(1)


def test_records_of_a_transaction_show_at_its_end_and_not_before() -> None:
    image = image_of(BeginTransactionRecord(name="x"), FeatureLevelRecord(name=METADATA_VERSION, feature_level=27))
    assert image.metadata_version == 0
    apply(image, EndTransactionRecord(), 2, 1)
    assert image.metadata_version == 27 and image.open_transaction is None


def test_records_of_an_aborted_transaction_never_show() -> None:
    image = image_of(BeginTransactionRecord(), *FIRST, AbortTransactionRecord(reason="no"), NoOpRecord())
    assert not image.topics and image.offset == 4


def test_a_record_without_meaning_here_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedRecord, match="VotersRecord"):
        image_of(VotersRecord())


def test_feature_level_zero_is_no_feature() -> None:
    image = image_of(
        FeatureLevelRecord(name=ELR_VERSION, feature_level=1), FeatureLevelRecord(name=ELR_VERSION, feature_level=0)
    )
    assert not image.elr_enabled and image.features == {}


def test_a_registration_change_for_another_epoch_is_refused() -> None:
    image = image_of(RegisterBrokerRecord(broker_id=1, broker_epoch=0))
    with pytest.raises(UnsupportedRecord, match="broker 1"):
        apply(image, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=-1), 1, 1)


def test_seats_come_in_order_of_topic_and_partition() -> None:
    image = image_of(
        TopicRecord(name="foo", topic_id=FOO),
        TopicRecord(name="bar", topic_id=BAR),
        *[partition(FOO, number) for number in (70, 3, 0)],
        partition(BAR, 9),
    )
    assert image.in_isr.of(2) == [(BAR, 9), (FOO, 0), (FOO, 3), (FOO, 70)]
    assert image.leaders.count(1) == 4


def test_a_copy_is_equal_and_goes_its_own_way() -> None:
    """Records of every kind of state, and what takes it away: applied to the one, it stays in the other."""
    acl = AccessControlEntryRecord(id=FOO, resource_type=2, resource_name="foo", pattern_type=3, principal="User:a")
    user = [ClientQuotaRecord.EntityData(entity_type="user", entity_name="a")]
    first = [
        *FIRST,
        FeatureLevelRecord(name=ELR_VERSION, feature_level=1),
        partition(FOO, 1, isr=[1], eligible_leader_replicas=[2]),
        RegisterBrokerRecord(broker_id=1, broker_epoch=0),
        RegisterControllerRecord(controller_id=9),
        ConfigRecord(resource_type=2, resource_name="foo", name="k", value="1"),
        ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=5),
        acl,
        UserScramCredentialRecord(name="a", mechanism=1),
        DelegationTokenRecord(token_id="t"),
        ClientQuotaRecord(entity=user, key="producer_byte_rate", value=1.0),
    ]
    second = [
        FeatureLevelRecord(name=ELR_VERSION, feature_level=0),
        PartitionChangeRecord(topic_id=FOO, partition_id=0, isr=[2], leader=2, eligible_leader_replicas=[1]),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=0),
        RegisterControllerRecord(controller_id=8),
        ConfigRecord(resource_type=2, resource_name="foo", name="k", value=None),
        ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=9),
        RemoveAccessControlEntryRecord(id=FOO),
        RemoveUserScramCredentialRecord(name="a", mechanism=1),
        RemoveDelegationTokenRecord(token_id="t"),
        ClientQuotaRecord(entity=user, key="producer_byte_rate", remove=True),
        RemoveTopicRecord(topic_id=FOO),
        BeginTransactionRecord(),
        TopicRecord(name="bar", topic_id=BAR),
    ]
    image = image_of(*first)
    copy = image.copy()
    assert copy == image_of(*first)
    assert [*copy.acls.matching_resource(2, "foo")] == [*image.acls.matching_resource(2, "foo")] != []
    assert copy.client_quotas.limit("producer_byte_rate", "a", "") is not None
    apply_all(copy, second, len(first), 1)
    assert image == image_of(*first) and copy == image_of(*first, *second)
    half = copy.copy()
    apply_all(copy, [EndTransactionRecord()], copy.offset + 1, 1)
    assert half == image_of(*first, *second) and "bar" not in half.topic_ids
    assert copy == image_of(*first, *second, EndTransactionRecord()) and "bar" in copy.topic_ids


# -- random records ---------------------------------------------------------------------------------------------

BROKERS = st.integers(1, 5)
IDS = st.lists(BROKERS, unique=True, max_size=4)
TOPICS = st.sampled_from([(FOO, "foo"), (BAR, "bar")])


def _records() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda t: TopicRecord(name=t[1], topic_id=t[0]), TOPICS),
        st.builds(lambda t: RemoveTopicRecord(topic_id=t[0]), TOPICS),
        st.builds(lambda name: ClearElrRecord(topic_name=name), st.sampled_from(["", "foo", "bar"])),
        st.builds(
            lambda t, number, isr, elr, known, leader: partition(
                t[0], number, isr=isr, eligible_leader_replicas=elr, last_known_elr=known, leader=leader
            ),
            TOPICS,
            st.integers(0, 3),
            IDS,
            IDS,
            IDS,
            st.integers(-1, 5),
        ),
        st.builds(
            lambda t, number, isr, elr, leader: PartitionChangeRecord(
                topic_id=t[0], partition_id=number, isr=isr, eligible_leader_replicas=elr, leader=leader
            ),
            TOPICS,
            st.integers(0, 3),
            st.none() | IDS,
            st.none() | IDS,
            st.integers(-2, 5),
        ),
        st.builds(
            lambda broker, fenced: RegisterBrokerRecord(broker_id=broker, broker_epoch=0, fenced=fenced),
            BROKERS,
            st.booleans(),
        ),
        st.builds(
            lambda broker, fenced: BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=0, fenced=fenced),
            BROKERS,
            st.sampled_from([-1, 1]),
        ),
        st.builds(lambda broker: UnregisterBrokerRecord(broker_id=broker, broker_epoch=0), BROKERS),
        st.builds(
            lambda kind, name, value: ConfigRecord(resource_type=kind, resource_name=name, name="k", value=value),
            st.sampled_from([2, 4]),
            st.sampled_from(["", "foo", "bar"]),
            st.none() | st.sampled_from(["1", "2"]),
        ),
        st.builds(lambda level: FeatureLevelRecord(name=ELR_VERSION, feature_level=level), st.integers(0, 1)),
        st.builds(lambda at: ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=at), st.integers(1, 9)),
        st.just(BeginTransactionRecord()),
        st.just(EndTransactionRecord()),
        st.just(AbortTransactionRecord()),
        st.just(NoOpRecord()),
    )


def apply_if_sensible(image: Image, record: Any, journal: ImageJournal | None) -> None:
    """Random records may contradict the image in ways a log never does: those are left out, by trying on a copy."""
    trial = image_of_snapshot(image.records(), image.offset, image.epoch) if image.open_transaction is None else None
    if trial is not None and not isinstance(record, BeginTransactionRecord):
        try:
            apply(trial, record, image.offset + 1, 1)
        except (UnsupportedRecord, KeyError):
            return
    elif trial is None and not isinstance(record, AbortTransactionRecord | NoOpRecord | FeatureLevelRecord):
        return
    apply(image, record, image.offset + 1, 1, journal)


@settings(deadline=None)
@given(st.lists(_records(), max_size=30), st.lists(_records(), max_size=30))
def test_undo_restores_an_equal_image(before: list[Any], after: list[Any]) -> None:
    image, untouched = Image(), Image()
    for record in before:
        apply_if_sensible(image, record, None)
        apply_if_sensible(untouched, record, None)
    journals = []
    for record in after:
        journals.append(image.journal())
        apply_if_sensible(image, record, journals[-1])
    for journal in reversed(journals):
        image.undo(journal)
    assert image == untouched


@settings(deadline=None)
@given(st.lists(_records(), max_size=30), st.lists(_records(), max_size=30))
@example([], [TopicRecord(name="foo", topic_id=FOO), partition(FOO, 0), RemoveTopicRecord(topic_id=FOO)])
def test_one_journal_over_many_records_undoes_them_all(before: list[Any], after: list[Any]) -> None:
    """And what is applied to an image does not change a copy of it."""
    image = Image()
    for record in before:
        apply_if_sensible(image, record, None)
    untouched = image.copy()
    journal = image.journal()
    for record in after:
        apply_if_sensible(image, record, journal)
    image.undo(journal)
    assert image == untouched


@settings(deadline=None)
@given(st.lists(_records(), max_size=40))
def test_the_indexes_equal_those_computed_from_scratch(records: list[Any]) -> None:
    image = Image()
    for record in records:
        apply_if_sensible(image, record, None)
        assert (image.in_isr, image.in_elr, image.leaders) == seats_from_scratch(image)


@settings(deadline=None)
@given(st.lists(_records(), max_size=40))
def test_a_snapshot_rebuilds_the_image(records: list[Any]) -> None:
    image = Image()
    for record in records:
        apply_if_sensible(image, record, None)
    if image.open_transaction is None:
        assert image_of_snapshot(image.records(), image.offset, image.epoch) == image


def test_a_snapshot_describes_the_image_at_its_begin_whatever_changes_while_it_is_read() -> None:
    image = image_of(
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=27),
        TopicRecord(name="foo", topic_id=FOO),
        PartitionRecord(topic_id=FOO, partition_id=0, replicas=[1], isr=[1], leader=1),
        ConfigRecord(resource_type=2, resource_name="foo", name="a", value="1"),
    )
    expected = list(image.records())
    reading = image.records()
    first = next(reading)
    later = [
        PartitionChangeRecord(topic_id=FOO, partition_id=0, leader=-1),
        ConfigRecord(resource_type=2, resource_name="foo", name="a", value="2"),
        TopicRecord(name="bar", topic_id=BAR),
        RemoveTopicRecord(topic_id=FOO),
        ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1_000),
    ]
    apply_all(image, later, 10, 1)
    assert [first, *reading] == expected
    assert list(image.records()) != expected
