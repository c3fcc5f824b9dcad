"""Which voter is this node's replica of the metadata log."""

from __future__ import annotations

from dataclasses import replace

from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter
from heirlog.raft.local_replica import LocalReplica

DISK, NEW_DISK = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)
REPLICA = LocalReplica(7, DISK, "ABEiM0RVZneImaq7zN3u_w", "/data", is_controller=True)
VOTER = Voter(BrokerId(7), DISK, Endpoint("controller", 9093))


def test_a_voter_with_its_id_and_directory_id_is_this_replica_wherever_it_listens() -> None:
    moved = replace(VOTER, endpoint=Endpoint("elsewhere", 1))
    assert REPLICA.is_voter(moved)
    assert REPLICA.among([replace(VOTER, id=BrokerId(8)), moved]) == moved


def test_a_replaced_disk_makes_it_another_voter() -> None:
    assert not REPLICA.is_voter(replace(VOTER, directory_id=NEW_DISK))
    assert REPLICA.among([replace(VOTER, directory_id=NEW_DISK)]) is None


def test_the_same_directory_id_under_another_node_id_is_another_voter() -> None:
    assert REPLICA.among([replace(VOTER, id=BrokerId(8))]) is None


def test_the_log_has_its_own_directory_in_metadata_log_dir() -> None:
    assert REPLICA.log_directory == "/data/__cluster_metadata-0"
