"""Which strategy counts, and from when on."""

from __future__ import annotations

import pytest
from controller.recovering import FLAG, STRATEGY, Cluster, back, lost

from heirlog.metadata.survey import at_once


def test_each_change_of_the_strategy_takes_effect_at_once() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1)
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "None"})
    assert cluster.described().state == "ManualElectionRequired"
    cluster.reply(2)
    cluster.reply(3)
    assert cluster.leader() == -1
    assert at_once(cluster.harness.controller.recovery_counts()) == (0, 1)
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "Aggressive"})
    assert cluster.leader() == -1 or cluster.leader() > 0
    cluster.advance(5_000)
    assert cluster.leader() > 0


@pytest.mark.parametrize(("flag", "strategy"), [("true", "Aggressive"), ("false", "Balanced")])
def test_the_deprecated_flag_speaks_where_no_strategy_is_set(flag: str, strategy: str) -> None:
    cluster = lost()
    cluster.set(**{"min.insync.replicas": "3", FLAG: flag})
    assert cluster.described().strategy == strategy
    cluster.set(**{"min.insync.replicas": "3", FLAG: flag, STRATEGY: "None"})
    assert cluster.described().strategy == "None"


def test_who_sets_the_deprecated_flag_is_told_what_replaces_it() -> None:
    cluster = lost()
    cluster.env.events.clear()
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "Balanced"})
    assert not [event for event, _ in cluster.env.events if event == "configuration-deprecated"]
    cluster.set(**{"min.insync.replicas": "3", FLAG: "true"})
    (values,) = [values for event, values in cluster.env.events if event == "configuration-deprecated"]
    assert (values["name"], values["where"], values["instead"]) == (FLAG, "foo", STRATEGY)
    assert values["meaning"] == "true is Aggressive, false is Balanced; a strategy that is set wins"
    received = Cluster(unclean_leader_election_enable="true").env.events
    assert [values["where"] for event, values in received if event == "configuration-deprecated"] == [
        "server.properties"
    ]
