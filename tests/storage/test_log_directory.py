from __future__ import annotations

from collections.abc import Callable

import pytest
from storage.logs import batch, contents, placed
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import walk
from heirlog.protocol.types import BrokerEpoch, PartitionKey, Uuid
from heirlog.storage.clean_shutdown import decide_previous_broker_epoch, parse_clean_shutdown
from heirlog.storage.cleaning.records import empty_batch
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.identity import format_directory, read_meta_properties
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory
from heirlog.storage.recovery import at_once

PATH = "/data"
DIRECTORY_ID = Uuid(bytes(range(16)))
TOPIC_ID = Uuid(bytes(range(16, 32)))
CLEAN_FILE = f"{PATH}/.kafka_cleanshutdown"


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    format_directory(files, PATH, "cluster", 1, DIRECTORY_ID, lambda error: None)
    files.run()
    return files


class Failures:
    def __init__(self) -> None:
        self.seen: list[tuple[LogDirectory, OSError]] = []

    def log_directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        self.seen.append((directory, error))

    def log_start_moved(self, key: PartitionKey) -> None:
        """Not of interest here."""


def loaded(files: MemoryFiles, listener: Failures | None = None) -> LogDirectory:
    directory = LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1, listener=listener)
    results: list[OSError | None] = []
    directory.load_logs(lambda topic: LogConfig(), 0, results.append)
    assert results == [None]
    return directory


def opened(files: MemoryFiles, listener: Failures | None = None) -> LogDirectory:
    directory = loaded(files, listener)
    results: list[OSError | None] = []
    directory.claim(results.append)
    files.run()
    assert results == [None]
    return directory


def with_a_flushed_log(files: MemoryFiles, topic: str = "t") -> LogDirectory:
    """Of three records; log start 2, recovery point and high watermark 3."""
    directory = opened(files)
    log = directory.create_log(topic, 0, TOPIC_ID, LogConfig())
    log.append_as_leader(batch("a", "b", "c"), 0, 0)
    log.increment_log_start(2)
    log.flush(lambda error: None)
    files.run()
    directory.write_checkpoints({(topic, 0): 3})
    files.run()
    return directory


def marks(files: MemoryFiles) -> list[str]:
    return [name for name in files.list(PATH) if name.endswith("-delete")]


def closed(files: MemoryFiles, directory: LogDirectory, epoch: int, **more: object) -> list[OSError | None]:
    results: list[OSError | None] = []
    directory.close_cleanly(BrokerEpoch(epoch), results.append, **more)  # type: ignore[arg-type]  # one test names it
    files.run()
    return results


def test_a_formatted_directory_names_cluster_node_and_itself(files: MemoryFiles) -> None:
    found = read_meta_properties(files, PATH)
    assert found is not None
    assert (found.cluster_id, found.node_id, found.directory_id) == ("cluster", 1, DIRECTORY_ID)
    assert bytes(files.inodes[f"{PATH}/meta.properties"].data).startswith(b"version=1\n")


def test_formatting_twice_is_refused_with_the_way_out(files: MemoryFiles) -> None:
    with pytest.raises(StorageFormatError, match="--ignore-formatted"):
        format_directory(files, PATH, "cluster", 1, DIRECTORY_ID, lambda error: None)


def test_a_foreign_or_unformatted_directory_is_refused_with_what_to_do(files: MemoryFiles) -> None:
    files.mkdirs("/empty")
    with pytest.raises(StorageFormatError, match=r"/empty is not formatted: run `heirlog storage format"):
        LogDirectory.open(files, "/empty", cluster_id="cluster", node_id=1)
    with pytest.raises(StorageFormatError, match="belongs to cluster cluster, not other"):
        LogDirectory.open(files, PATH, cluster_id="other", node_id=1)
    with pytest.raises(StorageFormatError, match="belongs to node 1, not 2"):
        LogDirectory.open(files, PATH, cluster_id="cluster", node_id=2)
    files.inodes[f"{PATH}/meta.properties"].data[:] = b"version=1\n"
    with pytest.raises(StorageFormatError, match="is damaged"):
        LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1)


def test_a_clean_stop_is_seen_once_with_its_broker_epoch_and_watermarks(files: MemoryFiles) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(batch("a"), 0, 0)
    assert closed(files, directory, 37, high_watermarks={("t", 0): 1}) == [None]
    assert bytes(files.inodes[CLEAN_FILE].data) == b'{"version":0,"brokerEpoch":37}'
    files.crash()
    again = LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1)
    assert again.was_clean and again.clean_broker_epoch == 37
    again.load_logs(lambda topic: LogConfig(), 0, lambda error: None)
    files.run()
    assert files.exists(CLEAN_FILE), "a node that ends before it is registered is as clean as before"
    again.claim(lambda error: None)
    files.run()
    assert not files.exists(CLEAN_FILE)
    loaded = again.logs["t", 0]
    assert (contents(loaded), loaded.topic_id, again.high_watermarks) == ([(0, "a")], TOPIC_ID, {("t", 0): 1})
    files.crash()
    assert not LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1).was_clean


def test_loading_after_a_clean_stop_writes_nothing_and_the_claim_removes_the_file_durably(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 1, 0)
    directory.create_log("u", 0, TOPIC_ID, LogConfig())
    directory.delete_log("u", 0)
    closed(files, directory, 1)
    before = {path: bytes(inode.data) for path, inode in files.inodes.items()}
    again = LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1)
    files.operations.clear()
    again.load_logs(lambda topic: LogConfig(), 0, lambda error: None)
    again.close()
    files.run()
    assert files.operations == []
    assert {path: bytes(inode.data) for path, inode in files.inodes.items()} == before
    claimed: list[OSError | None] = []
    again = loaded(files)
    again.claim(claimed.append)
    assert (files.operations, claimed) == (["unlink .kafka_cleanshutdown", f"sync {PATH}"], [])
    files.run()
    assert claimed == [None] and not [name for name in files.list(PATH) if name.endswith("-delete")]


def test_the_clean_shutdown_file_is_written_last(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 0, 0)
    files.operations.clear()
    closed(files, directory, 1)
    assert files.operations[-2:] == ["flush .kafka_cleanshutdown", f"sync {PATH}"]
    assert any("recovery-point" in operation for operation in files.operations[:-2])


def with_three_logs_stopped_cleanly(files: MemoryFiles) -> LogDirectory:
    """Started again: one with a producer and two segments, one with records, one without."""
    directory = opened(files)
    busy, quiet = (directory.create_log(topic, 0, TOPIC_ID, LogConfig()) for topic in ("busy", "quiet"))
    directory.create_log("empty", 0, TOPIC_ID, LogConfig())
    busy.append_as_leader(batch("a", producer_id=7, producer_epoch=0, base_sequence=0), 3, 0)
    busy.roll()
    busy.append_as_leader(batch("b", timestamp_ms=5), 3, 0)
    quiet.append_as_leader(batch("c", timestamp_ms=6), 3, 0)
    assert closed(files, directory, 1) == [None]
    return opened(files)


def test_a_clean_stop_leaves_logs_alone_that_are_as_the_last_one_left_them(files: MemoryFiles) -> None:
    directory = with_three_logs_stopped_cleanly(files)
    before = {path: bytes(inode.data) for path, inode in files.inodes.items() if path.count("/") > 2}
    files.operations.clear()
    assert closed(files, directory, 2) == [None]
    assert not [operation for operation in files.operations if ".log" in operation or "snapshot" in operation]
    assert files.operations.count("flush .kafka_cleanshutdown") == 1
    files.crash()
    assert {path: bytes(inode.data) for path, inode in files.inodes.items() if path.count("/") > 2} == before
    again = loaded(files)
    assert again.clean_broker_epoch == 2
    assert [contents(log) for log in again.logs.values()] == [[(0, "a"), (1, "b")], [], [(0, "c")]]
    assert list(again.logs["busy", 0].producers.producers) == [7]


@pytest.mark.parametrize(
    ("change", "records"),
    [
        (lambda log: log.append_as_leader(batch("z"), 4, 0), [(0, "c"), (1, "z")]),
        (lambda log: (log.truncate_to(0), log.append_as_leader(batch("z", timestamp_ms=9), 3, 0)), [(0, "z")]),
        (lambda log: log.roll(), [(0, "c")]),
        (lambda log: (log.epochs.begin(4, 1), log.append_as_leader(batch("z"), 4, 0)), [(0, "c"), (1, "z")]),
        (lambda log: log.truncate_fully_and_start_at(8), []),
        (lambda log: (log.roll(), log.increment_log_start(1), log.delete_old_segments(0, 1)), []),
    ],
    ids=["append", "same length", "roll", "epoch", "truncate", "retention"],
)
def test_a_log_that_has_changed_since_the_last_clean_stop_is_written_and_flushed(
    files: MemoryFiles, change: Callable[[Log], object], records: list[tuple[int, str]]
) -> None:
    directory = with_three_logs_stopped_cleanly(files)
    log = directory.logs["quiet", 0]
    change(log)
    newest, epochs = log.max_timestamp_offset(log.log_end_offset), log.epochs.entries
    assert closed(files, directory, 2) == [None]
    files.crash()
    again = loaded(files)
    assert again.clean_broker_epoch == 2
    found = again.logs["quiet", 0]
    assert (contents(found), found.epochs.entries) == (records, epochs)
    assert found.max_timestamp_offset(found.log_end_offset) == newest
    assert found.log_start_offset == log.log_start_offset


def test_an_epoch_in_which_nothing_was_written_is_no_reason_to_finish_a_log(files: MemoryFiles) -> None:
    """A broker begins one in each partition that it leads, also in those that nobody uses."""
    directory = with_three_logs_stopped_cleanly(files)
    for log in directory.logs.values():
        log.epochs.begin(9, log.log_end_offset)
    files.operations.clear()
    assert closed(files, directory, 2) == [None]
    assert not [operation for operation in files.operations if "leader-epoch" in operation or ".log" in operation]
    files.crash()
    again = loaded(files)
    assert again.clean_broker_epoch == 2
    assert [log.epochs.entries for log in again.logs.values()] == [[(3, 0)], [], [(3, 0)]]


def test_logs_that_a_stop_did_not_prove_are_finished_by_the_next_one(files: MemoryFiles) -> None:
    directory = with_three_logs_stopped_cleanly(files)
    assert closed(files, directory, 2) == [None]
    files.rmdir(f"{PATH}/busy-0")
    directory = opened(files)
    assert directory.clean_broker_epoch is None
    files.operations.clear()
    assert closed(files, directory, 3) == [None]
    assert files.operations.count("flush 00000000000000000000.log") == 2


def under_flush(log: Log, files: MemoryFiles) -> None:
    log.flush(lambda error: None)


def under_a_swap(log: Log, files: MemoryFiles) -> None:
    """The cleaner has written a segment that is to replace this one."""
    log.swaps.prepare(log.segments, log.segments[0])


def with_a_new_name(log: Log, files: MemoryFiles) -> None:
    """A file in its directory was made, renamed or removed."""
    log._directory.changed()


def with_an_unwritten_epoch(log: Log, files: MemoryFiles) -> None:
    log.epochs.assign(4, 0)


def with_an_index_file(log: Log, files: MemoryFiles) -> None:
    log._flusher.add_index_files([files.open(f"{PATH}/quiet-0/00000000000000000000.index")])


def after_a_failed_flush(log: Log, files: MemoryFiles) -> None:
    files.flush_error = OSError(5, "Input/output error")
    log.flush(lambda error: None)
    files.run()


@pytest.mark.parametrize(
    "state",
    [
        under_flush,
        under_a_swap,
        with_a_new_name,
        with_an_unwritten_epoch,
        with_an_index_file,
        after_a_failed_flush,
    ],
)
def test_a_log_with_the_records_of_the_last_clean_stop_is_left_alone_only_if_all_of_it_is_on_disk(
    files: MemoryFiles, state: Callable[[Log, MemoryFiles], None]
) -> None:
    log = with_three_logs_stopped_cleanly(files).logs["quiet", 0]
    assert log.has_nothing_to_finish
    state(log, files)
    assert not log.has_nothing_to_finish


def test_epochs_that_a_start_has_found_again_are_written_before_the_next_clean_stop(files: MemoryFiles) -> None:
    assert closed(files, with_three_logs_stopped_cleanly(files), 2) == [None]
    files.unlink(f"{PATH}/quiet-0/leader-epoch-checkpoint")
    log = loaded(files).logs["quiet", 0]
    assert log.epochs.entries == [(3, 0)] and not log.has_nothing_to_finish
    files.run()
    assert log.has_nothing_to_finish


def test_the_newest_epoch_of_a_log_that_was_emptied_is_written(files: MemoryFiles) -> None:
    """It is all that a recovery can learn of this replica."""
    directory = with_three_logs_stopped_cleanly(files)
    log = directory.logs["quiet", 0]
    log.increment_log_start(1)
    files.run()
    log.epochs.begin(4, 1)
    assert closed(files, directory, 2) == [None]
    files.crash()
    again = loaded(files)
    assert again.clean_broker_epoch == 2
    assert again.logs["quiet", 0].epochs.entries == [(4, 1)]


def test_a_log_that_the_start_had_to_cut_is_finished(files: MemoryFiles) -> None:
    directory = with_three_logs_stopped_cleanly(files)
    assert closed(files, directory, 2) == [None]
    path = f"{PATH}/quiet-0/00000000000000000000.log"
    torn = files.open(path)
    size = torn.append(b"torn")
    files.flush(torn, lambda error: None)
    files.run()
    directory = opened(files)
    assert directory.logs["quiet", 0].cut_bytes == 4
    assert closed(files, directory, 3) == [None]
    files.crash()
    assert files.open(path).size == size, "what was cut does not come back"
    assert loaded(files).clean_broker_epoch == 3


def test_a_log_in_which_the_start_has_tidied_up_is_finished(files: MemoryFiles) -> None:
    directory = with_three_logs_stopped_cleanly(files)
    assert closed(files, directory, 2) == [None]
    files.open(f"{PATH}/quiet-0/00000000000000000000.log.cleaned", create=True)
    directory = opened(files)
    assert directory.clean_broker_epoch == 2
    files.operations.clear()
    assert closed(files, directory, 3) == [None]
    assert f"sync {PATH}/quiet-0" in files.operations and f"sync {PATH}/busy-0" not in files.operations


@pytest.mark.parametrize("place", [0, -1], ids=["closed segment", "active segment"])
def test_indexes_that_a_read_has_rebuilt_are_flushed_by_the_next_clean_stop(files: MemoryFiles, place: int) -> None:
    directory = opened(files)
    log = directory.create_log("quiet", 0, TOPIC_ID, LogConfig(segment_bytes=20_000))
    for number in range(400):
        log.append_as_leader(batch("c" * 100, timestamp_ms=1000 + number), 3, 0)
    assert closed(files, directory, 1) == [None]
    directory = opened(files)
    segment = directory.logs["quiet", 0].segments[place]
    largest = segment.max_timestamp
    segment.distrust_indexes()
    assert closed(files, directory, 2) == [None]
    files.crash()
    directory = loaded(files)
    assert directory.clean_broker_epoch == 2
    segment = directory.logs["quiet", 0].segments[place]
    assert (segment.max_timestamp, segment.indexes_rebuilt) == (largest, False)


@pytest.mark.parametrize(
    ("timestamp_ms", "left", "rebuilt"),
    [(1000, b"", True), (1000, bytes(12), True), (-1, b"", False)],
    ids=["empty", "zeros", "without timestamps"],
)
def test_a_time_index_that_a_power_cut_has_taken_back_is_rebuilt(
    files: MemoryFiles, timestamp_ms: int, left: bytes, rebuilt: bool
) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(batch("a", timestamp_ms=timestamp_ms), 3, 0)
    assert closed(files, directory, 1) == [None]
    files.inodes[f"{PATH}/t-0/00000000000000000000.timeindex"].data[:] = left
    (segment,) = loaded(files).logs["t", 0].segments
    assert (segment.max_timestamp, segment.indexes_rebuilt) == (timestamp_ms, rebuilt)


@pytest.mark.parametrize("timestamp_ms", [1000, -1])
def test_the_indexes_of_a_segment_that_begins_with_an_emptied_batch_are_not_rebuilt(
    files: MemoryFiles, timestamp_ms: int
) -> None:
    """Such a batch has the timestamp of records that the cleaner has removed."""
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    (_, removed), *_ = walk(memoryview(placed(0, 3, "a", timestamp_ms=2000)))
    log.append_as_follower(empty_batch(removed)[0], 3)
    log.append_as_follower(placed(1, 3, "b", timestamp_ms=timestamp_ms), 3)
    assert closed(files, directory, 1) == [None]
    (segment,) = loaded(files).logs["t", 0].segments
    assert (segment.max_timestamp, segment.indexes_rebuilt) == (timestamp_ms, False)


def test_a_log_without_records_is_stopped_cleanly_without_files_of_indexes_and_producers(files: MemoryFiles) -> None:
    directory = with_three_logs_stopped_cleanly(files)
    assert {name.rpartition(".")[2] for name in files.list(f"{PATH}/empty-0")} == {"log", "metadata"}
    directory.logs["quiet", 0].truncate_to(0)
    assert closed(files, directory, 2) == [None]
    files.crash()
    quiet = opened(files).logs["quiet", 0]
    assert quiet.max_timestamp_offset(0) is None
    quiet.append_as_leader(batch("z", timestamp_ms=2), 3, 0)
    found = quiet.max_timestamp_offset(1)
    assert found is not None and (found.timestamp_ms, found.offset) == (2, 0), "not that of a record that was cut off"


def test_a_flush_that_fails_while_stopping_leaves_no_clean_shutdown_file(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 0, 0)
    files.run()
    files.flush_error = OSError(5, "Input/output error")
    (error,) = closed(files, directory, 1)
    assert error is files.flush_error
    assert not files.exists(CLEAN_FILE)


def test_a_directory_whose_logs_were_never_loaded_is_not_declared_clean(files: MemoryFiles) -> None:
    directory = LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1)
    with pytest.raises(OSError, match="were not loaded"):
        directory.close_cleanly(BrokerEpoch(1), lambda error: None)


@pytest.mark.parametrize("loss", ["shorter", "gone"])
def test_a_log_that_lost_records_after_the_clean_stop_makes_it_unclean(files: MemoryFiles, loss: str) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(batch("a"), 0, 0)
    log.append_as_leader(batch("b"), 0, 0)
    assert closed(files, directory, 37) == [None]
    if loss == "shorter":
        file = files.open(f"{PATH}/t-0/{0:020d}.log")
        file.truncate(file.size - 1)
    else:
        files.rmdir(f"{PATH}/t-0")
    again = opened(files)
    assert again.clean_broker_epoch is None and not again.was_clean


@pytest.mark.parametrize("damage", ["missing", "zeros at its end"])
def test_a_clean_stop_is_not_proven_without_the_recovery_point_of_each_log(files: MemoryFiles, damage: str) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 0, 0)
    assert closed(files, directory, 37) == [None]
    path = f"{PATH}/recovery-point-offset-checkpoint"
    if damage == "missing":
        files.unlink(path)
    else:
        file = files.open(path)
        file.pwrite(bytes(8), file.size - 8)
    again = opened(files)
    assert not again.was_clean and again.unproven == [("t", 0)]
    assert again.logs["t", 0].log_end_offset == 1


def test_a_flushed_log_whose_topic_id_is_gone_takes_the_directory_offline_instead_of_passing_for_a_stray(
    files: MemoryFiles,
) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 1, 0)
    assert closed(files, directory, 7) == [None]
    files.inodes[f"{PATH}/t-0/partition.metadata"].data.clear()
    again = LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1)
    results: list[OSError | None] = []
    again.load_logs(lambda topic: LogConfig(), 0, results.append)
    files.run()
    assert "partition.metadata is missing or damaged" in str(results[0]) and files.exists(CLEAN_FILE)
    assert again.failure is results[0]
    assert files.inodes[f"{PATH}/t-0/{0:020d}.log"].data


def test_a_log_start_above_the_end_is_not_believed_after_a_clean_stop(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 1, 0)
    assert closed(files, directory, 7) == [None]
    files.open(f"{PATH}/log-start-offset-checkpoint").truncate(0)
    files.open(f"{PATH}/log-start-offset-checkpoint").append(b"0\n1\nt 0 999\n")
    again = opened(files)
    assert contents(again.logs[("t", 0)]) == [(0, "a")] and again.was_clean


def test_an_unknown_log_can_be_set_aside_and_keeps_its_bytes(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 1, 0)
    path = directory.set_aside("t", 0)
    assert path.endswith("-stray") and files.inodes[f"{path}/{0:020d}.log"].data
    files.run()
    again = opened(files)
    assert (again.logs, [stray[1:] for stray in again.removed.strays]) == ({}, [(TOPIC_ID, 0)])


def test_a_log_that_was_set_aside_survives_a_power_cut_and_can_be_brought_back(files: MemoryFiles) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    files.run()
    for value in "ab":
        log.append_as_leader(batch(value), 1, 0)
    directory.set_aside("t", 0)
    files.run()
    files.crash()
    again = opened(files)
    (stray,) = again.removed.strays
    checked = at_once(again.check_stray(stray, "t", LogConfig(), 0))
    checked.finish(lambda error: checked.close())
    again.removed.checked.append(stray)
    files.run()
    back = again.bring_back(stray, "t", LogConfig(), 0)
    assert (contents(back), back.topic_id, again.removed.strays) == ([(0, "a"), (1, "b")], TOPIC_ID, [])
    files.run()
    files.crash()
    assert contents(opened(files).logs["t", 0]) == [(0, "a"), (1, "b")]


def test_a_process_killed_right_after_it_created_a_log_leaves_one_that_is_known_by_its_topic_id(
    files: MemoryFiles,
) -> None:
    opened(files).create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 0, 0)
    files.crash(lambda flushed, written: written)
    log = opened(files).logs["t", 0]
    # without its id the log would be taken for a stray, and deleted with the record
    assert (contents(log), log.topic_id) == ([(0, "a")], TOPIC_ID)


def test_a_flush_of_a_new_log_waits_for_its_topic_id(files: MemoryFiles) -> None:
    log = opened(files).create_log("t", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(batch("a"), 0, 0)
    flushed: list[OSError | None] = []
    log.flush(flushed.append)
    while not flushed:
        files.pending.pop(0)()
    files.crash()
    assert opened(files).logs["t", 0].topic_id == TOPIC_ID


def test_after_a_crash_logs_are_scanned_from_the_recovery_point(files: MemoryFiles) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    files.run()
    directory.write_checkpoints({("t", 0): 2})
    files.run()
    files.crash(lambda flushed, written: max(flushed, written - 5))
    again = opened(files)
    assert contents(again.logs["t", 0]) == [(0, "a"), (1, "b")]
    assert again.high_watermarks == {("t", 0): 2}


def test_a_checkpoint_that_holds_nothing_new_is_not_written_again(files: MemoryFiles) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(batch("a"), 0, 0)
    files.run()
    path = f"{PATH}/replication-offset-checkpoint"
    directory.write_checkpoints({("t", 0): 1})
    files.run()
    files.unlink(path)
    directory.write_checkpoints({("t", 0): 1})
    files.run()
    assert not files.exists(path)
    directory.write_checkpoints({("t", 0): 2})
    files.run()
    assert files.exists(path)


def test_a_truncation_below_the_recovery_point_is_checkpointed_at_once(files: MemoryFiles) -> None:
    directory = opened(files)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    log.flush(lambda error: None)
    files.run()
    log.truncate_to(1)
    files.run()
    assert bytes(files.inodes[f"{PATH}/recovery-point-offset-checkpoint"].data).rstrip() == b"0\n1\nt 0 1"


def test_deleting_frees_the_name_at_once_and_the_bytes_later(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig()).append_as_leader(batch("a"), 0, 0)
    remove = directory.delete_log("t", 0)
    second = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    assert second.log_end_offset == 0
    remove_second = directory.delete_log("t", 0)
    assert len([n for n in files.list(PATH) if n.endswith("-delete")]) == 2
    remove()
    remove_second()
    files.run()
    assert not [n for n in files.list(PATH) if n.startswith("t-")]
    assert directory.failure is None


@pytest.mark.parametrize("topic", ["t", "t" * 249])
@pytest.mark.parametrize("is_set_aside", [False, True])
def test_after_a_crash_a_recreated_log_is_not_judged_by_the_checkpoints_of_the_one_before(
    files: MemoryFiles, topic: str, is_set_aside: bool
) -> None:
    directory = with_a_flushed_log(files, topic)
    if is_set_aside:
        directory.set_aside(topic, 0)
    else:
        directory.delete_log(topic, 0)()
    log = directory.create_log(topic, 0, Uuid(bytes(16)[:-1] + b"\x01"), LogConfig())
    log.append_as_leader(batch("new"), 0, 0)
    files.crash(lambda flushed, written: written)
    files.inodes[f"{PATH}/{topic}-0/partition.metadata"].data.clear()
    again = loaded(files)
    found = again.logs[topic, 0]
    assert (contents(found), found.topic_id, found.recovery_point) == ([(0, "new")], None, 0)
    assert again.high_watermarks == {}
    again.claim(lambda error: None)
    files.run()
    assert marks(files) == []
    files.crash()
    assert loaded(files).high_watermarks == {}


def test_the_directory_of_a_deleted_log_stays_until_no_checkpoint_names_it(files: MemoryFiles) -> None:
    directory = with_a_flushed_log(files)
    directory.delete_log("t", 0)()
    assert len(marks(files)) == 1
    files.run()
    assert marks(files) == []
    assert files.inodes[f"{PATH}/recovery-point-offset-checkpoint"].data == b"0\n0\n"


def test_deleting_a_log_that_no_checkpoint_names_writes_none(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig())
    files.run()
    files.operations.clear()
    directory.delete_log("t", 0)()
    files.run()
    assert not [operation for operation in files.operations if "checkpoint" in operation] and marks(files) == []


def test_a_checkpoint_that_cannot_be_written_keeps_the_directory_of_the_deleted_log(files: MemoryFiles) -> None:
    directory = with_a_flushed_log(files)
    remove = directory.delete_log("t", 0)
    files.flush_error = OSError(5, "Input/output error")
    files.run()
    remove()
    assert len(marks(files)) == 1 and directory.failure is files.flush_error


def test_a_log_that_was_moved_away_while_the_node_was_down_is_forgotten_before_anything_is_created(
    files: MemoryFiles,
) -> None:
    with_a_flushed_log(files)
    files.crash()
    files.rmdir(f"{PATH}/t-0")
    opened(files)
    assert files.inodes[f"{PATH}/recovery-point-offset-checkpoint"].data == b"0\n0\n"


def test_what_was_being_deleted_goes_at_the_next_claim(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t", 0, TOPIC_ID, LogConfig())
    directory.delete_log("t", 0)
    files.run()
    files.crash()
    assert opened(files).logs == {}
    assert not [n for n in files.list(PATH) if n.endswith("-delete")]


def test_the_directory_of_a_long_topic_name_can_be_deleted(files: MemoryFiles) -> None:
    directory = opened(files)
    directory.create_log("t" * 249, 0, TOPIC_ID, LogConfig())
    directory.delete_log("t" * 249, 0)
    assert max(len(n) for n in files.list(PATH)) == 255


def test_the_metadata_log_and_foreign_directories_are_passed_over(files: MemoryFiles) -> None:
    files.mkdirs(f"{PATH}/__cluster_metadata-0")
    files.mkdirs(f"{PATH}/lost+found")
    assert opened(files).logs == {}


def test_a_failing_background_write_takes_the_directory_offline(files: MemoryFiles) -> None:
    failures = Failures()
    directory = opened(files, failures)
    directory.create_log("t", 0, TOPIC_ID, LogConfig())
    files.run()
    files.flush_error = OSError(5, "Input/output error")
    directory.write_checkpoints({})
    files.run()
    assert failures.seen == [(directory, files.flush_error)] and directory.failure is files.flush_error


@pytest.mark.parametrize(
    ("content", "epoch"),
    [
        (b'{"version":0,"brokerEpoch":37}', 37),
        (b'{"version":0,"BrokerEpoch":"37"}', 37),
        (b'{"version":0,"brokerEpoch":10,"other":[1]}', 10),
        (b'{"version":0,"brokerEpoch":-1}', -1),
        (b'{"version":0,"brokerEp', None),
        (b"", None),
        (b"[]", None),
        (b'{"version":1,"brokerEpoch":3}', None),
        (b'{"version":0,"brokerEpoch":true}', None),
        (b'{"version":0,"brokerEpoch":null}', None),
        (b'{"version":0,"brokerEpoch":-7}', None),
        (b'{"version":0}', None),
        (b"\xff", None),
    ],
)
def test_a_clean_shutdown_file_that_is_odd_in_any_way_is_unclean(content: bytes, epoch: int | None) -> None:
    assert parse_clean_shutdown(content) == epoch


@pytest.mark.parametrize(
    ("epochs", "decided"),
    [([37], 37), ([37, 37], 37), ([37, 38], -1), ([-1, 37], -1), ([37, -1], -1), ([37, None], -1), ([], -1)],
)
def test_every_directory_must_agree_on_the_previous_broker_epoch(
    epochs: list[BrokerEpoch | None], decided: int
) -> None:
    assert decide_previous_broker_epoch(epochs) == decided
