"""Opens a log after any kind of stop, or creates one in an empty directory.

    clean stop      files are trusted. Damage that is found nevertheless makes a second attempt read everything
    unclean stop    everything from the recovery point on is read and repaired (`recovery.py`)

The recovery point afterwards: the log end if all files were trusted, otherwise not above the first batch that was read,
because nothing that recovery writes is flushed. Indexes of segments that were read are written again, and flushed with
the next flush. A log without records may have been created just before a crash, so its directory counts as new,
unless a clean stop has flushed it.
"""

from __future__ import annotations

from typing import NamedTuple

from heirlog.env import File, Files
from heirlog.protocol.batch import InvalidBatch
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.log import Log, LogParts
from heirlog.storage.log_failure import LogFailure
from heirlog.storage.log_flusher import LogFlusher
from heirlog.storage.log_listener import IGNORED, LogListener
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.open_files import OpenFileLimit
from heirlog.storage.partition_directory import PartitionDirectory
from heirlog.storage.recovery import LastStop, Loaded, Slices, has_leftovers, load_segments, rebuild_producers


class _Request(NamedTuple):
    files: Files
    path: str
    topic: str
    partition: int
    config: LogConfig
    wall_ms: int
    open_files: OpenFileLimit | None
    listener: LogListener


def load_log(
    files: Files,
    path: str,
    topic: str,
    partition: int,
    config: LogConfig,
    last_stop: LastStop,
    *,
    wall_ms: int,
    open_files: OpenFileLimit | None = None,
    listener: LogListener = IGNORED,
) -> Slices[Log]:
    """The log of an existing directory, with a pause after each slice of work; `recovery.at_once` runs all of them.

    open_files: shared by all logs of a log directory. Raises OSError.
    """
    request = _Request(files, path, topic, partition, config, wall_ms, open_files, listener)
    try:
        return (yield from _load(request, last_stop))
    except InvalidBatch:
        pass  # a file that was trusted is damaged
    return (yield from _load(request, last_stop._replace(clean=False, recovery_point=0)))


def _load(request: _Request, last_stop: LastStop) -> Slices[Log]:
    """Raises InvalidBatch if a file that was trusted is damaged; then everything that was opened is closed."""
    files, path, config, listener = request.files, request.path, request.config, request.listener
    failure = LogFailure(listener.on_failure)
    epochs = LeaderEpochCache(files, path, failure.background_done, request.open_files)
    directory = PartitionDirectory(files, path, request.open_files)
    loaded: Loaded | None = None
    index_files: list[File] = []
    flushed = last_stop.flushed and not has_leftovers(files, path)
    try:
        loaded = yield from load_segments(files, path, config, epochs, last_stop)
        trusted = last_stop.clean and loaded.scanned_from == loaded.log_end_offset
        producers = yield from rebuild_producers(
            files, path, loaded.segments, loaded.scanned_from, loaded.log_end_offset, trust_absence=trusted
        )
        for segment in loaded.segments[:-1]:
            if segment.base_offset >= loaded.scanned_from:
                index_files += segment.write_indexes()
            segment.retire()
    except InvalidBatch:
        failure.detach()
        epochs.close()
        directory.close()
        for file in [*index_files, *(segment.log for segment in (loaded.segments if loaded else ()))]:
            file.close()
        raise
    producers.remove_expired(request.wall_ms, config.producer_id_expiration_ms)
    flushed = flushed and trusted
    if not trusted or (not flushed and loaded.log_end_offset == loaded.log_start_offset):
        directory.created()
    segments = LogSegments(loaded.segments)
    flusher = LogFlusher(
        directory,
        segments,
        epochs,
        failure,
        recovery_point=loaded.log_end_offset if trusted else min(last_stop.recovery_point, loaded.scanned_from),
        index_files=index_files,
        on_truncated=listener.on_truncated,
    )
    parts = LogParts(directory, segments, epochs, producers, flusher, failure)
    log = Log(request.topic, request.partition, config, loaded, parts, listener)
    if flushed and not any(segment.indexes_rebuilt for segment in loaded.segments):
        log.trust_stop()
    return log
