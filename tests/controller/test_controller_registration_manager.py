"""When a controller sends its registration: until its own image has it, with a growing back-off."""

from __future__ import annotations

from broker.fakes import FakeEnv
from controller.fakes import CONTROLLER_ID, static

from heirlog.controller.controller_registration_manager import (
    BACKOFF_MAX_MS,
    BACKOFF_MS,
    CHANNEL,
    ControllerRegistrationManager,
)
from heirlog.env import SendFailure
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.image import METADATA_VERSION, Image
from heirlog.metadata.state import ControllerRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ControllerRegistrationResponse
from heirlog.protocol.types import BrokerId, Endpoint, Uuid

FIRST, SECOND = Endpoint("first", 9093), Endpoint("second", 9093)
DISCONNECTED = SendFailure("disconnected")
DONE = ControllerRegistrationResponse()
NOT_ACTIVE = ControllerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER)


class Controller:
    """A registration manager whose image and leader a test decides."""

    def __init__(self) -> None:
        self.env = FakeEnv()
        self.leader: Endpoint | None = None
        self.image = Image()
        self.manager = ControllerRegistrationManager(
            self.env,
            static(),
            lambda: self.leader,
            lambda: self.image,  # type: ignore[arg-type]
        )

    def follow(self, leader: Endpoint | None) -> None:
        self.leader = leader
        self.manager.leader_changed()

    def apply(self, incarnation_id: Uuid | None = None) -> None:
        """Metadata with a version, and this incarnation of the node if it is given."""
        self.image.set_feature(METADATA_VERSION, 27)
        if incarnation_id is not None:
            registration = ControllerRegistration(BrokerId(CONTROLLER_ID), incarnation_id)
            self.image.set_controller(registration.id, registration)
        self.manager.metadata_applied()

    @property
    def asked(self) -> list[Endpoint]:
        """To whom requests are under way."""
        return [sent.to for sent in self.env.sent if sent.channel == CHANNEL]

    def answer(self, result: object) -> None:
        self.env.take(CHANNEL).on_result(result)

    def wait_until_asked(self) -> int:
        """The milliseconds that pass until the next request."""
        for passed_ms in range(BACKOFF_MAX_MS + 1):
            if self.asked:
                return passed_ms
            self.env.advance(1)
        raise AssertionError("no request")


def looking_for_leader() -> Controller:
    controller = Controller()
    controller.apply()
    return controller


def registering() -> Controller:
    controller = looking_for_leader()
    controller.follow(FIRST)
    assert controller.asked == [FIRST]
    return controller


def test_the_request_names_this_process_its_listeners_and_its_features() -> None:
    controller = registering()
    request = controller.env.take(CHANNEL).request
    assert (request.controller_id, request.incarnation_id) == (CONTROLLER_ID, controller.manager.incarnation_id)
    assert [(one.name, one.host, one.port) for one in request.listeners] == [("CONTROLLER", "localhost", 9093)]
    assert {feature.name: feature.max_supported_version for feature in request.features} == {
        name: levels.max_version for name, levels in SUPPORTED_FEATURES.items()
    }


def test_nothing_is_sent_before_metadata_has_a_version_and_a_controller_is_active() -> None:
    controller = Controller()
    controller.follow(FIRST)
    assert controller.asked == []
    controller.follow(None)
    controller.apply()
    assert controller.asked == []
    controller.follow(FIRST)
    assert controller.asked == [FIRST]


def test_one_request_at_a_time() -> None:
    controller = registering()
    controller.apply()
    controller.follow(SECOND)
    assert controller.asked == [FIRST]


def test_nothing_more_is_sent_once_the_image_has_this_process() -> None:
    controller = registering()
    controller.apply(controller.manager.incarnation_id)
    controller.answer(DONE)
    controller.follow(SECOND)
    controller.env.advance(BACKOFF_MAX_MS)
    assert controller.asked == []


def test_a_success_that_the_image_does_not_show_is_asked_again() -> None:
    controller = registering()
    controller.answer(DONE)
    assert controller.wait_until_asked() == BACKOFF_MS


def test_the_back_off_doubles_up_to_two_minutes() -> None:
    controller, waits = registering(), []
    for result in [DISCONNECTED, NOT_ACTIVE] * 7:
        controller.answer(result)
        waits.append(controller.wait_until_asked())
    assert waits[:4] == [100, 200, 400, 800]
    assert waits[-2:] == [BACKOFF_MAX_MS, BACKOFF_MAX_MS]


def test_a_new_active_controller_is_asked_at_once() -> None:
    controller = registering()
    for _ in range(5):
        controller.answer(NOT_ACTIVE)
        controller.wait_until_asked()
    controller.answer(NOT_ACTIVE)
    controller.follow(SECOND)
    assert controller.asked == [SECOND]
    controller.answer(NOT_ACTIVE)
    assert controller.wait_until_asked() == BACKOFF_MS


def test_a_process_that_another_one_replaced_registers_again_after_a_growing_back_off() -> None:
    controller, waits = registering(), []
    for number in range(4):
        controller.apply(controller.manager.incarnation_id)
        controller.answer(DONE)
        controller.apply(Uuid(bytes([number]) * 16))
        waits.append(controller.wait_until_asked())
    assert waits == [100, 200, 400, 800], "two processes with one node id do not fill the log"


def test_a_refusal_that_lasts_is_a_warning() -> None:
    controller = registering()
    controller.answer(ControllerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert ("controller-registration-again", {"why": "CLUSTER_AUTHORIZATION_FAILED"}) in controller.env.events


def test_a_process_that_takes_the_place_of_a_registered_one_is_an_error_in_the_log() -> None:
    """Two processes with one folder vote as one voter. The process before this one is no such case."""
    controller = registering()
    controller.apply(Uuid(b"the one before".ljust(16)))
    controller.apply(controller.manager.incarnation_id)
    assert "controller-registered-elsewhere" not in dict(controller.env.events)
    controller.apply(Uuid(b"a copy".ljust(16)))
    controller.apply()
    names = [name for name, _ in controller.env.events]
    assert names.count("controller-registered-elsewhere") == 1
