"""Envelope through a controller: requests that may be forwarded, and principals that can be read."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, ALICE, C_DENIED, CLUSTER, CONTROLLER, HOST, T_DENIED, TOPIC, Guarded, shown
from controller.fakes import Harness

from heirlog.apis.common.envelopes import envelope_of, seal
from heirlog.context import Context
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import (
    CreateAclsRequest,
    CreateDelegationTokenResponse,
    CreateTopicsRequest,
    EnvelopeRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
)

EXAMPLE = EnvelopeRequest(client_host_address=bytes(4)), None


def creating(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], validate_only=True)


def enveloped(request: Any, version: int, principal: str = ALICE) -> EnvelopeRequest:
    client = Context(version, "client", HOST, "PLAINTEXT", object(), principal)
    return envelope_of(RequestHeader(request.API_KEY, version, 7, "broker"), request, client)


def test_the_request_inside_is_answered_for_the_client_that_sent_it(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine")
    for name, code in (("mine", ErrorCode.NONE), ("other", T_DENIED)):
        answer = node.ask(enveloped(creating(name), 7), listener=CONTROLLER, principal=ADMIN)
        assert answer.error_code == ErrorCode.NONE
        _, inside = decode_response(CreateTopicsRequest.API_KEY, 7, memoryview(bytes(answer.response_data)))
        assert shown(inside) == {name: code}


def test_the_offset_of_a_change_is_named_and_none_where_nothing_was_changed(node: Guarded) -> None:
    dry = node.ask(enveloped(creating("made"), 7, ADMIN), listener=CONTROLLER, principal=ADMIN)
    assert dry.metadata_offset == -1
    request = creating("made")
    request.validate_only = False
    made = node.ask(enveloped(request, 7, ADMIN), listener=CONTROLLER, principal=ADMIN)
    assert made.metadata_offset > 0
    node.wait(lambda: "made" in node.node.image.topic_ids)
    assert made.metadata_offset <= node.node.image.offset


def test_a_request_that_brokers_do_not_forward_or_that_cannot_be_read_is_refused(node: Guarded) -> None:
    not_forwarded = enveloped(MetadataRequest(topics=None), 12)
    assert node.ask(not_forwarded, listener=CONTROLLER, principal=ADMIN).error_code == ErrorCode.INVALID_REQUEST
    nested = enveloped(enveloped(creating("t"), 7, ADMIN), 0, ADMIN)
    assert node.ask(nested, listener=CONTROLLER, principal=ADMIN).error_code == ErrorCode.INVALID_REQUEST
    header = RequestHeader(CreateTopicsRequest.API_KEY, 7, 1, "c")
    frame = b"".join(encode_request(header, creating("t")))[4:]  # type: ignore[arg-type]
    for data, code in (
        (b"", ErrorCode.INVALID_REQUEST),
        (frame[:-3], ErrorCode.UNSUPPORTED_VERSION),
        (frame[:2] + (99).to_bytes(2, "big") + frame[4:], ErrorCode.UNSUPPORTED_VERSION),
    ):
        envelope = EnvelopeRequest(request_data=data, client_host_address=bytes(4))
        assert node.ask(envelope, listener=CONTROLLER, principal=ADMIN).error_code == code, data


def test_a_controller_that_is_not_active_refuses() -> None:
    assert Harness().ask("envelope", enveloped(creating("t"), 7), 0).error_code == ErrorCode.NOT_CONTROLLER


def test_an_envelope_is_taken_from_nodes_only(node: Guarded) -> None:
    envelope = EnvelopeRequest(request_data=b"", request_principal=b"\0\0", client_host_address=bytes(4))
    assert node.ask(envelope, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    assert node.ask(envelope, listener=CONTROLLER).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "principal", [b"", b"\0", b"\0\1", b"\0\0", b"\0\0\x05User", b"\0\0\x05User\x09al", b"\0\0\x05User\x02\xff\0\0"]
)
def test_an_envelope_whose_principal_cannot_be_read_is_refused(node: Guarded, principal: bytes) -> None:
    inner = b"".join(encode_request(RequestHeader(19, 7, 1, "c"), creating("t")))[4:]  # type: ignore[arg-type]
    envelope = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    code = node.ask(envelope, listener=CONTROLLER, principal=ADMIN).error_code
    assert code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    envelope.client_host_address = b"\0"
    assert node.ask(envelope, listener=CONTROLLER, principal=ADMIN).error_code == ErrorCode.INVALID_REQUEST


def test_what_would_close_the_clients_connection_refuses_the_envelope(node: Guarded) -> None:
    zero = CreateAclsRequest(creations=[CreateAclsRequest.AclCreation(resource_type=0)])
    answer = node.ask(enveloped(zero, 3, ADMIN), listener=CONTROLLER, principal=ADMIN)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_an_envelope_does_not_show_the_secrets_that_it_carries() -> None:
    request = RenewDelegationTokenRequest(hmac=b"the secret")
    response = CreateDelegationTokenResponse(hmac=b"the secret")
    header = RequestHeader(CreateDelegationTokenResponse.API_KEY, 3, 7, "broker")
    for envelope in (enveloped(request, 2), seal(header, response)):
        assert "secret" not in repr(envelope) and "hidden" in repr(envelope)
