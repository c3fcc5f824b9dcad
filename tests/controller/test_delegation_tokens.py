"""Delegation tokens: who gets one, how long it lives, who may change it. Each row of Kafka's order of checks."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.controller.delegation_tokens import (
    RENEWERS_MAX,
    SWEPT_MAX,
    TOKENS_OF_OWNER_MAX,
    create_token,
    expire_token,
    renew_token,
    swept,
)
from heirlog.metadata.apply import UnsupportedRecord, apply_all
from heirlog.metadata.as_records import delegation_token_record
from heirlog.metadata.config_def import StaticConfig, parse_static, token_secrets
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from heirlog.protocol.records import RemoveDelegationTokenRecord

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
NOW = 1_000_000
MAX, EXPIRY = 10_000, 1_000
Renewer = CreateDelegationTokenRequest.CreatableRenewers


def config(**more: str) -> StaticConfig:
    given = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": "CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "delegation.token.secret.key": "hunter2",
        "delegation.token.max.lifetime.ms": str(MAX),
        "delegation.token.expiry.time.ms": str(EXPIRY),
    }
    return parse_static(given | {name.replace("_", "."): text for name, text in more.items()})


STATIC = config()
SECRETS = token_secrets(STATIC)


class World:
    def __init__(self) -> None:
        self.image = Image()
        self.static, self.secrets = STATIC, SECRETS
        self.made = 0

    def done(self, result: Any) -> Any:
        apply_all(self.image, result.records, self.image.offset + 1, 1)
        return result.respond(0)

    def create(
        self,
        requester: str = ALICE,
        now_ms: int = NOW,
        renewers: tuple[str, ...] = (),
        token_id: str | None = None,
        **more: Any,
    ) -> Any:
        self.made += 1
        named = [
            Renewer(principal_type=one.partition(":")[0], principal_name=one.partition(":")[2]) for one in renewers
        ]
        request = CreateDelegationTokenRequest(renewers=named, **({"max_lifetime_ms": -1} | more))
        token_id = f"token-{self.made:016}" if token_id is None else token_id
        return self.done(create_token(self.image, self.static, self.secrets, request, requester, token_id, now_ms))

    def renew(self, hmac: bytes, principal: str = ALICE, now_ms: int = NOW, period_ms: int = -1) -> tuple[int, int]:
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = self.done(renew_token(self.image, self.static, self.secrets, request, principal, now_ms))
        return answer.error_code, answer.expiry_timestamp_ms

    def expire(self, hmac: bytes, principal: str = ALICE, now_ms: int = NOW, period_ms: int = -1) -> tuple[int, int]:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = self.done(expire_token(self.image, self.secrets, request, principal, now_ms))
        return answer.error_code, answer.expiry_timestamp_ms


@pytest.fixture
def world() -> World:
    return World()


def test_a_token_is_its_requesters_and_its_hmac_is_not_stored(world: World) -> None:
    made = world.create(renewers=(BOB,))
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "alice", "alice")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms) == (NOW, NOW + EXPIRY)
    assert made.max_timestamp_ms == NOW + MAX
    stored = world.image.delegation_tokens[made.token_id]
    assert stored == DelegationToken(made.token_id, ALICE, ALICE, (BOB,), NOW, NOW + MAX, NOW + EXPIRY)
    assert len(made.hmac) == 64 and made.hmac not in repr(list(world.image.records())).encode()
    assert "hmac=[hidden]" in repr(made)


@pytest.mark.parametrize(
    ("asked", "max_ms", "expires_ms"),
    [(0, MAX, EXPIRY), (500, 500, 500), (5000, 5000, EXPIRY), (2**63 - 1, MAX, EXPIRY)],
)
def test_the_lifetime_that_is_asked_for_can_only_be_shorter(
    world: World, asked: int, max_ms: int, expires_ms: int
) -> None:
    made = world.create(max_lifetime_ms=asked)
    assert (made.max_timestamp_ms - NOW, made.expiry_timestamp_ms - NOW) == (max_ms, expires_ms)


def test_a_request_that_is_repeated_creates_no_second_token_and_gets_the_same_answer(world: World) -> None:
    first = world.create(renewers=(BOB,))
    tokens = dict(world.image.delegation_tokens)
    world.made -= 1
    again = world.create(renewers=(BOB,), now_ms=NOW + 500)
    assert world.image.delegation_tokens == tokens
    assert (again.token_id, again.hmac) == (first.token_id, first.hmac)
    assert (again.issue_timestamp_ms, again.expiry_timestamp_ms, again.max_timestamp_ms) == (
        first.issue_timestamp_ms,
        first.expiry_timestamp_ms,
        first.max_timestamp_ms,
    )


def test_no_token_takes_the_place_of_anothers(world: World) -> None:
    first = world.create()
    tokens = dict(world.image.delegation_tokens)
    for_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    assert world.create(BOB, token_id=first.token_id).error_code == ErrorCode.INVALID_REQUEST
    assert world.create(token_id=first.token_id, **for_bob).error_code == ErrorCode.INVALID_REQUEST
    assert world.image.delegation_tokens == tokens


@pytest.mark.parametrize("token_id", ["", "x" * 21, "x" * 23, "-" + "x" * 21, "x" * 21 + "/", "x" * 22 + "\n"])
def test_an_id_has_the_form_of_kafkas(world: World, token_id: str) -> None:
    assert world.create(token_id=token_id).error_code == ErrorCode.INVALID_REQUEST
    assert not world.image.delegation_tokens


def test_a_token_for_another_user_is_that_users(world: World) -> None:
    made = world.create(owner_principal_type="User", owner_principal_name="bob")
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")
    assert world.renew(made.hmac, ALICE)[0] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert world.renew(made.hmac, BOB)[0] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"renewers": ("Group:x",)}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"owner_principal_type": "Group", "owner_principal_name": "x"}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"renewers": ("User:",)}, ErrorCode.INVALID_REQUEST),
        ({"renewers": ("User:" + "x" * 1025,)}, ErrorCode.INVALID_REQUEST),
        ({"renewers": tuple(f"User:{number}" for number in range(RENEWERS_MAX + 1))}, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_is_refused_makes_no_token(world: World, asked: dict[str, Any], code: ErrorCode) -> None:
    made = world.create(**asked)
    assert (made.error_code, made.hmac, made.expiry_timestamp_ms) == (code, b"", -1)
    assert not world.image.delegation_tokens


def test_an_owner_has_a_bounded_number_of_tokens(world: World) -> None:
    for number in range(TOKENS_OF_OWNER_MAX):
        world.image.set_delegation_token(f"{number}", DelegationToken(f"{number}", ALICE, ALICE, (), 0, 1, 1))
    assert world.create().error_code == ErrorCode.POLICY_VIOLATION
    assert world.create(BOB).error_code == ErrorCode.NONE


def test_without_a_secret_key_nothing_works(world: World) -> None:
    hmac = world.create().hmac
    world.secrets = None
    off = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (world.create().error_code, world.renew(hmac)[0], world.expire(hmac)[0]) == (off, off, off)
    assert token_secrets(config(delegation_token_secret_key="")) is None


def test_renewing_moves_the_end_but_never_beyond_the_maximum(world: World) -> None:
    hmac = world.create(renewers=(BOB,)).hmac
    assert world.renew(hmac, now_ms=NOW + 500) == (0, NOW + 500 + EXPIRY)
    assert world.renew(hmac, BOB, now_ms=NOW + 600, period_ms=100) == (0, NOW + 700)
    assert world.renew(hmac, now_ms=NOW + 700, period_ms=2**63 - 1) == (0, NOW + 700 + EXPIRY)
    for now_ms in range(NOW + 1000, NOW + MAX, 500):
        code, ends_ms = world.renew(hmac, now_ms=now_ms)
        assert (code, ends_ms) == (0, min(now_ms + EXPIRY, NOW + MAX))
    assert world.renew(hmac, now_ms=NOW + MAX + 1) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, -1)


def test_a_token_that_has_ended_cannot_be_renewed_and_strangers_do_not_learn_more(world: World) -> None:
    hmac = world.create().hmac
    assert world.renew(hmac, CAROL)[0] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert world.renew(hmac, CAROL, NOW + EXPIRY + 1)[0] == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert world.renew(hmac, ALICE, NOW + EXPIRY)[0] == ErrorCode.NONE
    for wrong in (b"", b"x" * 64, hmac[:-1], b"token-1"):
        assert world.renew(wrong) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)


def test_expiring_sets_another_end_or_removes_the_token(world: World) -> None:
    hmac = world.create(renewers=(BOB,)).hmac
    assert world.expire(hmac, CAROL)[0] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert world.expire(hmac, BOB, NOW, 5000) == (0, NOW + 5000)
    assert world.expire(hmac, ALICE, NOW, 2**63 - 1) == (0, NOW + MAX)
    assert world.expire(hmac, ALICE, NOW, 0) == (0, NOW)
    assert world.expire(hmac, ALICE, NOW + 1, 5000) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, -1)
    assert world.expire(hmac, ALICE, NOW + 1, -1) == (0, NOW + 1), "one that has ended can still be removed"
    assert not world.image.delegation_tokens
    assert world.expire(hmac)[0] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_is_found_again_after_others_came_and_went(world: World) -> None:
    made = [world.create().hmac for _ in range(5)]
    assert world.renew(made[0])[0] == 0
    assert world.expire(made[0])[0] == 0
    made.append(world.create().hmac)
    codes = [world.renew(hmac)[0] for hmac in made]
    assert codes == [ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0, 0, 0, 0, 0]


def test_the_sweep_takes_what_has_ended_a_part_at_a_time(world: World) -> None:
    world.create()
    for number in range(SWEPT_MAX + 5):
        ended = DelegationToken(f"{number}", BOB, BOB, (), 0, NOW + MAX, NOW - 1)
        world.image.set_delegation_token(ended.id, ended)
    assert swept(world.image, NOW - 1) == []
    for left in (6, 1, 1):
        apply_all(world.image, swept(world.image, NOW), world.image.offset + 1, 1)
        assert len(world.image.delegation_tokens) == left


def test_what_was_not_committed_is_undone(world: World) -> None:
    kept = world.create().token_id
    before = dict(world.image.delegation_tokens)
    journal = world.image.journal()
    records = [
        RemoveDelegationTokenRecord(token_id=kept),
        delegation_token_record(DelegationToken("new", BOB, BOB, (), NOW, NOW, NOW)),
    ]
    apply_all(world.image, records, world.image.offset + 1, 1, journal)
    assert list(world.image.delegation_tokens) == ["new"] and not journal.is_empty
    world.image.undo(journal)
    assert world.image.delegation_tokens == before


def test_a_removal_of_what_is_not_there_is_no_record_of_this_log(world: World) -> None:
    with pytest.raises(UnsupportedRecord):
        apply_all(world.image, [RemoveDelegationTokenRecord(token_id="x")], 0, 1)


def test_a_snapshot_has_the_tokens(world: World) -> None:
    world.create(renewers=(BOB, CAROL))
    image = Image()
    apply_all(image, list(world.image.records()), 0, 1)
    assert image.delegation_tokens == world.image.delegation_tokens
    (token,) = world.image.delegation_tokens.values()
    assert delegation_token_record(token).renewers == [BOB, CAROL]
