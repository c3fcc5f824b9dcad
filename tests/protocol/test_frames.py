from __future__ import annotations

import io
import random
import struct

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioHeaderV2
from kio.serial import entity_writer
from protocol import oracle

from heirlog.env import Region
from heirlog.protocol import frames
from heirlog.protocol.api import APIS, ApiSchema, UnknownApi
from heirlog.protocol.frames import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    parse_header,
)
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
)
from heirlog.protocol.primitives import ITEMS_MAX, SMALL_REGIONS_BYTES, Malformed, UnsupportedVersion, uvarint

CASES = [(api, version) for api, kind, version in oracle.cases() if kind == "request"]


def _frame(parts: list[object]) -> memoryview:
    data = b"".join(parts)  # type: ignore[arg-type]  # no regions here
    assert struct.unpack_from(">i", data)[0] == len(data) - 4
    return memoryview(data)[4:]


@pytest.mark.parametrize("client_id", [None, "", "client-ß"])
@pytest.mark.parametrize(("api", "version"), CASES, ids=[f"{api.name}-v{version}" for api, version in CASES])
def test_a_request_frame_is_that_of_kio_and_is_read_again(api: ApiSchema, version: int, client_id: str | None) -> None:
    request = oracle.our_class(api, "request")()
    header = RequestHeader(api.key, version, 77, client_id)
    frame = _frame(list(encode_request(header, request)))
    kio_header = KioHeaderV2 if version >= api.flexible_version else KioHeaderV1
    expected = io.BytesIO()
    entity_writer(kio_header)(
        expected,
        kio_header(request_api_key=api.key, request_api_version=version, correlation_id=77, client_id=client_id),
    )
    assert bytes(frame).startswith(expected.getvalue())
    parsed, position = parse_header(frame)
    assert parsed == header
    assert position == len(expected.getvalue())
    assert decode_request(parsed, frame, position) == request


@pytest.mark.parametrize(("api", "version"), CASES, ids=[f"{api.name}-v{version}" for api, version in CASES])
def test_a_response_frame_is_read_again(api: ApiSchema, version: int) -> None:
    response = oracle.our_class(api, "response")()
    frame = _frame(list(encode_response(api.key, version, -5, response)))
    assert decode_response(api.key, version, frame) == (-5, response)


def test_the_response_header_of_api_versions_is_never_flexible() -> None:
    frame = _frame(list(encode_response(18, 4, 9, ApiVersionsResponse(error_code=35))))
    assert bytes(frame[:6]) == b"\0\0\0\x09\0\x23"
    flexible = _frame(list(encode_response(3, 12, 9, MetadataResponse())))
    assert bytes(flexible[:5]) == b"\0\0\0\x09\0"


def test_an_api_versions_request_from_the_future_still_has_a_header() -> None:
    body = struct.pack(">hhi", 18, 99, 5)
    assert parse_header(memoryview(body)) == (RequestHeader(18, 99, 5, None), len(body))
    assert parse_header(memoryview(body + b"\x7f\xff??")) == (RequestHeader(18, 99, 5, None), len(body) + 4)
    header, position = parse_header(memoryview(body + b"\0\x01c\0rest"))
    assert header == RequestHeader(18, 99, 5, "c")
    with pytest.raises(UnsupportedVersion):
        decode_request(header, memoryview(body), position)


def test_an_unknown_key_and_every_cut_header_are_malformed() -> None:
    with pytest.raises(UnknownApi, match="key 999"):
        parse_header(memoryview(struct.pack(">hhih", 999, 0, 1, -1)))
    frame = _frame(list(encode_request(RequestHeader(3, 12, 1, "abc"), MetadataRequest())))
    _, position = parse_header(frame)
    for size in range(position):
        with pytest.raises(Malformed):
            parse_header(frame[:size])


def test_tags_in_a_header_are_skipped() -> None:
    frame = _frame(list(encode_request(RequestHeader(18, 3, 1, "c"), ApiVersionsRequest())))
    at = 8 + 2 + 1
    tagged = memoryview(bytes(frame[:at]) + b"\x01\x05\x02zz" + bytes(frame[at + 1 :]))
    header, position = parse_header(tagged)
    assert decode_request(header, tagged, position) == ApiVersionsRequest()


def test_random_frames_raise_malformed_or_nothing() -> None:
    rng = random.Random(1)
    keys = sorted(APIS)
    for _ in range(3000):
        data = struct.pack(">hh", rng.choice(keys), rng.randrange(20)) + rng.randbytes(rng.randrange(50))
        frame = memoryview(data)
        try:
            header, position = parse_header(frame)
            decode_request(header, frame, position)
        except Malformed:
            pass
        try:
            decode_response(rng.choice(keys), rng.randrange(20), frame)
        except Malformed:
            pass


class _File:
    path = "/f"
    size = 100


def test_the_length_counts_regions() -> None:
    region = Region(_File(), 0, SMALL_REGIONS_BYTES + 1)  # type: ignore[arg-type]  # never read here
    topic = FetchResponse.FetchableTopicResponse(partitions=[FetchResponse.PartitionData(records=[region])])
    parts = encode_response(1, 17, 1, FetchResponse(responses=[topic]))
    sizes = [part.size if isinstance(part, Region) else len(part) for part in parts]
    assert struct.unpack_from(">i", parts[0])[0] == sum(sizes) - 4  # type: ignore[arg-type]  # the first is bytes
    assert region in parts


def wide(key: int, version: int, body: bytes) -> memoryview:
    return memoryview(struct.pack(">hhih", key, version, 1, -1) + b"\0" + body)


@pytest.mark.parametrize(
    ("key", "version", "before", "item"),
    [
        (3, 9, b"", b"\x02a\0"),
        (0, 9, b"\0" + bytes(6), b"\x02a\x01\0"),
        (15, 5, b"", b"\x02g"),
        (3, 9, b"\0\0\0\0", b"\x63\x00"),
    ],
    ids=["structs", "of Produce", "strings", "unknown tags"],
)
def test_a_request_of_more_items_than_anybody_needs_is_refused_before_it_is_read(
    key: int, version: int, before: bytes, item: bytes
) -> None:
    tags = before == b"\0\0\0\0"
    frame = wide(key, version, before + uvarint(ITEMS_MAX + 2 - tags) + item * (ITEMS_MAX + 1) + bytes(10))
    header, position = parse_header(frame)
    with pytest.raises(Malformed, match=f"more than {ITEMS_MAX} items"):
        decode_request(header, frame, position)
    # the next one has its own
    small = wide(3, 9, b"\x02\x02a\0\0\0\0\0")
    assert decode_request(*((parsed := parse_header(small))[0], small, parsed[1])) is not None


def test_items_are_counted_through_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "ITEMS_MAX", 100)
    topics = [
        FetchRequest.FetchTopic(topic="t", partitions=[FetchRequest.FetchPartition(partition=n) for n in range(11)])
        for _ in range(9)
    ]
    for count in (8, 9):
        request = b"".join(encode_request(RequestHeader(1, 11, 1, None), FetchRequest(topics=topics[:count])))[4:]  # type: ignore[arg-type]
        header, position = parse_header(memoryview(request))
        if count == 8:
            decode_request(header, memoryview(request), position)
        else:
            with pytest.raises(Malformed, match="items"):
                decode_request(header, memoryview(request), position)


def test_the_tags_of_a_header_are_counted_too() -> None:
    frame = struct.pack(">hhih", 3, 9, 1, -1) + uvarint(ITEMS_MAX + 1) + b"\x63\x00" * (ITEMS_MAX + 1) + bytes(10)
    with pytest.raises(Malformed, match="items"):
        parse_header(memoryview(frame))


def test_answers_may_have_any_number_of_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "ITEMS_MAX", 100)
    topics = [MetadataResponse.MetadataResponseTopic(name="t") for _ in range(1000)]
    parts = encode_response(3, 9, 1, MetadataResponse(topics=topics))
    assert decode_response(3, 9, b"".join(parts)[4:])[0] == 1  # type: ignore[arg-type]
