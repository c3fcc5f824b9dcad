"""Brokers from before topic ids, leader epochs and the newest versions, played by a script (Kafka 1.0 and 2.4)."""

from __future__ import annotations

import pytest
from blocking import test_connection
from blocking.test_connection import ScriptedServer, scripted

from heirlog.blocking import LATEST, Client, CommittedOffset, EpochEnd, OffsetAt, Unsupported
from heirlog.protocol.batch import decode_records, encode_batch
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import (
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.primitives import Message, records_view

PLACE = ("t", 0)
VERSIONS = {
    "1.0": {18: 1, 0: 5, 1: 6, 2: 2, 3: 5, 8: 3, 9: 3, 10: 1, 22: 0, 23: 0},
    "2.4": {18: 3, 0: 8, 1: 11, 2: 5, 3: 9, 8: 8, 9: 6, 10: 3, 22: 2, 23: 3},
}
"""The newest version of each API; the oldest is 0."""


class OldBroker:
    """One partition in memory."""

    def __init__(self) -> None:
        self.server: ScriptedServer | None = None
        self.log = bytearray(encode_batch([(None, b"first", (), 7)]))

    def __call__(self, header: RequestHeader, message: Message) -> Message | None:
        answers = {
            MetadataRequest: self.metadata,
            FetchRequest: self.fetch,
            ListOffsetsRequest: self.offsets,
            ProduceRequest: self.produce,
        }
        if type(message) in answers:
            return answers[type(message)](message)
        assert self.server is not None
        host, port = self.server.endpoint.host, self.server.endpoint.port
        if isinstance(message, FindCoordinatorRequest):
            return FindCoordinatorResponse(node_id=1, host=host, port=port)
        if isinstance(message, OffsetCommitRequest):
            Partition = OffsetCommitResponse.OffsetCommitResponsePartition
            return OffsetCommitResponse(
                topics=[OffsetCommitResponse.OffsetCommitResponseTopic(name="t", partitions=[Partition()])]
            )
        if isinstance(message, OffsetFetchRequest):
            found = OffsetFetchResponse.OffsetFetchResponsePartition(committed_offset=5, metadata="m")
            return OffsetFetchResponse(
                topics=[OffsetFetchResponse.OffsetFetchResponseTopic(name="t", partitions=[found])]
            )
        if isinstance(message, OffsetForLeaderEpochRequest):
            end = OffsetForLeaderEpochResponse.EpochEndOffset(partition=0, leader_epoch=3, end_offset=1)
            topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic="t", partitions=[end])
            return OffsetForLeaderEpochResponse(topics=[topic])
        assert isinstance(message, InitProducerIdRequest)
        return InitProducerIdResponse(producer_id=9, producer_epoch=0)

    def metadata(self, message: Message) -> Message:
        assert self.server is not None
        endpoint = self.server.endpoint
        partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1)
        topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition])
        broker = MetadataResponse.MetadataResponseBroker(node_id=1, host=endpoint.host, port=endpoint.port)
        return MetadataResponse(brokers=[broker], topics=[topic])

    def fetch(self, message: Message) -> Message:
        assert isinstance(message, FetchRequest)
        assert message.topics[0].topic == "t"
        data = FetchResponse.PartitionData(high_watermark=1, aborted_transactions=None, records=bytes(self.log))
        return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])])

    def offsets(self, message: Message) -> Message:
        found = ListOffsetsResponse.ListOffsetsPartitionResponse(offset=1)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[found])])

    def produce(self, message: Message) -> Message:
        assert isinstance(message, ProduceRequest)
        self.log = bytearray(records_view(message.topic_data[0].partition_data[0].records))
        done = ProduceResponse.PartitionProduceResponse()
        return ProduceResponse(responses=[ProduceResponse.TopicProduceResponse(name="t", partition_responses=[done])])


@pytest.mark.parametrize("release", sorted(VERSIONS))
def test_everything_works_in_the_versions_of_its_time(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = VERSIONS[release]
    ranges = [ApiVersionsResponse.ApiVersion(api_key=key, max_version=newest) for key, newest in spoken.items()]
    monkeypatch.setattr(test_connection, "RANGES", ranges)
    broker = OldBroker()
    with (
        scripted(broker, newest=spoken[18]) as server,
        Client(server.address, timeout_s=30) as client,
    ):
        broker.server = server
        assert client.topics(["t"])["t"].topic_id is None
        assert client.list_offsets({PLACE: LATEST}) == {PLACE: OffsetAt(1, -1, -1)}
        (part,) = client.fetch(*PLACE, 0, 1)
        assert decode_records(part.records)[0].value == b"first"
        with client.producer() as producer:
            producer.send(*PLACE, encode_batch([(None, b"second", (), 7)]))
        (part,) = client.fetch(*PLACE, 0, 1)
        assert decode_records(part.records)[0].value == b"second"
        client.commit("g", {PLACE: CommittedOffset(5)})
        assert client.committed("g", [PLACE]) == {PLACE: CommittedOffset(5, -1, "m")}
        known = EpochEnd(-1, -1) if release == "1.0" else EpochEnd(3, 1)
        assert client.end_offset_for_epoch({PLACE: 3}) == {PLACE: known}
    for header in server.headers[1:]:
        assert header.api_version <= spoken[header.api_key], header


def test_a_broker_without_an_api_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = [ApiVersionsResponse.ApiVersion(api_key=k, max_version=1) for k in (18, 3)]
    monkeypatch.setattr(test_connection, "RANGES", ranges)
    broker = OldBroker()
    with scripted(broker) as server, Client(server.address, timeout_s=30) as client:
        broker.server = server
        with pytest.raises(Unsupported, match="ListOffsetsRequest"):
            client.list_offsets({PLACE: LATEST})
        with pytest.raises(Unsupported, match="FetchRequest"):
            next(client.fetch(*PLACE, 0, 1))
