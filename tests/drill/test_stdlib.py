"""Real input, all of it, once: the command repeats it to 800,000 records."""

from __future__ import annotations

from pathlib import Path

from cli.json_shapes import mistakes_of

from heirlog.drill.picture import RecordedCluster, Recording
from heirlog.drill.stdlib import run, stdlib_lines


def test_every_line_of_the_standard_library_survives_a_broker_killed_and_restarted_on_the_way(tmp_path: Path) -> None:
    recording = Recording("stdlib", tmp_path)
    with RecordedCluster(nodes=3) as cluster:
        verdict = run(cluster, records=len(stdlib_lines()), say=recording.progress.step, progress=recording.progress)
        assert sorted(cluster.pids) == [1, 2, 3, 100]
        found = recording.finish(cluster, verdict.as_json())
    picture = Path(found["picture"]).read_text()
    assert not mistakes_of("drill stdlib", found)
    assert ">acknowledged<" in picture and ">read<" in picture and "broker 3 is killed" in picture
    assert all(f">stdlib-{partition}<" in picture for partition in range(6))
    assert verdict.passed, verdict.as_json()
    assert verdict.lines >= 300_000
    assert verdict.acknowledged == verdict.read == verdict.records == verdict.lines


def test_the_input_is_bytes_as_they_are() -> None:
    lines = stdlib_lines()
    assert any(line == b"\n" for line in lines)
    assert any(max(line, default=0) > 127 for line in lines)
