"""Which listener of other nodes a channel reaches."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import heirlog
from heirlog.metadata.config_def import parse_static
from heirlog.server.peers import Peers

SOURCE = Path(heirlog.__file__).parent
TO_BROKERS = {
    "broker/groups/share/end_offsets.py",
    "broker/groups/share/state_requests.py",
    "broker/share_partitions/state_persister.py",
    "broker/transactions/add_partitions_manager.py",
    "broker/transactions/marker_sender.py",
    "controller/process_probe.py",
    "controller/recovery/sender.py",
}
TO_CONTROLLERS = {
    "broker/alter_partition_sender.py",
    "broker/assignments_manager.py",
    "broker/broker_lifecycle_manager.py",
    "broker/producer_id_manager.py",
    "controller/controller_registration_manager.py",
    "raft/epoch_messages.py",
    "raft/own_voter.py",
    "raft/snapshot_download.py",
    "raft/voter_changes.py",
}
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/nowhere",
}


def channels() -> dict[str, str]:
    """The constant CHANNEL of every module, by its path."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body if "CHANNEL" in source else ():
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name) and target.id == "CHANNEL":
                assert isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
                found[str(path.relative_to(SOURCE))] = ast.literal_eval(node.value)
    return found


def test_every_channel_reaches_the_listener_that_its_requests_are_for() -> None:
    found = channels()
    assert found.keys() == TO_BROKERS | TO_CONTROLLERS, "a new channel: to which nodes does it go?"
    loop = asyncio.new_event_loop()
    try:
        peers = Peers(loop, parse_static(SETTINGS), lambda *_, **__: None)
    finally:
        loop.close()
    brokers, controllers = peers.of_channel("replica-fetch-0"), peers.of_channel("forward")
    assert brokers is not controllers
    assert {path for path, channel in found.items() if peers.of_channel(channel) is brokers} == TO_BROKERS
