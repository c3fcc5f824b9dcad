"""The codecs of a record batch's records: attributes bits 0-2 say which.

A broker passes compressed batches through untouched; this module is for clients, tests and the few places that must
look inside. The framings are the ones that Kafka's clients write and accept:

    0 none
    1 gzip      one or more members
    2 snappy    xerial's framing of raw snappy blocks; librdkafka also sends one raw block without framing: read too
    3 lz4       the frame format. Kafka's Java reader refuses blocks that depend on each other, so frames are put
                together here from independent blocks instead of taken from the library, which links them
    4 zstd      one or more frames

Every decompression has a bound. A batch of a few kilobytes may claim to hold gigabytes; what would exceed `max_bytes`
is refused before that much memory is taken (the buffer doubles up to the bound, never beyond it).

gzip comes from the standard library; the others from `cramjam`, imported when first needed: a node that only passes
batches through never loads it.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from struct import Struct
from types import ModuleType

from heirlog.env import Buffer
from heirlog.protocol.errors import ErrorCode, KafkaError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_LEVELS = {GZIP: -1, LZ4: 9, ZSTD: 3}
"""Kafka's (KIP-390). Snappy has no levels. At lz4's 9 the fast compressor works, at any other one the thorough one."""

MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024
"""The bound where the caller gives none: far above any batch that a client makes on purpose."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
# version 01, independent blocks, no checksums; blocks of at most 64 KiB; the checksum byte of these two
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000
_INT32 = Struct(">i")
_UINT32_LITTLE = Struct("<I")
_GZIP_WINDOW = 31
_GZIP_PIECE_BYTES = 16 * 1024
_FIRST_BUFFER_FACTOR = 4
_SMALLEST_BUFFER = 16 * 1024


class DecompressionError(KafkaError):
    """The compressed bytes are damaged, or hold more than the caller is willing to take."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """`level`: of gzip (-1, 1-9), lz4 (1-17) or zstd (up to 22); None is Kafka's default.

    Raises ValueError for an unknown codec.
    """
    if codec == NONE:
        return data
    if codec == SNAPPY:
        return _compress_snappy(data)
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    if codec == GZIP:
        return zlib.compress(data, level, _GZIP_WINDOW)
    if codec == LZ4:
        return _compress_lz4(data, level)
    if codec == ZSTD:
        return bytes(_cramjam().zstd.compress(data, level))
    raise ValueError(f"{codec} is not a compression codec (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd)")


def decompress(codec: int, data: Buffer, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """Raises DecompressionError if the data is damaged or would be larger than `max_bytes`."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return _decompress_gzip(data, max_bytes)
    if codec == SNAPPY:
        return _decompress_snappy(data, max_bytes)
    if codec == LZ4:
        return _decompress_growing("lz4", _cramjam().lz4.decompress_into, data, max_bytes)
    if codec == ZSTD:
        return _decompress_growing("zstd", _cramjam().zstd.decompress_into, data, max_bytes)
    raise DecompressionError(f"{codec} is not a compression codec that Kafka knows")


def _cramjam() -> ModuleType:
    try:
        return importlib.import_module("cramjam")
    except ImportError as error:
        raise RuntimeError(
            "snappy, lz4 and zstd need the package cramjam to look inside a batch: pip install cramjam"
        ) from error


def _too_large(max_bytes: int) -> DecompressionError:
    return DecompressionError(f"a compressed batch holds more than the {max_bytes} bytes that are accepted")


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    room = max_bytes
    view = memoryview(data)
    position = 0
    while position < len(view):
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            # in pieces: each member hands back a copy of what it was given beyond its end, and there may be thousands
            piece = view[position : position + _GZIP_PIECE_BYTES]
            if not piece:
                raise DecompressionError("truncated gzip data")
            try:
                # one byte more than allowed: asking for 0 would mean "no bound"
                part = member.decompress(piece, room + 1)
            except zlib.error as error:
                raise DecompressionError(f"damaged gzip data: {error}") from error
            if len(part) > room:
                raise _too_large(max_bytes)
            room -= len(part)
            if part:
                parts.append(part)
            position += len(piece) - len(member.unused_data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: Buffer) -> bytes:
    compress_raw = _cramjam().snappy.compress_raw
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_bytes: int) -> Buffer:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, max_bytes, max_bytes)
    parts: list[bytearray] = []
    room = max_bytes
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if position + 4 > len(view):
            raise DecompressionError("truncated snappy data")
        (size,) = _INT32.unpack_from(view, position)
        position += 4
        if size < 0 or position + size > len(view):
            raise DecompressionError(f"a snappy block of {size} bytes does not fit into the batch")
        parts.append(_decompress_snappy_block(view[position : position + size], room, max_bytes))
        room -= len(parts[-1])
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, room: int, max_bytes: int) -> bytearray:
    codec = _cramjam()
    try:
        # the size a block claims is bounded before it is believed
        size = codec.snappy.decompress_raw_len(block)
        if size > room:
            raise _too_large(max_bytes)
        out = bytearray(size)
        codec.snappy.decompress_raw_into(block, out)
    except codec.DecompressionError as error:
        raise DecompressionError(f"damaged snappy data: {error}") from error
    return out


def _compress_lz4(data: Buffer, level: int) -> bytes:
    compress_block = _cramjam().lz4.compress_block
    how = {} if level == DEFAULT_LEVELS[LZ4] else {"mode": "high_compression", "compression": level}
    view = memoryview(data)
    parts = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(compress_block(plain, store_size=False, **how))
        if len(block) < len(plain):
            parts += (_UINT32_LITTLE.pack(len(block)), block)
        else:
            parts += (_UINT32_LITTLE.pack(len(plain) | _LZ4_STORED), bytes(plain))
    parts.append(_UINT32_LITTLE.pack(0))
    return b"".join(parts)


def _decompress_growing(
    name: str, decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, max_bytes: int
) -> Buffer:
    """Neither format has to say how large its content is: try a buffer, double it when it was too small."""
    size = min(max_bytes, max(_SMALLEST_BUFFER, _FIRST_BUFFER_FACTOR * len(data)))
    failure = _cramjam().DecompressionError
    while True:
        out = bytearray(size)
        try:
            written = decompress_into(data, out)
        except failure as error:
            if "whole buffer" not in str(error):
                raise DecompressionError(f"damaged {name} data: {error}") from error
            if size == max_bytes:
                raise _too_large(max_bytes) from error
            size = min(max_bytes, 2 * size)
        else:
            del out[written:]
            return out
