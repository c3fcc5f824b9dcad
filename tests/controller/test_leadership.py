"""What happens to the partitions of a broker that goes, comes, loses its data or is unregistered."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from heirlog.controller.leadership import Leadership, without
from heirlog.metadata.image import (
    BROKER_RESOURCE,
    ELR_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    TOPIC_RESOURCE,
    Image,
)
from heirlog.metadata.state import BrokerRegistration, PartitionRegistration, TopicImage
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid

from .fakes import static

TOPIC = Uuid(b"topic-id-of-foo!")


def image(*partitions: dict[str, Any], fenced: tuple[int, ...] = (), manager: bool = True) -> Image:
    """Brokers 1-3 and partitions of three replicas, min ISR 2."""
    made = Image()
    made.set_feature(METADATA_VERSION, 27)
    made.set_feature(ELR_VERSION, 1)
    made.set_feature(RECOVERY_VERSION, int(manager))
    made.set_config(BROKER_RESOURCE, "", "min.insync.replicas", "2")
    for broker in (1, 2, 3):
        state = BrokerRegistration(
            id=BrokerId(broker),
            epoch=BrokerEpoch(broker),
            incarnation_id=Uuid(bytes(16)),
            fenced=broker in fenced,
        )
        made.set_broker(BrokerId(broker), state)
    made.set_topic(TOPIC, TopicImage("foo", TOPIC))
    for index, changed in enumerate(partitions):
        values: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": BrokerId(1)}
        values |= {"leader_epoch": LeaderEpoch(0), "partition_epoch": PartitionEpoch(0)} | changed
        made.set_partition(TOPIC, index, PartitionRegistration(**values))
    return made


def leadership(of: Image) -> Leadership:
    return Leadership(of, static())


def test_a_broker_that_leaves_leaves_every_isr_and_hands_over_what_it_led() -> None:
    changes = leadership(image({}, {"leader": BrokerId(2)}, {"isr": (2, 3), "leader": BrokerId(2)})).broker_leaves(
        BrokerId(1)
    )
    assert [(r.partition_id, r.isr, r.leader) for r in changes.records] == [(0, [2, 3], 2), (1, [2, 3], -2)]


def test_a_broker_that_leaves_below_min_isr_is_eligible_and_one_that_lost_its_data_is_not() -> None:
    of = image({"isr": (1, 2)})
    (left,) = leadership(of).broker_leaves(BrokerId(2)).records
    (lost,) = leadership(of).broker_lost_data(BrokerId(2)).records
    assert (left.isr, left.eligible_leader_replicas, left.last_known_elr) == ([1], [2], None)
    assert (lost.isr, lost.eligible_leader_replicas, lost.last_known_elr) == ([1], None, [2])


def test_lost_data_is_looked_for_in_the_elr_too() -> None:
    (record,) = leadership(image({"isr": (1,), "elr": (2,)})).broker_lost_data(BrokerId(2)).records
    assert (record.isr, record.eligible_leader_replicas, record.last_known_elr) == (None, [], [2])


def test_an_unregistered_broker_leaves_the_list_of_the_lost_as_well() -> None:
    of = image({"isr": (), "leader": BrokerId(-1), "last_known_elr": (1, 2)}, fenced=(1, 2, 3))
    named = leadership(of).named_in_lists(BrokerId(1))
    (record,) = leadership(of).broker_unregistered(BrokerId(1), named).records
    assert record.last_known_elr == [2]


def test_a_broker_that_joins_leads_what_it_is_eligible_for_and_nothing_else() -> None:
    leaderless = {"isr": (), "leader": BrokerId(-1)}
    of = image(leaderless | {"elr": (1,)}, leaderless | {"elr": (2,)}, leaderless, fenced=(1, 2, 3))
    changes = leadership(of).broker_joins(BrokerId(1))
    assert [(record.partition_id, record.leader, record.isr) for record in changes.records] == [(0, 1, [1])]


def test_a_fenced_or_stopping_broker_is_not_acceptable_unless_it_is_the_one_that_joins() -> None:
    of = image({}, fenced=(2,))
    state = of.partitions[TOPIC][0]
    assert leadership(of).acceptable_replicas(state) == (1, 3)
    acceptable = leadership(of).acceptable(state, leaving=BrokerId(1), joining=BrokerId(2))
    assert [broker for broker in state.replicas if acceptable(broker)] == [2, 3]


def test_without_removes_one_id_and_keeps_the_order() -> None:
    ids = (BrokerId(3), BrokerId(1), BrokerId(2))
    assert without(ids, BrokerId(1)) == (3, 2)
    assert without(ids, BrokerId(4)) is ids


def every_state() -> list[dict[str, Any]]:
    """Each of three replicas is in the ISR, in the ELR, in LastKnownELR or in none of them; two orders of replicas."""
    states = []
    for replicas in ((1, 2, 3), (2, 3, 1), (3, 1)):
        for where in product(("isr", "elr", "last_known_elr", ""), repeat=len(replicas)):
            lists = {name: tuple(r for r, at in zip(replicas, where, strict=True) if at == name) for name in where}
            lists.pop("", None)
            isr = lists.setdefault("isr", ())
            for leader in (*isr, -1):
                states.append({"replicas": replicas, "leader": BrokerId(leader), **lists})
    return states


@pytest.mark.parametrize(("manager", "lost", "min_isr"), list(product((False, True), (False, True), ("1", "2"))))
def test_partitions_in_the_same_state_change_as_if_each_was_changed_alone(
    manager: bool, lost: bool, min_isr: str
) -> None:
    def changed(*states: dict[str, Any]) -> list[Any]:
        of = image(*states, fenced=(3,), manager=manager)
        of.set_config(BROKER_RESOURCE, "", "min.insync.replicas", min_isr)
        of.set_config(TOPIC_RESOURCE, "foo", "unclean.leader.election.enable", "true")
        made = leadership(of)
        found = made.broker_lost_data(BrokerId(1)) if lost else made.broker_leaves(BrokerId(1))
        return [[replace_id(record) for record in found.records], list(found.elections)]

    def replace_id(record: Any) -> str:
        record.partition_id = 0
        return repr(record)

    states = every_state()
    # twice: the second of two equal ones gets a copy
    together = changed(*states, *states)
    # without the others there is nothing to copy
    apart = [changed(state) for state in (*states, *states)]
    assert sorted(together[0]) == sorted(record for one in apart for record in one[0])
    assert Counter(together[1]) == Counter(basis for one in apart for basis in one[1])
    assert len(together[0]) > 50
