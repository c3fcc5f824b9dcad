"""The follower's side of a fetch session against a leader that keeps to the words of KIP-227."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heirlog.broker.fetch_session_handler import FetchRequestData, FetchSessionHandler


class Leader:
    """What a leader knows of one follower, told by whole requests only."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = 0
        self.members: set[str] = set()

    def take(self, said: FetchRequestData[str]) -> int | None:
        """The session id of its answer; None where it refuses."""
        if said.is_full:
            self.session_id += 1
            self.epoch = 1
            self.members = set(said.named)
            return self.session_id
        if (said.session_id, said.session_epoch) != (self.session_id, self.epoch) or not self.session_id:
            return None
        self.epoch += 1
        self.members |= set(said.named)
        self.members -= set(said.forgotten)
        return self.session_id


EVENTS = st.lists(
    st.tuples(st.sampled_from(["say", "forget", "send", "answer", "evict", "fail"]), st.sampled_from("abcd")),
    max_size=60,
)


@given(EVENTS)
def test_what_was_asked_for_is_what_the_leader_remembers(events: list[tuple[str, str]]) -> None:
    session: FetchSessionHandler[str] = FetchSessionHandler()
    leader = Leader()
    wanted: set[str] = set()
    in_flight: list[tuple[int, int | None]] = []
    number = 0

    def answer() -> None:
        sent, session_id = in_flight.pop(0)
        if session_id is not None:
            session.answered(sent, session_id)
        elif session.is_current(sent):
            session.lost(is_over=True)

    def send() -> None:
        nonlocal number
        may_send = not in_flight or (len(in_flight) < 2 and session.is_established and session.has_unsent)
        if may_send and not session.is_empty:
            number += 1
            in_flight.append((number, leader.take(session.next_request(number))))

    for event, key in events:
        if event == "say":
            wanted.add(key)
            session.add(key)
        elif event == "forget":
            wanted.discard(key)
            session.forget(key)
        elif event == "evict":
            leader.session_id += 1
            leader.epoch = -9
        elif event == "fail" and in_flight:
            in_flight.clear()
            session.lost(is_over=False)
        elif event == "send":
            send()
        elif event == "answer" and in_flight:
            answer()
    for _ in range(6):
        while in_flight:
            answer()
        send()
    assert session.is_empty == (not wanted)
    if wanted:
        assert leader.members == wanted


def established(*members: str) -> FetchSessionHandler[str]:
    session: FetchSessionHandler[str] = FetchSessionHandler()
    for key in members:
        session.add(key)
    session.next_request(1)
    session.answered(1, session_id=7)
    return session


def test_what_an_answer_said_in_vain_is_forgotten_first_and_named_by_the_request_after_that() -> None:
    """Named at once, the leader would keep in mind that it has said so: to say it again it has to forget."""
    session = established("a", "b")
    session.fetch_again("a")
    first, second = session.next_request(2), session.next_request(3)
    assert (first.named, first.forgotten) == ([], ["a"])
    assert (second.named, second.forgotten) == (["a"], [])


def test_a_full_request_names_at_once_what_was_forgotten() -> None:
    session = established("a", "b")
    session.fetch_again("a")
    session.lost(is_over=True)
    said = session.next_request(2)
    assert (sorted(said.named), said.forgotten) == (["a", "b"], [])


def test_what_is_not_fetched_is_not_asked_for_again() -> None:
    session = established("a", "b")
    session.forget("a")
    session.fetch_again("a")
    said = session.next_request(2)
    assert (said.named, said.forgotten, session.has_unsent) == ([], ["a"], False)
