"""The audit log: lines of a whole node, for what was done and what was refused."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, ALICE, HOST, Guarded

from heirlog.node.audit import NAME_CHARS_MAX, NAMES_MAX, names_in
from heirlog.node.audit_budget import BURST_S, SUMMARY_MS
from heirlog.protocol.messages import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)

Topic = CreateTopicsRequest.CreatableTopic
LEFT_OUT = "operations-left-out"


@pytest.fixture(scope="module")
def one() -> Guarded:
    return Guarded()


def deletion(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names], timeout_ms=5000
    )


def lines(node: Guarded, event: str = "operation") -> list[dict[str, Any]]:
    return [dict(entry.values) for entry in node.log if getattr(entry, "event", "") == event]


def last(node: Guarded, request: Any, principal: str) -> dict[str, Any]:
    before = len(lines(node))
    node.ask(request, principal=principal)
    (line,) = lines(node)[before:]
    return line


def test_what_was_done_names_the_client_and_not_the_broker_that_forwarded_it(one: Guarded) -> None:
    request = CreateTopicsRequest(topics=[Topic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=5000)
    line = last(one, request, ADMIN)
    assert (line["principal"], line["host"], line["client_id"]) == (ADMIN, HOST, "guarded")
    assert (line["api"], line["on"], line["outcome"]) == ("CreateTopics", ["t"], {"NONE": 1})


def test_what_was_refused_is_a_line_too(one: Guarded) -> None:
    line = last(one, deletion("t", "u"), ALICE)
    assert line["principal"] == ALICE and line["outcome"] == {"TOPIC_AUTHORIZATION_FAILED": 2}


def test_a_broker_writes_what_it_does_itself(one: Guarded) -> None:
    line = last(one, DeleteGroupsRequest(groups_names=["g"]), ALICE)
    assert (line["api"], line["on"]) == ("DeleteGroups", ["g"])
    assert line["outcome"] == {"GROUP_AUTHORIZATION_FAILED": 1}


def test_neither_values_nor_passwords_are_in_a_line(one: Guarded) -> None:
    Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    user = Upsertion(name="carol", mechanism=1, iterations=4096, salt=b"the salt", salted_password=b"p" * 32)
    line = last(one, AlterUserScramCredentialsRequest(upsertions=[user]), ADMIN)
    assert line["on"] == ["carol"] and "the salt" not in str(line) and "ppp" not in str(line)
    Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", config_operation=0, value="12345")
    changed = IncrementalAlterConfigsRequest(resources=[Resource(resource_type=2, resource_name="t", configs=[config])])
    line = last(one, changed, ADMIN)
    assert line["on"] == ["t"] and "12345" not in str(line)


def test_a_line_has_few_names() -> None:
    request = CreateTopicsRequest(topics=[Topic(name=f"t{number}") for number in range(50)])
    assert names_in(request) == [*(f"t{number}" for number in range(NAMES_MAX)), "..."]


def test_names_without_a_limit_of_their_own_are_cut() -> None:
    long = "g" * 30_000
    for request in (
        DeleteGroupsRequest(groups_names=[long]),
        CreateTopicsRequest(topics=[Topic(name=long)]),
        CreateDelegationTokenRequest(owner_principal_name=long),
    ):
        (name,) = names_in(request)
        assert len(name) < 2 * NAME_CHARS_MAX and name.endswith("g...")


def test_a_token_for_another_user_names_that_user() -> None:
    """Its bearer is that user in every later line."""
    renewer = CreateDelegationTokenRequest.CreatableRenewers(principal_type="User", principal_name="bob")
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="alice", renewers=[renewer], max_lifetime_ms=-1
    )
    assert names_in(request) == ["alice"]
    request.owner_principal_name = None
    assert names_in(request) == []


def test_what_is_refused_again_and_again_is_counted_and_hides_nothing() -> None:
    node = Guarded()
    node.create_topics("orders")
    asked = 3 * BURST_S
    for _ in range(asked):
        node.ask(deletion("orders"), principal=ALICE)
    refused = [line for line in lines(node) if line["principal"] == ALICE]
    assert BURST_S <= len(refused) < asked
    assert last(node, deletion("orders"), ADMIN)["outcome"] == {"NONE": 1}
    (first,) = lines(node, LEFT_OUT)
    assert (first["principal"], first["host"], first["api"]) == (ALICE, HOST, "DeleteTopics")
    assert (first["requests"], first["on"]) == (1, ["orders"]) and "NONE" not in first["outcome"]
    node.cluster.run_for(SUMMARY_MS)
    assert len(refused) + sum(line["requests"] for line in lines(node, LEFT_OUT)) == asked


def test_a_node_that_is_stopped_says_how_many_it_left_out() -> None:
    node = Guarded()
    asked = 2 * BURST_S
    for _ in range(asked):
        node.ask(deletion("x"), principal=ALICE)
    before = sum(line["requests"] for line in lines(node, LEFT_OUT))
    name, is_done = node.cluster.broker(1).name, lambda: node.cluster.broker(1).running is None
    node.cluster.stop(name)
    node.wait(is_done)
    counted = len([line for line in lines(node) if line["principal"] == ALICE])
    assert before == 1
    assert counted + sum(line["requests"] for line in lines(node, LEFT_OUT)) == asked
