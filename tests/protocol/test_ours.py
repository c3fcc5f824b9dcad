"""What only heirlog speaks: keys and tagged fields from 10000 on, and ElectLeaders 3."""

from __future__ import annotations

import pytest

from heirlog.apis.common.api import Role
from heirlog.client.handshake import Handshake, common_version
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.node.router import ROUTES
from heirlog.node.wire import _api_keys_of
from heirlog.protocol.frames import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    parse_header,
)
from heirlog.protocol.messages import (
    ApiVersionsResponse,
    DescribeRecoveryRequest,
    DescribeRecoveryResponse,
    ElectLeadersRequest,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
)
from heirlog.protocol.metadata_record import decode_record, encode_record
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import PartitionChangeRecord, PartitionRecord

LENGTH_BYTES = 4


def through_the_wire(message: Message, version: int, *, response: bool = False) -> Message:
    if response:
        parts = encode_response(message.API_KEY, version, 7, message)
        return decode_response(message.API_KEY, version, memoryview(b"".join(parts))[LENGTH_BYTES:])[1]
    parts = encode_request(RequestHeader(message.API_KEY, version, 7, "x"), message)
    frame = memoryview(b"".join(parts))[LENGTH_BYTES:]
    header, position = parse_header(frame)
    decoded: Message = decode_request(header, frame, position)
    return decoded


Info = GetReplicaLogInfoResponse.PartitionLogInfo
Topic = DescribeRecoveryResponse.RecoveryTopic
Partition = DescribeRecoveryResponse.RecoveryPartition


@pytest.mark.parametrize(
    ("message", "version", "response"),
    [
        (
            GetReplicaLogInfoRequest(
                broker_id=3,
                topic_partitions=[GetReplicaLogInfoRequest.TopicPartitions(topic_id=b"t" * 16, partitions=[0, 200])],
            ),
            0,
            False,
        ),
        (
            GetReplicaLogInfoResponse(
                broker_epoch=77,
                topic_partition_log_info_list=[
                    GetReplicaLogInfoResponse.TopicPartitionLogInfo(
                        topic_id=b"t" * 16,
                        partition_log_info=[
                            Info(partition=0, last_written_leader_epoch=5, current_leader_epoch=7, log_end_offset=100),
                            Info(partition=2, log_end_offset=90, may_lack_records=True),
                            Info(partition=1, error_code=10134, error_message="more than 1000"),
                        ],
                    )
                ],
            ),
            0,
            True,
        ),
        (
            DescribeRecoveryRequest(
                topics=[DescribeRecoveryRequest.TopicRequest(name="t", partitions=[1])],
                ask_replicas=True,
                cursor=DescribeRecoveryRequest.Cursor(topic_name="t", partition_index=4),
            ),
            0,
            False,
        ),
        (
            DescribeRecoveryResponse(
                manager_enabled=True,
                error_message=None,
                topics=[
                    Topic(
                        name="t",
                        partitions=[
                            Partition(
                                state="WaitingForQuorum",
                                strategy="Balanced",
                                quorum=[1, 2],
                                waits_for=[2],
                                replicas=[DescribeRecoveryResponse.ReplicaReport(broker_id=1, error_message=None)],
                            )
                        ],
                    )
                ],
            ),
            0,
            True,
        ),
        (
            ElectLeadersRequest(
                election_type=4,
                topic_partitions=[
                    ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0], desired_leaders=[2]),
                    ElectLeadersRequest.TopicPartitions(topic="u", partitions=[0], desired_leaders=None),
                ],
                skip_wait=True,
            ),
            3,
            False,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_our_messages_survive_the_wire(message: Message, version: int, response: bool) -> None:
    assert through_the_wire(message, version, response=response) == message


@pytest.mark.parametrize("cls", [PartitionRecord, PartitionChangeRecord])
def test_the_basis_of_an_election_is_a_tagged_field_that_kafka_skips(cls: type) -> None:
    record = cls(
        election_basis=cls.ElectionBasis(  # type: ignore[attr-defined]
            basis=4,
            leader=2,
            leader_epoch=8,
            end_offset=120,
            controller_epoch=3,
            timestamp_ms=1_700_000_000_000,
            replicas=[
                cls.ReplicaAnswer(broker_id=1, broker_epoch=101, last_written_leader_epoch=5, log_end_offset=100),  # type: ignore[attr-defined]
                cls.ReplicaAnswer(broker_id=2),  # type: ignore[attr-defined]
                cls.ReplicaAnswer(broker_id=3, may_lack_records=True),  # type: ignore[attr-defined]
            ],
        )
    )
    for version in (0, 1, 2):
        assert decode_record(encode_record(record, version)) == record
    assert b"\x90\x4e" in encode_record(record, 2)
    assert b"\x90\x4e" not in encode_record(cls(), 2)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("serves_unstable", [False, True])
def test_api_versions_shows_kafkas_ranges_only(role: Role, serves_unstable: bool) -> None:
    shown = {entry.api_key: entry.max_version for entry in _api_keys_of(role, serves_unstable)}
    assert max(shown) < 10_000
    assert shown[43] == 2
    assert ROUTES[role][43].max_version == 3


def test_who_shows_the_feature_is_spoken_to_in_our_versions() -> None:
    keys = [ApiVersionsResponse.ApiVersion(api_key=43, min_version=0, max_version=2)]
    kafka = Handshake().answered(ApiVersionsResponse(api_keys=keys))
    assert kafka is not None
    assert common_version(ElectLeadersRequest, kafka) == 2
    assert common_version(GetReplicaLogInfoRequest, kafka) is None
    features = [
        ApiVersionsResponse.SupportedFeatureKey(
            name=name, min_version=levels.min_version, max_version=levels.max_version
        )
        for name, levels in SUPPORTED_FEATURES.items()
    ]
    heirlog = Handshake().answered(ApiVersionsResponse(api_keys=keys, supported_features=features))
    assert heirlog is not None
    assert common_version(ElectLeadersRequest, heirlog) == 3
    assert common_version(GetReplicaLogInfoRequest, heirlog) == 0
    assert common_version(DescribeRecoveryRequest, heirlog) == 0
