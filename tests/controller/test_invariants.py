"""Random histories of one cluster: the state invariants hold at every committed record, and undo finds the way back."""

from __future__ import annotations

from typing import Any

from controller.cluster import alter, create, epoch_of, heartbeat, leading, register, state_of
from controller.fakes import Harness
from controller.test_alter_configs import SET, TOPIC, increments
from controller.test_create_partitions import request as growth
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.metadata.apply import apply_all, image_of_snapshot
from heirlog.metadata.image import Image
from heirlog.metadata.min_isr import min_isr_of
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ElectLeadersRequest

BROKERS = (1, 2, 3, 4)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("expire"), st.sampled_from(BROKERS)),
        st.tuples(st.just("return-cleanly"), st.sampled_from(BROKERS)),
        st.tuples(st.just("return-uncleanly"), st.sampled_from(BROKERS)),
        st.tuples(st.just("unfence"), st.sampled_from(BROKERS)),
        st.tuples(st.just("shut-down"), st.sampled_from(BROKERS)),
        st.tuples(st.just("disk-fails"), st.sampled_from(BROKERS)),
        st.tuples(st.just("alter"), st.integers(0, 2), st.sets(st.sampled_from(BROKERS))),
        st.tuples(st.just("elect"), st.sampled_from((0, 1))),
        st.tuples(st.just("min-isr"), st.sampled_from(("1", "2", "3"))),
        st.tuples(st.just("grow"), st.integers(1, 5)),
        st.tuples(st.just("fail-over")),
    ),
    max_size=25,
)


def check(harness: Harness) -> None:
    """T2 of the simulation's list, and what every state must look like."""
    image = harness.controller.image
    for topic_id, partitions in image.partitions.items():
        for state in partitions.values():
            replicas, isr, elr = set(state.replicas), set(state.isr), set(state.elr)
            assert isr <= replicas and elr <= replicas and not isr & elr, state
            assert len(isr) == len(state.isr)
            assert set(state.last_known_elr) <= replicas
            if len(isr) >= min_isr_of(image, harness.static, topic_id, state):
                assert not elr, state
            for member in isr:
                assert not image.brokers[member].fenced, state
            assert state.leader == -1 or state.leader in isr, state


def play(harness: Harness, event: tuple[Any, ...]) -> None:
    image, controller = harness.controller.image, harness.controller
    match event:
        case ("expire", broker):
            controller.expire_session(broker, "as the history says")
        case ("return-cleanly" | "return-uncleanly" as how, broker):
            controller.sessions.end(broker)
            previous = epoch_of(harness, broker) if how == "return-cleanly" else -1
            register(harness, broker, life=harness.quorum.log_end_offset % 200, previous=previous)
        case ("unfence", broker):
            heartbeat(harness, broker)
        case ("shut-down", broker):
            heartbeat(harness, broker, want_shut_down=True)
        case ("disk-fails", broker):
            heartbeat(harness, broker, offline_log_dirs=list(image.brokers[broker].directories))
        case ("alter", number, wanted):
            state = state_of(harness, "foo", number)
            if state.leader != -1:
                alter(harness, sorted({int(state.leader)} | (wanted & set(state.replicas))), "foo", number)
        case ("elect", kind):
            harness.ask("elect_leaders", ElectLeadersRequest(election_type=kind, topic_partitions=None), 2)
        case ("min-isr", value):
            request = increments((TOPIC, "foo", [("min.insync.replicas", SET, value)]))
            assert harness.ask("incremental_alter_configs", request).responses[0].error_code == ErrorCode.NONE
        case ("grow", count):
            harness.ask("create_partitions", growth(("foo", count, None)))
        case ("fail-over",):
            harness.lose()
            harness.lead()
    harness.commit()


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_the_state_invariants_hold_after_every_event(events: list[tuple[Any, ...]]) -> None:
    harness = leading(4)
    create(harness, "foo", 3, 3, min_insync_replicas="2")
    for event in events:
        play(harness, event)
        check(harness)
    read = Image()
    for batch in harness.quorum.log:
        apply_all(read, batch.records, batch.base_offset, batch.epoch)
    assert read == harness.controller.image


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4))
def test_a_lost_leadership_takes_back_exactly_what_was_not_committed(
    events: list[tuple[Any, ...]], gone: list[int]
) -> None:
    harness = leading(4)
    create(harness, "foo", 3, 3, min_insync_replicas="2")
    for event in events:
        play(harness, event)
    image = harness.controller.image
    committed = image_of_snapshot(image.records(), image.offset, image.epoch)
    for broker in gone:
        harness.controller.expire_session(broker, "uncommitted")  # type: ignore[arg-type]
    harness.lose()
    assert harness.controller.image == committed
