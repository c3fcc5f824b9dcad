from __future__ import annotations

import pytest
from sim.toys import SERVER, Pair

from heirlog.env import Region, SendFailure
from heirlog.protocol.messages import FetchRequest, FetchResponse, MetadataRequest, MetadataResponse, ProduceRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim import network as network_module
from heirlog.sim.network import ChangedAfterSend


def _kinds(results: list[object]) -> list[str]:
    return [result.kind if isinstance(result, SendFailure) else "answer" for result in results]


def test_answers_come_in_the_order_of_the_requests() -> None:
    pair = Pair()
    for _ in range(20):
        pair.caller.ask()
    pair.world.run_for(500)
    assert [result.controller_id for result in pair.caller.results] == list(range(1, 21))


def test_a_result_never_comes_within_the_call() -> None:
    pair = Pair()
    pair.caller.env.send(Endpoint("nobody", 1), "x", MetadataRequest(), pair.caller.results.append, 100)
    assert pair.caller.results == []
    pair.world.run_for(50)
    assert _kinds(pair.caller.results) == ["disconnected"]


def test_a_node_can_send_to_itself() -> None:
    pair = Pair()
    results: list[object] = []
    pair.server.env.send(SERVER, "self", MetadataRequest(), results.append, 100)
    pair.world.run_for(10)
    assert _kinds(results) == ["answer"]


def test_silence_ends_in_a_timeout_and_takes_the_connection_with_it() -> None:
    pair = Pair()
    pair.server.silent = True
    pair.caller.ask(timeout_ms=100)
    pair.caller.ask(timeout_ms=300)
    pair.world.run_for(400)
    assert _kinds(pair.caller.results) == ["timed-out", "disconnected"]
    assert pair.server.closed == 1
    pair.server.silent = False
    pair.caller.ask()
    pair.world.run_for(50)
    assert _kinds(pair.caller.results)[2:] == ["answer"]


def test_another_channel_is_another_connection() -> None:
    pair = Pair()
    pair.server.silent = True
    pair.caller.ask(timeout_ms=100)
    pair.caller.ask(channel="other", timeout_ms=300)
    pair.world.run_for(200)
    assert _kinds(pair.caller.results) == ["timed-out"]


def test_the_peer_of_a_killed_node_is_told() -> None:
    pair = Pair()
    pair.server.silent = True
    pair.caller.ask(timeout_ms=60_000)
    pair.world.run_for(50)
    pair.machines.kill("server")
    pair.world.run_for(50)
    assert _kinds(pair.caller.results) == ["disconnected"]
    pair.caller.ask()
    pair.world.run_for(50)
    assert _kinds(pair.caller.results)[1:] == ["disconnected"], "nobody listens any more"
    pair.start_server()
    pair.caller.ask()
    pair.world.run_for(50)
    assert _kinds(pair.caller.results)[2:] == ["answer"]


def test_a_node_is_told_of_the_end_of_its_client() -> None:
    pair = Pair()
    pair.caller.ask()
    pair.world.run_for(50)
    pair.machines.kill("client")
    pair.world.run_for(50)
    assert pair.server.closed == 1


def test_nobody_is_told_of_a_pause_and_the_answers_come_late() -> None:
    pair = Pair()
    pair.caller.ask(timeout_ms=5000)
    pair.machines.pause("server")
    pair.world.run_for(1000)
    assert pair.caller.results == []
    assert pair.server.closed == 0
    pair.machines.resume("server")
    pair.world.run_for(50)
    assert _kinds(pair.caller.results) == ["answer"]


def test_a_partition_holds_what_is_sent_and_its_end_delivers_it_in_order() -> None:
    pair = Pair()
    pair.network.block("client", "server")
    for _ in range(5):
        pair.caller.ask(timeout_ms=5000)
    pair.world.run_for(1000)
    assert pair.server.seen == []
    pair.network.heal("client", "server")
    pair.world.run_for(500)
    assert [result.controller_id for result in pair.caller.results] == [1, 2, 3, 4, 5]


def test_a_one_way_partition_lets_requests_through_and_keeps_the_answers() -> None:
    pair = Pair()
    pair.network.block("server", "client")
    pair.caller.ask(timeout_ms=100)
    pair.world.run_for(400)
    assert len(pair.server.seen) == 1
    assert _kinds(pair.caller.results) == ["timed-out"]
    assert pair.server.closed == 1, "the closing still goes the open way"


def test_a_death_behind_a_partition_is_seen_when_it_heals() -> None:
    pair = Pair()
    pair.server.silent = True
    pair.caller.ask(timeout_ms=60_000)
    pair.world.run_for(50)
    pair.network.block("server", "client")
    pair.machines.kill("server")
    pair.world.run_for(1000)
    assert pair.caller.results == []
    pair.network.heal("server", "client")
    pair.world.run_for(500)
    assert _kinds(pair.caller.results) == ["disconnected"]


def test_a_reset_tells_both_ends() -> None:
    pair = Pair()
    pair.server.silent = True
    pair.caller.ask(timeout_ms=60_000)
    pair.world.run_for(50)
    pair.network.reset_between("server", "client")
    pair.world.run_for(50)
    assert _kinds(pair.caller.results) == ["disconnected"]
    assert pair.server.closed == 1


def test_what_is_lost_stalls_its_connection_until_the_timeout() -> None:
    pair = Pair()
    pair.caller.ask()
    pair.world.run_for(50)
    pair.network.link("client", "server").loss = 1.0
    pair.caller.ask(timeout_ms=200)
    pair.network.link("client", "server").loss = 0.0
    pair.caller.ask(timeout_ms=300)
    pair.world.run_for(400)
    assert _kinds(pair.caller.results) == ["answer", "timed-out", "disconnected"]
    assert pair.server.closed == 1


@pytest.mark.parametrize("seed", range(20))
def test_every_result_comes_exactly_once_whatever_goes_wrong(seed: int) -> None:
    pair = Pair(seed)
    pair.network.link("client", "server").loss = 0.05
    pair.network.link("server", "client").reset = 0.05
    for number in range(60):
        pair.caller.env.call_later(number * 20, lambda: pair.caller.ask(timeout_ms=150))
    pair.caller.env.call_later(500, lambda: pair.machines.kill("server"))
    pair.world.schedule(700_000, None, "restart", pair.start_server)
    pair.world.run_for(3000)
    assert len(pair.caller.results) == 60


def test_a_full_connection_is_read_again_when_it_has_room() -> None:
    pair = Pair()
    pair.caller.ask()
    pair.world.run_for(50)
    connection = next(iter(pair.network._accepted[pair.server_process]))
    connection.node_end.paused = True
    pair.caller.ask()
    pair.caller.ask()
    pair.world.run_for(50)
    assert len(pair.server.seen) == 1
    connection.node_end.paused = False
    connection.resume()
    pair.world.run_for(50)
    assert len(pair.server.seen) == 3


def test_a_message_that_is_changed_after_it_was_sent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "SAMPLED_MESSAGES", 1)
    pair = Pair()
    request = MetadataRequest(topics=[])
    pair.caller.ask(request)
    request.allow_auto_topic_creation = not request.allow_auto_topic_creation
    with pytest.raises(ChangedAfterSend):
        pair.world.run_for(50)


def _produce(records: bytearray) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=-1,
        timeout_ms=100,
        topic_data=[ProduceRequest.TopicProduceData(topic_id=bytes(16), partition_data=[partition])],
    )


def test_a_leader_may_write_into_the_records_it_received() -> None:
    pair = Pair()
    records = bytearray(b"batch")
    pair.caller.ask(_produce(records))
    pair.world.run_for(50)
    received = pair.server.seen[0].topic_data[0].partition_data[0].records
    received[0:1] = b"B"
    assert bytes(received) == b"Batch"
    assert records == b"batch"


def test_regions_are_read_when_the_answer_is_handed_over() -> None:
    pair = Pair()
    file = pair.server.env.files.open("/log", create=True)
    file.append(b"0123456789")
    data = FetchResponse.PartitionData(records=[Region(file, 2, 3), b"xy"])
    topic = FetchResponse.FetchableTopicResponse(partitions=[data])
    pair.server.answer = lambda request: FetchResponse(responses=[topic])
    pair.caller.ask(FetchRequest())
    pair.world.run_while(lambda: not pair.server.seen, 100)
    file.truncate(0)
    pair.world.run_for(50)
    assert bytes(pair.caller.results[0].responses[0].partitions[0].records) == b"234xy"


def test_over_the_wire_every_message_is_encoded_and_decoded() -> None:
    pair = Pair(wire=True)
    records = bytearray(b"batch")
    pair.caller.ask()
    pair.world.run_for(50)
    assert isinstance(pair.caller.results[0], MetadataResponse)
    assert pair.server.seen[0] is not None
    pair.server.silent = True
    pair.caller.ask(_produce(records))
    pair.world.run_for(50)
    assert bytes(pair.server.seen[1].topic_data[0].partition_data[0].records) == b"batch"
