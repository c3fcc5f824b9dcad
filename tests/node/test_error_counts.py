from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from heirlog.node.error_counts import _count_by_plan, error_counter
from heirlog.protocol.api import APIS, response_class
from heirlog.protocol.messages import ElectLeadersResponse, FetchResponse, MetadataResponse, ProduceResponse

PRODUCE = ProduceResponse(
    responses=[
        ProduceResponse.TopicProduceResponse(
            partition_responses=[ProduceResponse.PartitionProduceResponse(error_code=code) for code in codes]
        )
        for codes in ((0, 6), (6,))
    ]
)
FETCH = FetchResponse(
    responses=[
        FetchResponse.FetchableTopicResponse(
            partitions=[FetchResponse.PartitionData(error_code=code) for code in codes]
        )
        for codes in ((0, 1), ())
    ]
)
METADATA = MetadataResponse(
    topics=[
        MetadataResponse.MetadataResponseTopic(
            error_code=0, partitions=[MetadataResponse.MetadataResponsePartition(error_code=5)]
        )
    ]
)
ELECT = ElectLeadersResponse(
    replica_election_results=[
        ElectLeadersResponse.ReplicaElectionResult(
            partition_result=[ElectLeadersResponse.PartitionResult(error_code=84)]
        )
    ]
)


def counted(api_key: int, response: Any) -> dict[int, int]:
    found: defaultdict[int, int] = defaultdict(int)
    error_counter(api_key)(response, found)
    return dict(found)


@pytest.mark.parametrize(
    ("response", "codes"),
    [(PRODUCE, {0: 1, 6: 2}), (FETCH, {0: 2, 1: 1}), (METADATA, {0: 2, 5: 1}), (ELECT, {0: 1, 84: 1})],
    ids=["Produce", "Fetch", "Metadata", "ElectLeaders"],
)
def test_every_code_of_an_answer_counts(response: Any, codes: dict[int, int]) -> None:
    assert counted(response.API_KEY, response) == codes


@pytest.mark.parametrize("response", [PRODUCE, FETCH], ids=["Produce", "Fetch"])
def test_what_is_written_out_counts_as_the_plan_does(response: Any) -> None:
    found: defaultdict[int, int] = defaultdict(int)
    _count_by_plan(response, found)
    assert counted(response.API_KEY, response) == found


def test_an_answer_of_every_api_can_be_counted() -> None:
    without = []
    for api_key in APIS:
        response = response_class(api_key)
        if not any("error_code" in getattr(response, name).FIELDS for name in vars(response) if name[0].isupper()
                   and hasattr(getattr(response, name), "FIELDS")) and "error_code" not in response.FIELDS:  # fmt: skip
            without.append(response.__name__)
        counted(api_key, response())
    assert not without, "an answer without any error code: is it really so?"
