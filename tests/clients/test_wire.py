"""Every API in every version on both listeners, as a client with a codec of its own sees them; and what is no request.

kio decodes strictly, the correlation id is compared and no byte may be left over (`wire_client`), so that an answer
which arrives here is one that any client can read.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from clients.wire_client import API_KEYS, WireClient, framed, header_bytes, request_bytes
from clients.world import World
from kio.index import load_request_schema
from protocol.oracle import kio_bytes, random_entity

from heirlog.apis.common.api import Role
from heirlog.node.router import ROUTES
from heirlog.protocol.batch import encode_batch

ROLES = {"broker": Role.BROKER, "controller": Role.CONTROLLER}
NAMES = {key: name for name, key in API_KEYS.items()}
NOT_SERVED = [*sorted(set(range(94)) - set(ROUTES[Role.BROKER]) - set(ROUTES[Role.CONTROLLER])), 93, 1000, 32767, -1]
SERVED = [
    pytest.param(listener, NAMES[key], version, id=f"{listener}-{NAMES[key]}-v{version}")
    for listener, role in ROLES.items()
    for key, route in ROUTES[role].items()
    if route.advertised is not None
    # what is ours alone no stranger speaks
    for version in range(route.min_version, route.advertised[1] + 1)
]


def advertised(listener: str) -> dict[int, tuple[int, int]]:
    return {key: route.advertised for key, route in ROUTES[ROLES[listener]].items() if route.advertised is not None}


@pytest.fixture(scope="module")
def world(own_world: World) -> World:
    """Its own: a controller that supports no feature registers here, and stays."""
    return own_world


@pytest.fixture(scope="module")
def topic(world: World) -> str:
    return world.topic(replicas=[1])


@pytest.fixture(scope="module", params=sorted(ROLES))
def listener(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def connect(world: World, listener: str) -> WireClient:
    return world.broker(1) if listener == "broker" else world.controller()


def sensible(world: World, api: str, topic: str, version: int) -> dict[str, Any]:
    """A request that can be served, as far as a stranger can make one."""
    topic_id = world.topic_id(topic)
    metadata_partition = {"partition": 0, "partition_max_bytes": 1000, "current_leader_epoch": 1, "fetch_offset": 0}
    one = {"partition": 0, "partition_index": 0}
    match api:
        case "produce":
            data = {"index": 0, "records": bytes(encode_batch([(b"k", b"v", (), 1_700_000_000_000)]))}
            return {
                "acks": 1,
                "timeout": 5000,
                "topic_data": [{"name": topic, "topic_id": topic_id, "partition_data": [data]}],
            }
        case "fetch":
            partition = {**one, "partition_max_bytes": 1000}
            return {
                "max_bytes": 1000,
                "topics": [{"topic": topic, "topic_id": topic_id, "partitions": [partition]}],
            }
        case "list_offsets":
            return {"replica_id": -1, "topics": [{"name": topic, "partitions": [{**one, "timestamp": -1}]}]}
        case "metadata":
            return {"topics": [{"name": topic}]}
        case "find_coordinator":
            return {"key": "g", "key_type": 0, "coordinator_keys": ["g"]}
        case "api_versions":
            return {"client_software_name": "stranger", "client_software_version": "1.0"}
        case "create_topics":
            return {"topics": [{"name": world.name(), "num_partitions": 1, "replication_factor": 1}], "timeout": 5000}
        case "delete_topics":
            victim = world.topic(replicas=[1])
            return {"topic_names": [victim], "topics": [{"name": victim}], "timeout": 5000}
        case "offset_for_leader_epoch":
            partition = {**one, "leader_epoch": 0, "current_leader_epoch": -1}
            return {"replica_id": -1, "topics": [{"topic": topic, "partitions": [partition]}]}
        case "describe_configs":
            return {"resources": [{"resource_type": 2, "resource_name": topic, "configuration_keys": None}]}
        case "elect_leaders":
            return {"topic_partitions": [{"topic": topic, "partitions": [0]}], "timeout": 5000}
        case "describe_topic_partitions":
            return {"topics": [{"name": topic}], "response_partition_limit": 10}
        case "describe_acls":
            return {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 1, "permission_type": 1}
        case "unregister_broker":
            # one that is not there: the others still work for the next test
            return {"broker_id": 99}
        case "describe_quorum":
            return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [one]}]}
        case "envelope":
            inner = request_bytes("elect_leaders", 2, 7, **sensible(world, "elect_leaders", topic, 2))
            return {"request_data": inner, "client_host_address": b"\x7f\x00\x00\x01"}
        case "fetch_metadata":
            topics = [
                {"topic": "__cluster_metadata", "topic_id": bytes(15) + b"\x01", "partitions": [metadata_partition]}
            ]
            return {"max_bytes": 1000, "topics": topics}
        case "add_offsets_to_txn" | "end_txn" | "txn_offset_commit":
            return {"transactional_id": "t", "group_id": "g", "producer_id": 1, "topics": []}
    return {"transactional_id": None, "endpoint_type": 1, "broker_id": 1}


@pytest.mark.parametrize(("listener", "api", "version"), SERVED)
def test_a_sensible_request_of_every_version_gets_an_answer_that_a_stranger_can_read(
    world: World, topic: str, listener: str, api: str, version: int
) -> None:
    shape = "fetch_metadata" if (listener, api) == ("controller", "fetch") else api
    with connect(world, listener) as wire_client:
        wire_client.ask(api, version, **sensible(world, shape, topic, version))
        # nothing of that answer stands in the way of the next one
        assert wire_client.ask("api_versions", 0).error_code.value == 0


@pytest.mark.parametrize("version", range(5))
def test_api_versions_tells_exactly_what_is_served(world: World, listener: str, version: int) -> None:
    with connect(world, listener) as wire_client:
        answer = wire_client.ask(
            "api_versions", version, client_software_name="a-stranger", client_software_version="1.0.0"
        )
    assert {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys} == advertised(listener)
    if version >= 3:
        assert {one.name: one.max_version_level for one in answer.finalized_features} == {
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "heirlog.recovery.version": 1,
            "kraft.version": 1,
            "metadata.version": 29,
            "share.version": 1,
            "transaction.version": 2,
        }


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_api_versions_of_an_unknown_version_is_answered_in_version_0(world: World, listener: str, version: int) -> None:
    with connect(world, listener) as wire_client:
        wire_client.send_raw(framed(struct.pack(">hhih", API_KEYS["api_versions"], version, 77, -1) + b"\x00\x01\x02"))
        answer = wire_client.answer((API_KEYS["api_versions"], 0, 77))
        assert answer.error_code.name == "unsupported_version"
        assert {one.api_key for one in answer.api_keys} == set(advertised(listener))
        # and the client goes on, on the same connection, with a version that is there
        assert wire_client.ask("api_versions", 4, client_software_name="s", client_software_version="1").error_code == 0


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("s", ""), ("-s", "1"), ("s", "1-")])
def test_api_versions_wants_a_decent_software_name(world: World, name: str, version: str) -> None:
    answer = world.ask("api_versions", 3, client_software_name=name, client_software_version=version)
    assert answer.error_code.name == "invalid_request"


def outside() -> list[tuple[str, int, int]]:
    """(listener, key, version): one below and one above every range, where the number is not negative."""
    return [
        (listener, key, version)
        for listener, role in ROLES.items()
        for key, route in ROUTES[role].items()
        if key != API_KEYS["api_versions"]
        for version in (route.min_version - 1, route.max_version + 1)
    ]


def closes(wire_client: WireClient) -> bool:
    try:
        wire_client.receive()
    except ConnectionError:
        return True
    return False


def test_versions_outside_a_range_close_the_connection(world: World) -> None:
    for listener, key, version in outside():
        with connect(world, listener) as wire_client:
            wire_client.send_raw(framed(struct.pack(">hhih", key, version, 1, -1) + bytes(40)))
            assert closes(wire_client), (listener, key, version)


def test_keys_that_are_not_served_close_the_connection(world: World, listener: str) -> None:
    for key in sorted({*NOT_SERVED, *(ROUTES[Role.BROKER] if listener == "controller" else ROUTES[Role.CONTROLLER])}):
        if key in ROUTES[ROLES[listener]]:
            continue
        with connect(world, listener) as wire_client:
            wire_client.send_raw(framed(struct.pack(">hhih", key, 0, 1, -1) + bytes(40)))
            assert closes(wire_client), key


def malformed() -> dict[str, bytes]:
    good = request_bytes("metadata", 12, 5, topics=[{"name": "some-topic"}])
    return {
        "an empty frame": b"\x00\x00\x00\x00",
        "a negative length": b"\xff\xff\xff\xff" + good,
        "a length beyond the limit": b"\x7f\xff\xff\xff" + good,
        "half a header": framed(good[:6]),
        "a client id beyond the frame": framed(struct.pack(">hhih", 3, 1, 1, 30_000)),
        "a header without its tags": framed(struct.pack(">hhih", 3, 12, 1, -1)),
        "an array of two thousand million topics": framed(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1)),
        "an array of minus seven topics": framed(struct.pack(">hhihi", 3, 1, 1, -1, -7)),
        "a compact array larger than the frame": framed(
            struct.pack(">hhihb", 3, 12, 1, -1, 0) + b"\xff\xff\xff\xff\x07"
        ),
        "a varint without an end": framed(struct.pack(">hhihb", 3, 12, 1, -1, 0) + b"\xff" * 20),
        "text that is no UTF-8": framed(struct.pack(">hhihih", 3, 1, 1, -1, 1, 2) + b"\xff\xfe"),
        "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
    }


@pytest.mark.parametrize("kind", malformed())
def test_what_is_no_request_closes_its_connection_and_no_other(world: World, listener: str, kind: str) -> None:
    with connect(world, listener) as other, connect(world, listener) as wire_client:
        wire_client.send_raw(malformed()[kind])
        if kind == "an HTTP request":
            wire_client.finish_sending()  # its first bytes are a length that never arrives
        assert closes(wire_client)
        assert other.ask("api_versions", 0).error_code.value == 0


@pytest.mark.parametrize("api", ["produce", "fetch", "metadata", "create_topics", "describe_configs"])
def test_a_request_cut_anywhere_closes_its_connection(world: World, topic: str, api: str) -> None:
    version = ROUTES[Role.BROKER][API_KEYS[api]].max_version
    whole = request_bytes(api, version, 3, **sensible(world, api, topic, version))
    for size in range(8, len(whole), 5):
        with world.broker(1) as wire_client:
            wire_client.send_raw(framed(whole[:size]))
            assert closes(wire_client), size
    assert world.ask("api_versions", 0).error_code.value == 0


def test_a_client_that_leaves_in_the_middle_of_a_frame_disturbs_nobody(world: World, topic: str) -> None:
    whole = framed(request_bytes("metadata", 12, 3, topics=[{"name": topic}]))
    for size in range(1, len(whole), 7):
        with world.broker(1) as wire_client:
            wire_client.send_raw(whole[:size])
    assert world.metadata(topic).error_code.value == 0


@pytest.mark.parametrize("seed", range(5))
def test_random_fields_get_an_answer_that_can_be_read_or_a_closed_connection(world: World, seed: int) -> None:
    for case in SERVED:
        listener, api, version = case.values
        if api == "unregister_broker":
            continue  # chance finds a broker that is there, and the tests that follow miss it
        rng = random.Random(f"{seed} {case.id}")
        body = kio_bytes(random_entity(rng, load_request_schema(API_KEYS[api], version)))
        with connect(world, listener) as wire_client:
            wire_client.send_raw(framed(header_bytes(api, version, 11) + body))
            if api == "produce":
                continue  # with acks=0 there is none, and with acks=-1 it may take any time
            try:
                wire_client.answer((API_KEYS[api], version, 11))
            except ConnectionError:
                pass
    assert world.metadata("nowhere").error_code.name == "unknown_topic_or_partition"


def test_pipelined_requests_are_answered_in_their_order(world: World, topic: str) -> None:
    with world.broker(1) as wire_client:
        waiting = {**sensible(world, "fetch", topic, 12), "max_wait": 300, "min_bytes": 10_000_000}
        asked = [
            wire_client.send("fetch", 12, **waiting),
            *(wire_client.send("metadata", version, topics=[{"name": topic}]) for version in range(1, 13)),
            wire_client.send("create_topics", 7, **sensible(world, "create_topics", topic, 7)),
            wire_client.send("api_versions", 0),
        ]
        # each answer must have the correlation id and the format of its request
        answers = [wire_client.answer(one) for one in asked]
    assert [type(answer).__name__ for answer in answers] == [
        "FetchResponse",
        *["MetadataResponse"] * 12,
        "CreateTopicsResponse",
        "ApiVersionsResponse",
    ]


def test_a_client_may_pipeline_more_than_the_server_queues(world: World, topic: str) -> None:
    with world.broker(1) as wire_client:
        asked = [wire_client.send("list_offsets", 7, **sensible(world, "list_offsets", topic, 7)) for _ in range(500)]
        slow = wire_client.send("create_topics", 7, **sensible(world, "create_topics", topic, 7))
        asked += [slow, *(wire_client.send("api_versions", 0) for _ in range(500))]
        answers = [type(wire_client.answer(one)).__name__ for one in asked]
    assert answers == ["ListOffsetsResponse"] * 500 + ["CreateTopicsResponse"] + ["ApiVersionsResponse"] * 500


def test_a_request_in_single_bytes_is_a_request(world: World, topic: str) -> None:
    whole = framed(request_bytes("metadata", 12, 99, topics=[{"name": topic}]))
    with world.broker(1) as wire_client:
        for position in range(len(whole)):
            wire_client.send_raw(whole[position : position + 1])
        assert wire_client.answer((API_KEYS["metadata"], 12, 99)).topics[0].name == topic


def test_a_null_client_id_is_fine(world: World) -> None:
    with world.broker(1) as wire_client:
        wire_client.send_raw(framed(struct.pack(">hhihi", API_KEYS["metadata"], 1, 9, -1, 0)))
        assert wire_client.answer((API_KEYS["metadata"], 1, 9)).topics == ()


def test_unknown_tagged_fields_are_skipped(world: World) -> None:
    header_tags = b"\x01\x63\x03abc"
    body = b"\x01" + b"\x00" * 2 + b"\x02\x05\x01x\xc0\x84\x3d\x02yz"
    with world.broker(1) as wire_client:
        wire_client.send_raw(framed(struct.pack(">hhih", API_KEYS["metadata"], 12, 4, -1) + header_tags + body))
        assert wire_client.answer((API_KEYS["metadata"], 12, 4)).topics == ()
