from __future__ import annotations

from kio.schema.errors import ErrorCode as KioErrorCode

from heirlog.protocol.errors import ErrorCode, KafkaError, error_code


def test_the_table_is_kafkas_and_one_of_ours() -> None:
    theirs = {code.name.upper(): code.value for code in KioErrorCode}
    ours = {code.name: code.value for code in ErrorCode}
    assert ours.pop("REQUEST_LIMIT_REACHED") == 10134
    assert ours == theirs
    assert sorted(ours.values()) == list(range(-1, 134))


def test_a_number_outside_the_table_is_an_unknown_error() -> None:
    assert error_code(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error_code(31000) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_error_shows_its_code_and_sentence() -> None:
    error = KafkaError(ErrorCode.INVALID_REQUEST, "no such thing")
    assert str(error) == "INVALID_REQUEST: no such thing"
    assert error.code == 42
