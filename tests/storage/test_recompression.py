from __future__ import annotations

from struct import pack_into

import pytest
from storage.logs import batch, contents, open_log
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import crc_matches, decode_records, encode_batch, read_header
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from heirlog.protocol.errors import ErrorCode
from heirlog.storage.cleaning.records import payload_of, spans, with_records
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import LogError
from heirlog.storage.recompression import recompressed

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
WORDS = ["a word that comes again and again " * 20, "another word", "a third"]


@pytest.mark.parametrize("stored", CODECS)
@pytest.mark.parametrize("sent", CODECS)
def test_a_batch_is_stored_in_its_topics_codec_with_everything_else_as_it_was_sent(sent: int, stored: int) -> None:
    log = open_log(MemoryFiles(), LogConfig(compression=stored))
    log.append_as_leader(batch("before"), 3, 0)
    records = [
        (None, b"x" * 300, [("h", b"v"), ("none", None)], 1005),
        (b"k", None, [], 1009),
        (b"", b"", [], 1001),
    ]
    ids = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 0}
    log.append_as_leader(encode_batch(records, compression=sent, **ids), 3, 0)
    data = log.read(1, 1 << 20, log.log_end_offset).regions[0].read()
    header = read_header(data)
    assert crc_matches(data, 0, header)
    assert (header.compression, header.base_offset, header.leader_epoch) == (stored, 1, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 0)
    assert (header.base_timestamp, header.max_timestamp) == (1005, 1009)
    assert [(r.offset, r.key, r.value, list(r.headers), r.timestamp_ms) for r in decode_records(data)] == [
        (offset, *record) for offset, record in enumerate(records, 1)
    ]


def test_a_batch_of_the_right_codec_stays_as_its_producer_compressed_it() -> None:
    log = open_log(MemoryFiles(), LogConfig(compression=GZIP, compression_level=9))
    sent = batch(*WORDS, compression=GZIP)
    records = bytes(sent[61:])
    log.append_as_leader(sent, 0, 0)
    assert bytes(log.read(0, 1 << 20, log.log_end_offset).regions[0].read())[61:] == records


def test_the_level_is_the_configured_one() -> None:
    sizes = {}
    for level in (1, 9):
        log = open_log(MemoryFiles(), LogConfig(compression=GZIP, compression_level=level))
        log.append_as_leader(batch(*(f"{n * n} {n}" for n in range(500))), 0, 0)
        sizes[level] = log.size_bytes
    assert sizes[9] < sizes[1]


def test_what_is_too_large_once_it_is_written_again_is_refused() -> None:
    log = open_log(MemoryFiles(), LogConfig(compression=NONE, max_message_bytes=400))
    with pytest.raises(LogError) as refusal:
        log.append_as_leader(batch(*WORDS, compression=GZIP), 0, 0)
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert contents(log) == []


def test_a_repeat_is_known_though_it_was_stored_in_another_codec() -> None:
    files = MemoryFiles()
    log = open_log(files, LogConfig(compression=ZSTD))
    ids = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    assert not log.append_as_leader(batch(*WORDS, **ids), 0, 0).duplicate
    assert log.append_as_leader(batch(*WORDS, **ids), 0, 0).duplicate
    assert len(contents(log)) == len(WORDS)


def test_log_append_time_holds_for_a_batch_that_was_written_again() -> None:
    log = open_log(MemoryFiles(), LogConfig(compression=LZ4, log_append_time=True))
    log.append_as_leader(batch(*WORDS, timestamp_ms=5), 0, 777)
    data = log.read(0, 1 << 20, log.log_end_offset).regions[0].read()
    assert crc_matches(data, 0, read_header(data))
    assert {record.timestamp_ms for record in decode_records(data)} == {777}


def test_a_time_beyond_all_numbers_is_taken_for_the_nearest() -> None:
    """It went through `Struct.pack_into` and failed there, with an error that nobody expects of a batch."""
    sent = bytearray(encode_batch([(b"a", b"1", [], 0), (b"b", b"2", [], 100)], compression=GZIP))
    pack_into(">q", sent, 27, 2**63 - 50)
    pack_into(">I", sent, 17, crc32c(memoryview(sent)[21:]))
    header = read_header(sent)
    again, new_header = recompressed(sent, header, NONE, LogConfig())
    assert new_header.max_timestamp == 2**63 - 1
    payload = payload_of(again, new_header)
    kept, kept_header = with_records(new_header, payload, list(spans(payload, new_header))[1:], new_horizon_ms=-1_000)
    assert kept_header.max_timestamp == 2**63 - 1
    assert [record.key for record in decode_records(kept)] == [b"b"]
