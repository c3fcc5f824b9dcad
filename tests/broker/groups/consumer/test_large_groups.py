"""A thousand members and ten thousand partitions: no step of it keeps the coordinator from other work."""

from __future__ import annotations

from collections import Counter

from heirlog.broker.groups.consumer.values import ConsumerGroupPhase

from .coordinating import Consumer, Coordinating

MEMBERS, PARTITIONS, TOPICS = 1000, 5000, ("foo", "bar")


class Large:
    def __init__(self) -> None:
        self.rig = Coordinating(partitions=PARTITIONS)
        self.rig.set_topic("bar", PARTITIONS)
        self.rig.publish()
        self.members = [self.newcomer(f"m{number:04}") for number in range(MEMBERS)]
        self.epoch = 5

    def newcomer(self, name: str) -> Consumer:
        return Consumer(self.rig, name, subscribed_topic_names=list(TOPICS))

    def move(self) -> None:
        for leader in (2, 1):
            self.epoch += 1
            self.rig.lead(self.epoch, leader=leader)
        self.rig.env.advance(100)

    def round(self) -> None:
        """A heartbeat of each member; no two of them believe to have one partition."""
        for member in self.members:
            answer = member.beat(owns=True)
            assert not answer.isupper(), answer
        self.rig.env.advance(500)
        told = Counter(
            (topic_id, number)
            for member in self.members
            for topic_id, numbers in member.owned.items()
            for number in numbers
        )
        assert not told or max(told.values()) == 1

    def sizes(self) -> set[int]:
        return {sum(map(len, member.owned.values())) for member in self.members}


def test_a_coordinator_that_moves_while_ten_thousand_partitions_are_assigned_loses_none() -> None:
    large = Large()
    for member in large.members:
        member.join()
    assert large.rig.group().committed.phase is ConsumerGroupPhase.ASSIGNING
    # in the midst of the first target, of the revocations, and of what is taken
    large.rig.env.advance(1)
    large.move()
    for _ in range(4):
        large.round()
        large.move()
    large.round()
    assert large.sizes() == {10}
    large.members.append(large.newcomer("newcomer"))
    large.members[-1].join()
    large.move()
    for _ in range(4):
        large.round()
    assert large.sizes() == {9, 10} and large.rig.group().committed.phase is ConsumerGroupPhase.STABLE
