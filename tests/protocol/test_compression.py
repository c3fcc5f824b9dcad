from __future__ import annotations

import gzip
import time

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.protocol import compression
from heirlog.protocol.compression import GZIP, LZ4, SNAPPY, ZSTD, DecompressionError, compress, decompress

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]


@settings(deadline=None)
@given(st.binary(max_size=2000), st.integers(1, 100), st.sampled_from([0, *CODECS]))
def test_what_is_compressed_comes_back(data: bytes, times: int, codec: int) -> None:
    assert bytes(decompress(codec, memoryview(bytes(compress(codec, data * times))))) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused(codec: int) -> None:
    bomb = compress(codec, bytes(5_000_000))
    with pytest.raises(DecompressionError, match="more than the 1000000 bytes"):
        decompress(codec, bomb, max_bytes=1_000_000)


@pytest.mark.parametrize("codec", CODECS)
def test_content_of_exactly_the_bound_is_accepted(codec: int) -> None:
    assert len(decompress(codec, compress(codec, bytes(100_000)), max_bytes=100_000)) == 100_000
    with pytest.raises(DecompressionError):
        decompress(codec, compress(codec, bytes(100_001)), max_bytes=100_000)


@settings(deadline=None)
@given(st.sampled_from(CODECS), st.binary(max_size=100), st.data())
def test_damage_raises_only_the_error_that_says_so(codec: int, garbage: bytes, data: st.DataObject) -> None:
    good = bytes(compress(codec, b"some text that compresses, compresses, compresses"))
    at = data.draw(st.integers(0, len(good)))
    try:
        decompress(codec, good[:at] + garbage)
    except DecompressionError:
        pass


def test_snappy_without_framing_is_read_too() -> None:
    assert bytes(decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw" * 50)))) == b"raw" * 50


def test_a_snappy_block_that_claims_gigabytes_takes_none() -> None:
    with pytest.raises(DecompressionError):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 20)


def test_gzip_of_several_members_is_one_text() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_lz4_frames_have_independent_blocks_because_the_java_reader_refuses_others() -> None:
    frame = compress(LZ4, bytes(200_000))
    assert frame[:4] == b"\x04\x22\x4d\x18" and frame[4] & 0x20
    assert bytes(cramjam.lz4.decompress(frame)) == bytes(200_000)


def test_lz4_frames_of_the_library_are_read() -> None:
    assert bytes(decompress(LZ4, bytes(cramjam.lz4.compress(b"abc" * 90_000)))) == b"abc" * 90_000


def test_an_unassigned_codec_is_refused() -> None:
    with pytest.raises(DecompressionError):
        decompress(5, b"")
    with pytest.raises(ValueError, match="not a compression codec"):
        compress(7, b"")
    assert len(compression.CODEC_NAMES) == 5


def test_a_batch_of_very_many_gzip_members_is_read_in_its_own_time() -> None:
    members = compress(GZIP, b"") * 50_000 + compress(GZIP, b"end")
    started = time.process_time()
    assert decompress(GZIP, members) == b"end"
    assert time.process_time() - started < 5, "the time must not grow with the square"
