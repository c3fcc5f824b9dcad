"""What the picture of a drill is drawn from: what was done to nodes, what clients saw, and the metadata log.

    RecordedCluster   kill, stop, start, pause ...  --> faults, with their times
    ClientProgress          acknowledgements, watermark   --> curves
    metadata log      every leader, ISR and ELR     --> rows of each partition     (`committed_log`, `chaos_rows`)
                                                          |
                                                          v
                                            timeline.svg, and verdict.json

Times are milliseconds of `now_ms`, the clock that nodes write into their logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heirlog.drill.chaos_faults import FaultEvent
from heirlog.drill.chaos_record import now_ms
from heirlog.drill.chaos_rows import LEGEND, active_controller, faults_of, partition_rows
from heirlog.drill.committed_log import CommittedLog, PartitionChange, committed
from heirlog.drill.observe import DrillFailure
from heirlog.drill.out_folder import PICTURE, VERDICT
from heirlog.drill.progress import ClientProgress
from heirlog.drill.timeline import Curve, Group, Row, Span, draw
from heirlog.local.cluster import Cluster, ClusterError
from heirlog.protocol.errors import KafkaError
from heirlog.server.ledger import PowerCut

PARTITIONS_MAX = 24
CURVES = {"curve": "what clients saw", "moment": "a step of the drill"}


class RecordedCluster(Cluster):
    """A cluster that keeps what was done to its nodes, and when."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.faults: list[FaultEvent] = []
        self._lasting: dict[int, FaultEvent] = {}

    def kill(self, node: int) -> None:
        self._begin(node, "killed")
        super().kill(node)

    def stop(self, node: int, timeout_s: float | None = None) -> None:
        self._begin(node, "stopped")
        super().stop(node, timeout_s)

    def pause(self, node: int) -> None:
        self._begin(node, "paused")
        super().pause(node)

    def resume(self, node: int) -> None:
        super().resume(node)
        self._end(node)

    def start(self, node: int, *, accept_older_metadata: bool = False) -> None:
        super().start(node, accept_older_metadata=accept_older_metadata)
        self._end(node)

    def lose_unflushed(self, node: int, seed: int | None = None) -> PowerCut:
        cut = super().lose_unflushed(node, seed)
        self._end(node)
        self._begin(node, "killed, and its unflushed bytes lost")
        return cut

    def _begin(self, node: int, kind: str) -> None:
        self._end(node)
        self._lasting[node] = FaultEvent(kind, (node,), now_ms())
        self.faults.append(self._lasting[node])

    def _end(self, node: int) -> None:
        event = self._lasting.pop(node, None)
        if event is not None:
            event.end_ms = now_ms()


class Recording:
    """One drill's picture, drawn at the end: also where the drill cannot continue.

    Its folder exists; it is removed when a signal ends the drill, so that the end is not drawn as a failure.
    """

    def __init__(self, drill: str, folder: Path) -> None:
        self._drill = drill
        self.folder = folder.absolute()
        self.progress = ClientProgress()
        self._began_ms = now_ms()

    def finish(self, cluster: RecordedCluster, result: dict[str, Any]) -> dict[str, Any]:
        """The verdict with the path of its picture."""
        return {**result, "picture": str(self._draw(cluster, result, committed(cluster)))}

    @contextmanager
    def of_failures(self, cluster: RecordedCluster) -> Iterator[None]:
        """A drill that does not reach a state that it needs has a picture too, while its cluster still runs."""
        try:
            yield
        except (DrillFailure, ClusterError) as failure:
            try:
                log = committed(cluster)
            except (DrillFailure, KafkaError, OSError):
                # what keeps the drill from going on may be that there is no controller
                log = None
            result = {"drill": self._drill, "passed": False, "failure": str(failure)}
            raise DrillFailure(f"{failure}; picture: {self._draw(cluster, result, log)}") from failure

    def _draw(self, cluster: RecordedCluster, result: Mapping[str, Any], log: CommittedLog | None) -> Path:
        return _write(self.folder, cluster, result, log, (self._began_ms, now_ms()), self.progress)


@contextmanager
def recorded(drill: str, folder: Path, security: str, **settings: Any) -> Iterator[tuple[RecordedCluster, Recording]]:
    """A cluster of three brokers, or with these settings. Its picture is drawn also if the drill cannot continue."""
    recording = Recording(drill, folder)
    with RecordedCluster(security=security, **settings) as cluster, recording.of_failures(cluster):
        yield cluster, recording


def _write(
    folder: Path,
    cluster: RecordedCluster,
    result: Mapping[str, Any],
    log: CommittedLog | None,
    window: tuple[int, int],
    progress: ClientProgress,
) -> Path:
    """`timeline.svg` and `verdict.json` in `folder`; the path of the picture.

    result: the verdict, as JSON. log: None if no controller could be asked. window: begin and end of the drill.
    """
    notes = [result["failure"]] if "failure" in result else []
    if log is None:
        notes.append("no controller could be asked: leaders, ISR and ELR are missing")
        log = CommittedLog()
    groups = [_nodes(cluster, log, progress.steps, window[1])]
    if progress.curves:
        groups.append(Group("Clients", [Curve(name, points) for name, points in progress.curves.items()]))
    partitions: dict[tuple[str, int], list[PartitionChange]] = {}
    for change in log.changes:
        if not change.topic.startswith("__"):
            partitions.setdefault((change.topic, change.index), []).append(change)
    # those that are still there tell more than those that were deleted, and those that changed most tell most
    ranked = sorted(partitions, key=lambda name: (partitions[name][-1].after is None, -len(partitions[name]), name))
    for topic, index in sorted(ranked[:PARTITIONS_MAX]):
        own = partitions[topic, index]
        groups.append(partition_rows(f"{topic}-{index}", own, [], window))
    if len(partitions) > PARTITIONS_MAX:
        notes.append(f"{PARTITIONS_MAX} of {len(partitions)} partitions are shown")
    title = f"Drill {result['drill']}: {'passed' if result['passed'] else 'FAILED'}"
    picture = folder / PICTURE
    picture.write_text(draw(title, groups, *window, _legend(groups), notes), encoding="utf-8")
    (folder / VERDICT).write_text(json.dumps(dict(result), indent=2) + "\n", encoding="utf-8")
    return picture


def _legend(groups: Sequence[Group]) -> dict[str, str]:
    """Of what the picture has."""
    kinds = {"curve"} if any(isinstance(row, Curve) for group in groups for row in group.rows) else set()
    kinds |= {span.kind for group in groups for row in group.rows if isinstance(row, Row) for span in row.spans}
    return {kind: meaning for kind, meaning in (LEGEND | CURVES).items() if kind in kinds}


def _nodes(cluster: RecordedCluster, log: CommittedLog, steps: Sequence[tuple[int, str]], end_ms: int) -> Group:
    names = {node: f"broker {node}" for node in cluster.brokers}
    names |= {node: f"controller {node}" for node in cluster.controllers if node not in names}
    rows = [faults_of(node, name, cluster.faults, end_ms) for node, name in names.items()]
    rows.append(active_controller(log, names, end_ms))
    if steps:
        rows.insert(0, Row("steps", [Span(at_ms, at_ms, "moment", text) for at_ms, text in steps]))
    return Group("Faults", rows)
