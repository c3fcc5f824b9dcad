import pytest

from heirlog.protocol.types import ZERO_UUID, Uuid
from heirlog.raft.quorum_state import MalformedQuorumState, QuorumState, decode, encode


def test_version_1_is_one_line_of_json_as_kafka_writes_it() -> None:
    state = QuorumState(100, 3, 100, Uuid(b"\x01" * 16))
    assert encode(state).splitlines()[0] == (
        b'{"leaderId":100,"leaderEpoch":3,"votedId":100,"votedDirectoryId":"AQEBAQEBAQEBAQEBAQEBAQ","data_version":1}'
    )
    assert decode(encode(state)) == state


def test_version_0_of_an_older_kafka_is_read() -> None:
    old = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert decode(old) == QuorumState(1, 7, -1, ZERO_UUID)


def test_with_voters_of_the_configuration_version_0_is_written_as_kafka_writes_it() -> None:
    state = QuorumState(2, 7, 3, Uuid(b"\x01" * 16))
    written = encode(state, [3, 1, 2])
    assert written.splitlines()[0] == (
        b'{"clusterId":"","leaderId":2,"leaderEpoch":7,"votedId":3,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
    )
    assert decode(written) == QuorumState(2, 7, 3, ZERO_UUID)


@pytest.mark.parametrize("torn", [b"", b'{"leaderId":1', b"[]", b'{"data_version":2}', b'{"data_version":1}'])
def test_a_file_that_cannot_be_understood_is_refused_because_a_forgotten_vote_could_be_given_twice(torn: bytes) -> None:
    with pytest.raises(MalformedQuorumState):
        decode(torn)


def test_one_flipped_bit_is_refused_because_it_may_be_in_the_epoch_or_the_vote() -> None:
    written = encode(QuorumState(100, 3, 100, Uuid(b"\x01" * 16)))
    json_bits = 8 * written.index(b"\n")
    for bit in range(json_bits):
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MalformedQuorumState):
            decode(bytes(flipped))
