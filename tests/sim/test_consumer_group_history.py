"""What may be held against a group of the consumer protocol, on histories written by hand."""

from __future__ import annotations

from heirlog.sim.consumer_group_history import EPOCH, INSTANCE, AnsweredEpoch, ConsumerGroupHistory, consumer_findings
from heirlog.sim.history import KnownLoss


def checks(history: ConsumerGroupHistory, *losses: KnownLoss) -> list[str]:
    return [finding.check for finding in consumer_findings(history, losses)]


def test_epochs_do_not_go_back() -> None:
    history = ConsumerGroupHistory("g")
    history.answers = [AnsweredEpoch("m", 5, 1, 2, sent_ms=1), AnsweredEpoch("m", 4, 3, 4, sent_ms=3)]
    assert checks(history) == [EPOCH]
    history.answers[1].sent = 1
    assert checks(history) == [], "the requests overlap"


def test_the_newest_member_keeps_its_instance_id_unless_its_join_may_be_lost() -> None:
    history = ConsumerGroupHistory("g", fenced=["m"])
    assert checks(history) == [INSTANCE], "it never joined"
    history.answers = [AnsweredEpoch("m", 1, 1, 2, sent_ms=7)]
    assert checks(history, KnownLoss("__consumer_offsets-0.x", 0, 5, time_ms=6)) == [INSTANCE]
    assert checks(history, KnownLoss("__consumer_offsets-0.x", 0, 5, time_ms=7)) == []
