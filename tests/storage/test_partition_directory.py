from __future__ import annotations

import pytest
from storage.logs import DIR
from storage.memory_files import MemoryFiles

from heirlog.protocol.types import Uuid
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.flushing import PendingFlush
from heirlog.storage.partition_directory import PartitionDirectory

TOPIC_ID = Uuid(bytes(range(16)))


@pytest.fixture
def files() -> MemoryFiles:
    made = MemoryFiles()
    made.mkdirs(DIR)
    return made


def syncs(files: MemoryFiles, directory: PartitionDirectory) -> list[str]:
    """The syncs of one flush."""
    before = len(files.operations)
    directory.flush(PendingFlush(0, lambda _, error: None).part)
    return [operation for operation in files.operations[before:] if operation.startswith("sync")]


def test_an_unchanged_directory_is_not_synced(files: MemoryFiles) -> None:
    assert syncs(files, PartitionDirectory(files, DIR)) == []


def test_a_changed_directory_is_synced_once(files: MemoryFiles) -> None:
    directory = PartitionDirectory(files, DIR)
    directory.changed()
    directory.changed()
    assert syncs(files, directory) == [f"sync {DIR}"]
    assert syncs(files, directory) == []


def test_a_new_directory_is_synced_before_its_parent(files: MemoryFiles) -> None:
    directory = PartitionDirectory(files, DIR)
    directory.created()
    assert syncs(files, directory) == [f"sync {DIR}", "sync /data"]
    directory.changed()
    assert syncs(files, directory) == [f"sync {DIR}"], "its parent has it since"


def test_a_flush_waits_for_the_topic_id(files: MemoryFiles) -> None:
    directory = PartitionDirectory(files, DIR)
    written: list[OSError | None] = []
    directory.set_topic_id(TOPIC_ID, written.append)
    ended: list[OSError | None] = []
    directory.flush(PendingFlush(0, lambda _, error: ended.append(error)).part)
    files.pending.pop(0)()
    assert (written, ended) == ([], []), "the file is flushed, its entry in the directory is not yet"
    files.run()
    assert (written, ended) == ([None], [None])
    assert PartitionDirectory(files, DIR).topic_id == directory.topic_id == TOPIC_ID


def test_a_flush_fails_if_the_topic_id_cannot_be_made_durable(files: MemoryFiles) -> None:
    directory = PartitionDirectory(files, DIR)
    files.flush_error = OSError(5, "Input/output error")
    directory.set_topic_id(TOPIC_ID, lambda error: None)
    ended: list[OSError | None] = []
    directory.flush(PendingFlush(0, lambda _, error: ended.append(error)).part)
    files.run()
    assert ended == [files.flush_error]


def test_another_topic_id_is_refused(files: MemoryFiles) -> None:
    directory = PartitionDirectory(files, DIR)
    directory.set_topic_id(TOPIC_ID, lambda error: None)
    with pytest.raises(StorageFormatError):
        directory.set_topic_id(Uuid(bytes(16)), lambda error: None)
    assert directory.topic_id == TOPIC_ID


def test_a_closed_directory_answers_no_write_that_was_under_way(files: MemoryFiles) -> None:
    directory = PartitionDirectory(files, DIR)
    written: list[OSError | None] = []
    directory.set_topic_id(TOPIC_ID, written.append)
    directory.close()
    files.run()
    assert written == [] and not any(operation.startswith("sync") for operation in files.operations)
