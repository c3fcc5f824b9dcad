"""What a node takes from its configuration about the other controllers, and what from the log."""

from __future__ import annotations

from dataclasses import replace

from heirlog.protocol.types import ZERO_UUID, BrokerId, Endpoint, Uuid
from heirlog.raft.configured_controllers import ConfiguredControllers
from heirlog.raft.control import Voter
from heirlog.raft.local_replica import LocalReplica

DISK = Uuid(bytes([1]) * 16)
HERE, BEFORE, THERE, BOOTSTRAP = (Endpoint("host", port) for port in (1, 2, 3, 4))
ME = Voter(BrokerId(7), DISK, HERE)
OTHER = Voter(BrokerId(8), Uuid(bytes([2]) * 16), THERE)
STATIC = (replace(ME, directory_id=ZERO_UUID, endpoint=BEFORE), replace(OTHER, directory_id=ZERO_UUID))
REPLICA = LocalReplica(7, DISK, "ABEiM0RVZneImaq7zN3u_w", "/data", is_controller=True)
CONTROLLERS = ConfiguredControllers(ME, (), [BOOTSTRAP, HERE])


def test_a_voter_of_the_log_that_is_this_node_gets_its_current_endpoint_and_others_keep_theirs() -> None:
    assert CONTROLLERS.current(REPLICA, [replace(ME, endpoint=BEFORE), OTHER]) == (ME, OTHER)


def test_a_configured_voter_that_the_log_does_not_name_does_not_vote() -> None:
    assert CONTROLLERS.current(REPLICA, [OTHER]) == (OTHER,)
    assert CONTROLLERS.current(REPLICA, []) == ()


def test_it_asks_the_bootstrap_servers_and_the_other_voters_and_never_itself() -> None:
    assert CONTROLLERS.endpoints(REPLICA, [replace(ME, endpoint=BEFORE), OTHER]) == [BOOTSTRAP, THERE]


def test_an_observer_asks_every_configured_voter() -> None:
    broker = replace(REPLICA, node_id=1, directory_id=Uuid(bytes([3]) * 16), is_controller=False)
    assert ConfiguredControllers(None, STATIC).endpoints(broker, []) == [BEFORE, THERE]


def test_a_static_voter_is_this_node_whatever_its_disk() -> None:
    controllers = ConfiguredControllers(ME, STATIC)
    assert controllers.current(REPLICA, STATIC) == (ME, STATIC[1])
    assert controllers.endpoints(REPLICA, STATIC) == [THERE]
