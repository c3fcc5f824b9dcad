from __future__ import annotations

from heirlog.sim.history import AcknowledgedRecord, KnownLoss, Observed
from heirlog.sim.history_checks.records import (
    duplicate,
    inconsistent_offsets,
    lost_write,
    stray,
    unseen,
    unseen_anywhere,
)


def test_an_acknowledged_record_that_is_skipped_by_readers_is_lost() -> None:
    acknowledged = [
        AcknowledgedRecord("t-0", 0, "a"),
        AcknowledgedRecord("t-0", 1, "b"),
        AcknowledgedRecord("t-0", 2, "c"),
    ]
    observed = [Observed("t-0", 0, "a"), Observed("t-0", 2, "c")]
    (finding,) = lost_write(acknowledged, observed)
    assert finding.check == "lost-write"
    assert "'b' was acknowledged at offset 1" in finding.sentence


def test_what_lies_above_everything_that_was_read_is_not_yet_lost() -> None:
    assert lost_write([AcknowledgedRecord("t-0", 5, "late")], [Observed("t-0", 0, "a")]) == []
    assert lost_write([AcknowledgedRecord("t-0", 5, "late")], []) == []


def test_an_acknowledged_tail_that_is_gone_in_the_end_was_seen_by_nobody() -> None:
    acknowledged = [AcknowledgedRecord("t-0", 0, "a"), AcknowledgedRecord("t-0", 1, "b", time_ms=10)]
    (finding,) = unseen(acknowledged, [Observed("t-0", 0, "a")])
    assert finding.check == "unseen" and "'b' was acknowledged at offset 1" in finding.sentence
    assert unseen(acknowledged, [Observed("t-0", 0, "a"), Observed("t-0", 1, "b")]) == []
    assert unseen(acknowledged, [Observed("t-0", 0, "a"), Observed("t-0", 1, "x")]) != []
    assert unseen(acknowledged, [Observed("t-0", 0, "a")], [KnownLoss("t-0", 1, 3, time_ms=20)]) == []


def test_a_lossy_election_excuses_what_was_sent_before_it_and_lies_behind_its_start() -> None:
    acknowledged = [AcknowledgedRecord("t-0", 1, "b", time_ms=10)]
    observed = [Observed("t-0", 1, "x"), Observed("t-0", 2, "y")]
    assert lost_write(acknowledged, observed, [KnownLoss("t-0", 1, 3, time_ms=20)]) == []
    assert lost_write(acknowledged, observed, [KnownLoss("t-0", 2, 3, time_ms=20)]) != []
    assert lost_write(acknowledged, observed, [KnownLoss("t-0", 1, 3, time_ms=5)]) != []
    assert lost_write(acknowledged, observed, [KnownLoss("t-1", 1, 3, time_ms=20)]) != []


def test_what_was_acknowledged_in_one_partition_stands_in_no_other() -> None:
    acknowledged = [AcknowledgedRecord("r-0.aa", 0, "a"), AcknowledgedRecord("r-0.bb", 0, "b")]
    assert stray(acknowledged, [Observed("r-0.aa", 0, "a"), Observed("r-0.bb", 0, "b")]) == []
    (finding,) = stray(acknowledged, [Observed("r-0.bb", 1, "a")])
    assert finding.sentence == "'a' was acknowledged in r-0.aa and read in r-0.bb"


def test_a_value_at_two_offsets_is_a_duplicate() -> None:
    observed = [Observed("t-0", 0, "a"), Observed("t-0", 1, "b"), Observed("t-0", 2, "a")]
    (finding,) = duplicate(observed)
    assert finding.sentence == "t-0: 'a' stands at offset 0 and again at 2"
    assert duplicate(observed, once={"b"}) == []


def test_a_value_that_a_loss_took_may_stand_elsewhere() -> None:
    # epoch 1 had it at 7, while the replica that wins at a loss has it at 14, of epoch 0
    observed = [Observed("t-0", 7, "a", 1), Observed("t-0", 14, "a", 0)]
    loss = KnownLoss("t-0", 7, 3, 100, winner=((0, 0),))
    assert duplicate(observed, losses=[loss]) == []
    assert duplicate(observed, losses=[KnownLoss("t-0", 20, 3, 100, winner=((0, 0),))]) != []
    assert duplicate(observed, losses=[KnownLoss("t-0", 7, 3, 100, winner=((0, 0), (1, 7)))]) != []
    # and what was sent again after it
    again = [Observed("t-0", 14, "a", 2), Observed("t-0", 9, "a", 3)]
    assert duplicate(again, losses=[KnownLoss("t-0", 9, 3, 100, winner=((2, 0),))]) == []


def test_reading_an_offset_twice_is_no_duplicate() -> None:
    assert duplicate([Observed("t-0", 0, "a"), Observed("t-0", 0, "a"), Observed("t-1", 4, "a")]) == []


def test_one_offset_with_two_values_is_inconsistent() -> None:
    (finding,) = inconsistent_offsets([], [Observed("t-0", 3, "a"), Observed("t-0", 3, "b")])
    assert finding.check == "inconsistent-offsets"
    (finding,) = inconsistent_offsets([AcknowledgedRecord("t-0", 3, "a")], [Observed("t-0", 3, "b")])
    assert "'a' was acknowledged at offset 3, where 'b' was read" in finding.sentence


def test_another_lineage_may_hold_another_value_at_the_same_offset() -> None:
    before, after = Observed("t-0", 3, "a", leader_epoch=1), Observed("t-0", 3, "b", leader_epoch=2)
    losses = [KnownLoss("t-0", 3, 2, time_ms=10)]
    assert inconsistent_offsets([], [before, after], losses) == []
    assert inconsistent_offsets([], [before, after], [KnownLoss("t-0", 4, 2, time_ms=10)]) != []
    assert inconsistent_offsets([AcknowledgedRecord("t-0", 3, "a", time_ms=5)], [before, after], losses) == []
    assert inconsistent_offsets([AcknowledgedRecord("t-0", 3, "a", time_ms=15)], [before, after], losses) != []


def test_the_winner_of_a_lossy_election_may_have_an_older_tail() -> None:
    before, after = Observed("t-0", 3, "a", leader_epoch=2), Observed("t-0", 3, "b", leader_epoch=1)
    losses = [KnownLoss("t-0", 3, 5, time_ms=10)]
    assert inconsistent_offsets([], [before, after], losses) == []
    assert inconsistent_offsets([], [before, after]) != []
    assert inconsistent_offsets([], [after, before], losses) != []


def test_what_was_acknowledged_without_an_offset_stands_anywhere_in_its_partition() -> None:
    acknowledged = [AcknowledgedRecord("t-0", -1, "a", time_ms=10)]
    assert unseen_anywhere(acknowledged, [Observed("t-0", 7, "a")]) == []
    (finding,) = unseen_anywhere(acknowledged, [Observed("t-1", 7, "a")])
    assert finding.check == "unseen" and "'a' was acknowledged without an offset" in finding.sentence
    assert unseen_anywhere(acknowledged, [], [KnownLoss("t-0", 1, 3, time_ms=20)]) == []
    assert unseen_anywhere(acknowledged, [], [KnownLoss("t-0", 1, 3, time_ms=5)]) != []
