"""What the doctor says of damaged folders is what recovery then does, and saying it changes nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Heirlog
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from heirlog.cli.offline.doctor import DirectoryCheck, examine
from heirlog.env import Files
from heirlog.local.errors import LocalError
from heirlog.local.format import Disk
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.protocol.types import ZERO_UUID, BrokerEpoch, Uuid, uuid_text
from heirlog.server.main import lock_directories
from heirlog.storage.clean_shutdown import read_clean_shutdown
from heirlog.storage.config import LogConfig
from heirlog.storage.identity import format_directory
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)
KEYS = ("orders", 0), ("orders", 1)
ABORT = TransactionMarker(commit=False, coordinator_epoch=0)


def write_folder(path: Path, *, clean: bool) -> None:
    """Two logs of several segments, epochs and producers, stopped in one way or the other."""
    wall_ms = int(time.time() * 1000)
    with Disk() as disk:
        disk.wait(lambda done: format_directory(disk.files, str(path), "c", 1, Uuid(b"d" * 16), done) and None, "x")
        directory = LogDirectory(disk.files, str(path), Uuid(b"d" * 16), None)
        disk.wait(lambda done: directory.load_logs(lambda topic: CONFIG, wall_ms, done), "loading")
        logs = [directory.create_log(*key, Uuid(b"t" * 16), CONFIG) for key in KEYS]
        for number in range(60):
            for log in logs:
                _append(log, number, wall_ms + number)
            if number == 35:
                for log in logs:
                    disk.wait(log.flush, "flushing")
                disk.wait(lambda done: directory.write_checkpoints(dict.fromkeys(KEYS, 30), done), "checkpoints")
        for log in logs:
            disk.wait(log.flush, "flushing")
        if clean:
            high = {key: log.log_end_offset for key, log in zip(KEYS, logs, strict=True)}
            disk.wait(lambda done: directory.close_cleanly(BrokerEpoch(7), done, high), "closing")
        else:
            directory.close()


def _append(log: Log, number: int, timestamp_ms: int) -> None:
    records = [(b"k", b"v" * (number % 7) * 10, (), timestamp_ms + i) for i in range(1 + number % 3)]
    sequence = log.producers.producers[9].batches[-1].last_sequence + 1 if 9 in log.producers.producers else 0
    batch = encode_batch(records, producer_id=9, producer_epoch=0, base_sequence=sequence)
    log.append_as_leader(batch, number // 20, timestamp_ms)
    if number % 9 == 4:
        base = log.log_end_offset
        batch = encode_batch(records[:1], base, number // 20, 0, 8, 0, base, transactional=True)
        log.append_as_follower(batch, number // 20)
        log.append_marker(ABORT, 8, 0, 0, number // 20, timestamp_ms)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    found = {clean: tmp_path_factory.mktemp(f"clean-{clean}") / "log" for clean in (True, False)}
    for clean, path in found.items():
        write_folder(path, clean=clean)
    return found


def tree_of(files: Files, path: str) -> dict[str, bytes]:
    found = {}
    for name in files.list(path):
        inner = f"{path}/{name}"
        if files.is_dir(inner):
            found |= tree_of(files, inner)
        else:
            file = files.open(inner)
            found[inner] = file.pread(file.size, 0)
            file.close()
    return found


def stats_of(path: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(file): (file.stat().st_size, file.stat().st_mtime_ns, file.read_bytes())
        for file in path.rglob("*")
        if file.is_file()
    }


def recover(path: Path) -> tuple[LogDirectory, dict[str, bytes], str]:
    """What a start does: the directory, the files afterwards, and why it could not be loaded."""
    with Disk() as disk:
        failure = ""
        directory = LogDirectory(disk.files, str(path), ZERO_UUID, read_clean_shutdown(disk.files, str(path)))
        try:
            disk.wait(lambda done: directory.load_logs(lambda topic: LogConfig(), 0, done), "loading")
        except LocalError as error:
            failure = str(error)
        for _ in range(8):  # files that are replaced as a whole take a few steps
            disk.wait(lambda done: disk.files.sync_dir(str(path), done), "settling")
        tree = tree_of(disk.files, str(path))
        directory.close()
        return directory, tree, failure


def sizes(tree: dict[str, bytes]) -> int:
    return sum(len(content) for path, content in tree.items() if path.endswith(".log"))


def compare(path: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the doctor says that recovery will leave, and what it does leave."""
    before = stats_of(path)
    examination = DirectoryCheck(str(path))
    examination.keep_changes = True
    report = examination.run()
    predicted = tree_of(examination.after, str(path))
    assert examine(str(path)).as_json() == report.as_json()
    assert stats_of(path) == before, "looking changed something"
    directory, recovered, failure = recover(path)
    kinds = [finding.kind for finding in report.findings]
    assert ("log-unreadable" in kinds) == bool(failure)
    cut = {finding.values["partition"]: finding.values for finding in report.findings if finding.kind == "log-cut"}
    for (_, partition), log in directory.logs.items():
        values = cut.get(partition, {"bytes": 0, "end_offset": log.log_end_offset})
        assert (values["bytes"], values["end_offset"]) == (log.cut_bytes, log.log_end_offset)
    if not failure:
        lost = sizes({name: content for name, (*_, content) in before.items()}) - sizes(recovered)
        assert sum(values["bytes"] for values in cut.values()) == lost
    return predicted, recovered


@pytest.mark.parametrize("clean", [True, False])
def test_folders_as_a_stop_leaves_them_are_healthy(folders: dict[bool, Path], clean: bool) -> None:
    report = examine(str(folders[clean]))
    assert report.healthy, [finding.as_json() for finding in report.findings]
    assert report.stopped_cleanly is clean
    assert report.logs == 2 and report.segments > 6
    assert bool(report.bytes_to_scan) is not clean


def test_a_log_without_records_that_was_stopped_cleanly_is_healthy_without_indexes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Disk() as disk:
        disk.wait(lambda done: format_directory(disk.files, str(path), "c", 1, Uuid(b"d" * 16), done) and None, "x")
        directory = LogDirectory(disk.files, str(path), Uuid(b"d" * 16), None)
        disk.wait(lambda done: directory.load_logs(lambda topic: CONFIG, 0, done), "loading")
        directory.create_log(*KEYS[0], Uuid(b"t" * 16), CONFIG)
        disk.wait(lambda done: directory.close_cleanly(BrokerEpoch(7), done), "closing")
    assert not list(path.rglob("*index"))
    report = examine(str(path))
    assert report.healthy and report.stopped_cleanly and not report.findings


def damage(path: Path, how: str, at: float, byte: int) -> None:
    size = path.stat().st_size
    position = min(int(at * size), max(size - 1, 0))
    match how:
        case "cut":
            os.truncate(path, position)
        case "flip" if size:
            content = bytearray(path.read_bytes())
            content[position] ^= byte
            path.write_bytes(content)
        case "extend":
            with path.open("ab") as file:
                file.write(bytes([byte]) * 100)
        case "remove":
            path.unlink()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    clean=st.booleans(),
    damages=st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.sampled_from(["cut", "flip", "extend", "remove"]),
            st.floats(0, 1),
            st.integers(1, 255),
        ),
        min_size=1,
        max_size=3,
    ),
)
@example(clean=True, damages=[(0, "remove", 0.0, 1)])
def test_what_the_doctor_predicts_recovery_does(
    folders: dict[bool, Path],
    tmp_path_factory: pytest.TempPathFactory,
    clean: bool,
    damages: list[tuple[int, str, float, int]],
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "log"
    shutil.copytree(folders[clean], path)
    for which, how, at, byte in damages:
        files = sorted(file for file in path.rglob("*") if file.is_file())
        damage(files[which % len(files)], how, at, byte)
    predicted, recovered = compare(path)
    assert predicted == recovered
    shutil.rmtree(path)


def newest(path: Path, suffix: str) -> Path:
    return sorted((path / "orders-0").glob(f"*{suffix}"))[-1]


def oldest(path: Path, suffix: str) -> Path:
    return sorted((path / "orders-0").glob(f"*{suffix}"))[0]


def flip(path: Path, at: int, bits: int = 0xFF) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= bits
    path.write_bytes(content)


def cut_tail(path: Path) -> None:
    os.truncate(newest(path, ".log"), newest(path, ".log").stat().st_size - 5)


CASES: dict[str, tuple[bool, Callable[[Path], None]]] = {
    "log-cut": (False, cut_tail),
    "batch-damaged": (True, lambda path: flip(oldest(path, ".log"), 63)),
    "index-damaged": (True, lambda path: os.truncate(oldest(path, ".index"), 5)),
    "index-damaged ": (True, lambda path: os.truncate(oldest(path, ".txnindex"), 5)),
    "index-missing": (True, lambda path: oldest(path, ".timeindex").unlink()),
    "index-wrong": (True, lambda path: flip(oldest(path, ".index"), 7, 1)),
    "leader-epochs-damaged": (True, lambda path: flip(path / "orders-0/leader-epoch-checkpoint", 0)),
    "producer-snapshot-damaged": (True, lambda path: flip(newest(path, ".snapshot"), 8)),
    "checkpoint-damaged": (True, lambda path: flip(path / "replication-offset-checkpoint", 0)),
    "meta-properties-damaged": (True, lambda path: flip(path / "meta.properties", 0)),
    "not-formatted": (True, lambda path: (path / "meta.properties").unlink()),
    "clean-shutdown-damaged": (True, lambda path: flip(path / ".kafka_cleanshutdown", 0)),
    "log-shorter-than-flushed": (True, lambda path: newest(path, ".log").unlink()),
    "log-unreadable": (True, lambda path: (path / "orders-0/partition.metadata").unlink()),
    "checkpoint-beyond-end": (
        False,
        lambda path: (path / "replication-offset-checkpoint").write_text("0\n1\norders 0 9999\n") and None,
    ),
}


def test_a_folder_that_is_no_log_directory_is_not_checked(heirlog: Heirlog, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    outcome = heirlog("doctor", str(tmp_path))
    assert (outcome.code, outcome.out) == (2, "") and "is no log directory of a node" in outcome.err


@pytest.mark.parametrize("kind", CASES)
def test_each_kind_of_damage_has_a_name(heirlog: Heirlog, folders: dict[bool, Path], tmp_path: Path, kind: str) -> None:
    clean, break_it = CASES[kind]
    path = tmp_path / "log"
    shutil.copytree(folders[clean], path)
    break_it(path)
    report = examine(str(path))
    assert kind.strip() in [finding.kind for finding in report.findings], report.as_json()
    assert heirlog("doctor", str(path)).code == 1
    predicted, recovered = compare(path)
    assert predicted == recovered


def test_the_command_says_what_is_cut_in_words_and_in_json(
    heirlog: Heirlog, folders: dict[bool, Path], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    shutil.copytree(folders[False], path)
    healthy = heirlog("doctor", str(tmp_path))
    assert healthy.code == 0 and "healthy" in healthy.out and healthy.err == ""
    cut_tail(path)
    received = heirlog("doctor", str(path))
    assert received.code == 1 and "orders-0" in received.out and "recovery cuts offsets" in received.out
    shown = heirlog("doctor", "--json", str(path))
    assert shown.code == 1 and '"kind": "log-cut"' in shown.out and '"healthy": false' in shown.out


def test_a_folder_in_use_is_refused(heirlog: Heirlog, folders: dict[bool, Path], tmp_path: Path) -> None:
    path = tmp_path / "log"
    shutil.copytree(folders[True], path)
    held = lock_directories([str(path)], {})
    refused = heirlog("doctor", str(path))
    assert refused.code == 2 and "stop the node first" in refused.err and refused.out == ""
    for lock in held:
        os.close(lock)
    assert heirlog("doctor", str(path)).code == 0
    assert heirlog("doctor", str(tmp_path / "nowhere")).code == 2


def test_logs_that_were_set_aside_are_listed_with_topic_id_size_and_how_they_come_back(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_folder(path, clean=True)
    aside = f"orders-0.{'0a' * 16}-stray"
    (path / "orders-0").rename(path / aside)
    size = sum(file.stat().st_size for file in (path / aside).glob("*.log"))
    (path / f"__cluster_metadata-0.{'0b' * 16}-stray").mkdir()
    notes = {finding.kind: finding for finding in examine(str(path)).findings if "stray" in finding.kind}
    log = notes["stray-log"]
    assert (log.path, log.values) == (str(path / aside), {"topic_id": uuid_text(b"t" * 16), "bytes": size})
    assert "used again if the metadata assign" in log.next_start
    assert "older metadata were accepted" in notes["stray-metadata-log"].sentence
