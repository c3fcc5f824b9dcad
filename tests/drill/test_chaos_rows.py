"""What the timeline shows of a partition."""

from __future__ import annotations

from pathlib import Path

from drill.metadata_logs import TOPIC_ID, committed, created, elr_on

from heirlog.drill.chaos_rows import GAP_MS, gaps, partition_rows
from heirlog.drill.timeline import Span
from heirlog.protocol.records import PartitionChangeRecord

WINDOW = (0, 10_000)


def spans(found: list[Span]) -> list[tuple[int, int, str]]:
    return [(span.begin_ms, span.end_ms, span.kind) for span in found]


def test_rows_show_leader_isr_elr_and_what_is_missing(tmp_path: Path) -> None:
    def changed(**fields: object) -> list[PartitionChangeRecord]:
        return [PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)]  # type: ignore[arg-type]

    log = committed(
        tmp_path,
        [
            (0, elr_on()),
            (1_000, created("t", TOPIC_ID, [1, 2])),
            (4_000, changed(isr=[1], eligible_leader_replicas=[2])),
            (6_000, changed(isr=[], leader=-1, eligible_leader_replicas=[1, 2])),
            (7_000, changed(isr=[2], leader=2, eligible_leader_replicas=[], last_known_elr=[1])),
        ],
    )
    group = partition_rows("t-0", log.changes, [], WINDOW)
    found = {row.label: spans(row.spans) for row in group.rows}
    assert found == {
        "availability": [
            (4_000, 6_000, "under-min-isr"),
            (6_000, 7_000, "no-leader"),
            (7_000, 10_000, "under-min-isr"),
        ],
        # a span ends where anything of its text changes, so that the text is right everywhere
        "broker 1": [
            (1_000, 4_000, "leader"),
            (4_000, 6_000, "leader"),
            (6_000, 7_000, "elr"),
            (7_000, 10_000, "last-known"),
        ],
        "broker 2": [(1_000, 4_000, "isr"), (4_000, 6_000, "elr"), (6_000, 7_000, "elr"), (7_000, 10_000, "leader")],
    }
    assert group.rows[1].spans[0].text == "leader 1 epoch 0, ISR 1,2, ELR -, last known -, replicas 1,2"


def test_a_writer_that_waits_for_more_than_a_second_found_a_gap() -> None:
    assert gaps([100, 200, 200 + GAP_MS, 5_000], (0, 5_500)) == [(200 + GAP_MS, 5_000)]
    assert gaps([], (0, 5_500)) == [(0, 5_500)]
    assert gaps([9_000], (0, 500)) == []
