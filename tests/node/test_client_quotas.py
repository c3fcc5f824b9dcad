"""Client quotas on a whole node in virtual time: what is counted, how long a client waits, and who never does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apis.guarded import ADMIN, ALICE, CONTROLLER, HOST, Guarded, Wire, produce

from heirlog.metadata.client_quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from heirlog.node.client_quotas import ClientQuotaManager
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import (
    AlterClientQuotasRequest,
    AlterPartitionRequest,
    ApiVersionsRequest,
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)

KIB = 1024


class Paused(Wire):
    """A body that keeps what comes while the connection is paused, as the kernel does."""

    def __init__(self) -> None:
        super().__init__("PLAINTEXT", HOST)
        self.waiting: list[memoryview] = []
        self.connection: Any = None

    def deliver(self, frame: bytes) -> None:
        self.waiting.append(memoryview(bytearray(frame)))
        self.resume()

    def resume(self) -> None:
        while self.waiting and not self.connection.paused:
            self.connection.received_frame(self.waiting.pop(0))


class Client:
    """One connection of a user."""

    def __init__(self, node: Guarded, principal: str = ALICE, client_id: str = "c", listener: str = "PLAINTEXT"):
        self._node = node
        self.wire = Paused()
        self.wire.listener = listener
        self.wire.connection = node.node.connected(self.wire)
        self.wire.connection.principal = principal
        self._client_id = client_id
        self._sent = 0

    def send(self, request: Any, version: int | None = None) -> None:
        self._sent += 1
        spoken = request.MAX_VERSION if version is None else version
        header = RequestHeader(request.API_KEY, spoken, self._sent, self._client_id)
        self.wire.deliver(b"".join(encode_request(header, request))[4:])

    def answer(self, number: int) -> Any:
        """The answer to the request with this number, once it is there."""
        self._node.wait(lambda: len(self.wire.answers) >= number)
        header, raw = self.wire.answers[number - 1]
        return decode_response(header.api_key, header.api_version, memoryview(raw)[4:])[1]

    def ask(self, request: Any, version: int | None = None) -> Any:
        self.send(request, version)
        return self.answer(self._sent)


@pytest.fixture
def node() -> Iterator[Guarded]:
    yield Guarded(super_users="User:ANONYMOUS;User:admin;User:alice;User:bob")


def limit(node: Guarded, key: str, value: float | None, **names: str | None) -> None:
    entity = [
        AlterClientQuotasRequest.EntityData(entity_type=USER if kind == "user" else CLIENT_ID, entity_name=name)
        for kind, name in names.items()
    ]
    op = AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
    request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.EntryData(entity=entity, ops=[op])])
    assert node.ask(request, principal=ADMIN).entries[0].error_code == ErrorCode.NONE


def fetching(max_bytes: int = 50 * 1024 * KIB) -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50 * 1024 * KIB)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
    )


def in_session(session_id: int, epoch: int, fetch_offset: int = 0, named: bool = True) -> FetchRequest:
    request = fetching()
    request.session_id, request.session_epoch = session_id, epoch
    request.topics[0].partitions[0].fetch_offset = fetch_offset
    if not named:
        request.topics = []
    return request


def creating(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=5000)


LARGE = b"x" * (100 * KIB)


def test_a_producer_above_its_limit_gets_the_time_to_wait_and_is_not_read_for_that_long(node: Guarded) -> None:
    node.create_topics("t")
    limit(node, PRODUCER_BYTE_RATE, 10 * KIB, user="alice")
    client = Client(node)
    answer = client.ask(produce("t", records=(LARGE,)), 12)
    # 100 KiB within a window that counts as ten seconds
    assert answer.throttle_time_ms == pytest.approx(0, abs=20)
    begun_ms = node.node.env.now_ms()
    throttle_ms = client.ask(produce("t", records=(LARGE,)), 12).throttle_time_ms
    assert 9_500 < throttle_ms < 10_500
    client.ask(MetadataRequest(topics=[]))
    assert node.node.env.now_ms() - begun_ms >= throttle_ms
    assert node.node.env.now_ms() - begun_ms < throttle_ms + 100, "it is read again as soon as the time is over"


def test_a_producer_that_expects_no_answer_is_muted_too(node: Guarded) -> None:
    node.create_topics("t")
    limit(node, PRODUCER_BYTE_RATE, 10 * KIB, user="alice")
    client = Client(node)
    for _ in range(2):
        client.send(produce("t", acks=0, records=(LARGE,)), 12)
    assert client.wire.connection.paused
    begun_ms = node.node.env.now_ms()
    client.send(MetadataRequest(topics=[]))
    client.answer(1)
    assert node.node.env.now_ms() - begun_ms > 9_000


def test_a_second_connection_and_a_second_user_of_the_client_id_share_its_bucket(node: Guarded) -> None:
    node.create_topics("t")
    limit(node, PRODUCER_BYTE_RATE, 10 * KIB, client="c")
    assert Client(node).ask(produce("t", records=(LARGE,)), 12).throttle_time_ms < 50
    assert Client(node, "User:bob").ask(produce("t", records=(LARGE,)), 12).throttle_time_ms > 9_000
    assert Client(node, client_id="other").ask(produce("t", records=(LARGE,)), 12).throttle_time_ms == 0


def test_a_consumer_gets_no_more_at_once_than_its_window_allows_and_then_waits(node: Guarded) -> None:
    node.create_topics("t")
    for _ in range(4):
        node.write("t", LARGE)
    limit(node, CONSUMER_BYTE_RATE, 15 * KIB, user="alice")
    client = Client(node)
    answer = client.ask(fetching(), 11)
    records = len(answer.responses[0].partitions[0].records)
    assert 100 * KIB < records <= 150 * KIB, "ten seconds' worth, of 400 KiB that there are"
    assert answer.throttle_time_ms == 0
    above = client.ask(fetching(), 11)
    assert above.throttle_time_ms > 3_000 and not above.responses
    begun_ms = node.node.env.now_ms()
    while not (later := client.ask(fetching(), 11)).responses:
        assert later.throttle_time_ms > 0
    assert len(later.responses[0].partitions[0].records) == records and later.throttle_time_ms == 0
    assert node.node.env.now_ms() - begun_ms < 15_000, "what was not sent is not counted"


def test_many_connections_of_a_consumer_get_one_window_together(node: Guarded) -> None:
    node.create_topics("t")
    node.write("t", LARGE)
    limit(node, CONSUMER_BYTE_RATE, 15 * KIB, user="alice")
    answers = [Client(node).ask(fetching(), 11) for _ in range(20)]
    assert [bool(answer.responses) for answer in answers] == [True] + [False] * 19
    assert all(answer.throttle_time_ms < 11_000 for answer in answers), "or the last would wait for all before it"


def test_a_batch_larger_than_the_window_allows_reaches_its_consumer(node: Guarded) -> None:
    node.create_topics("t")
    node.write("t", LARGE)
    limit(node, CONSUMER_BYTE_RATE, 6 * KIB, user="alice")
    client = Client(node)
    answer = client.ask(fetching(), 11)
    assert len(answer.responses[0].partitions[0].records) > 100 * KIB
    assert answer.throttle_time_ms > 6_000
    assert not client.ask(fetching(), 11).responses, "the window has the first one still"
    assert client.ask(fetching(), 11).responses


def test_a_session_says_later_what_it_could_not_say_above_the_quota(node: Guarded) -> None:
    node.create_topics("t")
    limit(node, CONSUMER_BYTE_RATE, 15 * KIB, user="alice")
    client = Client(node)
    first = client.ask(in_session(0, 0), 11)
    assert first.session_id and first.responses
    node.write("t", LARGE)
    Client(node).ask(fetching(), 11)
    above = client.ask(in_session(first.session_id, 1), 11)
    assert above.throttle_time_ms and above.session_id == first.session_id and not above.responses
    # its epoch is used, and the high watermark that it missed comes although the client has read everything meanwhile
    later = client.ask(in_session(first.session_id, 2, fetch_offset=1), 11)
    (partition,) = later.responses[0].partitions
    assert (partition.high_watermark, partition.records) == (1, b"")
    assert not client.ask(in_session(first.session_id, 3, named=False), 11).responses


def test_a_full_request_above_the_quota_gets_no_session_and_leaves_none_behind(node: Guarded) -> None:
    node.create_topics("t")
    node.write("t", LARGE)
    limit(node, CONSUMER_BYTE_RATE, 15 * KIB, user="alice")
    Client(node).ask(fetching(), 11)
    above = Client(node).ask(in_session(0, 0), 11)
    assert above.throttle_time_ms and not above.session_id and not above.responses
    assert not len(node.node.broker.fetch_sessions)


def test_requests_that_are_under_way_at_once_wait_one_after_the_other(node: Guarded) -> None:
    """Otherwise who sends a hundred at once would wait one second for all of them."""
    limit(node, REQUEST_PERCENTAGE, 0.001, user="alice")
    ticks_ns = iter(range(0, 10**12, 50_000_000))
    node.node.client_quotas.now_ns = lambda: next(ticks_ns)
    client = Client(node)
    begun_ms = node.node.env.now_ms()
    for _ in range(4):
        # on its way to the controller: the answer comes later, and the next one is read meanwhile
        client.send(creating("u", 1), 5)
    assert not client.wire.answers
    client.send(MetadataRequest(topics=[]))
    assert client.answer(4).throttle_time_ms == 1000
    client.answer(5)
    assert node.node.env.now_ms() - begun_ms >= 4_000


def test_a_follower_and_a_node_s_heartbeat_are_never_counted(node: Guarded) -> None:
    node.create_topics("t")
    for quota in (CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE):
        limit(node, quota, 1, user=None)
    charge = node.node.client_quotas.charge
    for request, version in ((FetchRequest(replica_id=2), 11), (BrokerHeartbeatRequest(), 1)):
        header = RequestHeader(request.API_KEY, version, 1, "c")
        is_of_nodes = request.API_KEY == BrokerHeartbeatRequest.API_KEY
        assert charge("User:ANONYMOUS", HOST, header, request, 100, is_of_nodes) is None
    routes = node.node.listener(CONTROLLER).routes
    assert routes[BrokerHeartbeatRequest.API_KEY].has_no_quota
    assert not node.node.listener("PLAINTEXT").routes[ProduceRequest.API_KEY].has_no_quota


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (FetchRequest(replica_id=2), 11),
        (FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=2)), 17),
        (ListOffsetsRequest(replica_id=2), 5),
        (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4),
        (AlterPartitionRequest(), 3),
    ],
    ids=["Fetch", "Fetch with a state", "ListOffsets", "ApiVersions", "AlterPartition"],
)
def test_who_only_pretends_to_be_a_node_is_counted(request_: Any, version: int) -> None:
    """With an authorizer, a node is who may do what nodes do."""
    guarded = Guarded(super_users="User:ANONYMOUS;User:admin")
    limit(guarded, REQUEST_PERCENTAGE, 0.001, user=None)
    ticks_ns = iter(range(0, 10**12, 50_000_000))
    guarded.node.client_quotas.now_ns = lambda: next(ticks_ns)
    header = RequestHeader(request_.API_KEY, version, 1, "c")
    is_of_nodes = request_.API_KEY == AlterPartitionRequest.API_KEY
    charge = guarded.node.client_quotas.charge
    assert charge(ADMIN, HOST, header, request_, 100, is_of_nodes) is None
    assert charge(ALICE, HOST, header, request_, 100, is_of_nodes) is not None
    listener = CONTROLLER if is_of_nodes else "PLAINTEXT"
    begun_ms = guarded.node.env.now_ms()
    client = Client(guarded, listener=listener)
    client.ask(request_, version)
    client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"))
    assert guarded.node.env.now_ms() - begun_ms >= 1000, "it is not read until it has waited"
    node = Client(guarded, ADMIN, listener=listener)
    begun_ms = guarded.node.env.now_ms()
    for _ in range(2):
        node.ask(request_, version)
    assert guarded.node.env.now_ms() - begun_ms < 500


def test_a_client_that_uses_too_much_time_waits_one_window_at_most() -> None:
    guarded = Guarded(super_users="User:ANONYMOUS;User:admin;User:alice")
    limit(guarded, REQUEST_PERCENTAGE, 0.001, user="alice")
    ticks_ns = iter(range(0, 10**12, 50_000_000))
    guarded.node.client_quotas.now_ns = lambda: next(ticks_ns)
    assert Client(guarded).ask(MetadataRequest(topics=[])).throttle_time_ms == 1000
    assert Client(guarded, "User:bob").ask(MetadataRequest(topics=[])).throttle_time_ms == 0


def test_once_the_quota_is_removed_nobody_is_counted(node: Guarded) -> None:
    node.create_topics("t")
    assert node.node.client_quotas is None
    limit(node, PRODUCER_BYTE_RATE, 1, user="alice")
    assert isinstance(node.node.client_quotas, ClientQuotaManager)
    limit(node, PRODUCER_BYTE_RATE, None, user="alice")
    assert node.node.client_quotas is None
    assert Client(node).ask(produce("t", records=(LARGE,)), 12).throttle_time_ms == 0


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_a_client_that_creates_too_many_partitions_is_refused_until_it_has_waited(node: Guarded, listener: str) -> None:
    limit(node, CONTROLLER_MUTATION_RATE, 1, user="alice")
    client = Client(node, listener=listener)
    assert client.ask(creating("a", 20)).throttle_time_ms == 0, "as on Kafka: only who is refused has to wait"
    begun_ms = node.node.env.now_ms()
    refused = client.ask(creating("b", 1))
    assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused.throttle_time_ms > 8_000, "eleven are free, so nine are owed"
    # its connection is read again only when its time is over, and then there is room again
    assert client.ask(creating("c", 1)).topics[0].error_code == ErrorCode.NONE
    assert node.node.env.now_ms() - begun_ms > 7_000
    assert set(node.node.image.topic_ids) == {"a", "c"}


def test_older_versions_have_no_such_error_so_the_client_is_served_and_waits(node: Guarded) -> None:
    limit(node, CONTROLLER_MUTATION_RATE, 1, user="alice")
    assert Client(node).ask(creating("a", 20), 5).throttle_time_ms > 8_000
    answer = Client(node).ask(creating("b", 20), 5)
    assert answer.topics[0].error_code == ErrorCode.NONE
    assert answer.throttle_time_ms > 26_000


def test_deleting_counts_the_partitions_of_each_topic(node: Guarded) -> None:
    for name in ("a", "b", "c"):
        node.ask(creating(name, 8), principal=ADMIN)
    limit(node, CONTROLLER_MUTATION_RATE, 1, user="alice")
    names = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("a", "b", "c")]
    answer = Client(node).ask(DeleteTopicsRequest(topics=names, timeout_ms=5000))
    codes = [topic.error_code for topic in answer.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert set(node.node.image.topic_ids) == {"c"}
