"""The registration of this controller at the active one, which may be this controller itself.

    missing      the image lacks this process: its incarnation id is new, or another process has replaced it
                 -> an active controller is known, and the back-off since the last answer is over: send the request
    under way    -> the answer arrives: the back-off begins
    registered   the image names this process -> nothing, as long as it does

* A success only says that the record is committed. The registration counts once this node has applied it. Until then
  the request is repeated, which writes no record.
* The back-off doubles from 100 ms to 120 s. A new active controller receives a request at once.
* A success does not end the back-off. Otherwise two processes with the same node id would replace each other's
  registration as fast as the quorum commits.
* Another process that replaces this one is a copy of its folder. Both vote as one voter, so that an epoch can get two
  leaders. Which of them is the right one, only an operator knows: each logs it, as often as it is replaced.
* Nothing is sent before the metadata version is known: the bootstrap records come first in the log.

Source: KIP-919, the rules of Apache Kafka's ControllerRegistrationManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heirlog.env import Cancel, Env, SendFailure
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.image import Image
from heirlog.metadata.state import places
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import ControllerRegistrationRequest, ControllerRegistrationResponse
from heirlog.protocol.types import BrokerId, Endpoint, Uuid

CHANNEL: Final = "controller-registration"
BACKOFF_MS: Final = 100
BACKOFF_MAX_MS: Final = 120_000


class ControllerRegistrationManager:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        leader_endpoint: Callable[[], Endpoint | None],
        image: Callable[[], Image],
    ) -> None:
        """leader_endpoint: of the active controller, None while it is unknown. image: the committed one."""
        self._env = env
        self._static = static
        self._leader_endpoint = leader_endpoint
        self._image = image
        self.incarnation_id = Uuid(env.random.randbytes(16))
        self._under_way = False
        self._backoff_ms = BACKOFF_MS
        self._not_before_ms = 0
        self._cancel_wait: Cancel | None = None
        self._was_registered = False
        """The image that was applied last names this process."""

    @property
    def is_registered(self) -> bool:
        registration = self._image().controllers.get(BrokerId(self._static.node_id))
        return registration is not None and registration.incarnation_id == self.incarnation_id

    def leader_changed(self) -> None:
        """Another controller may have become active."""
        self._backoff_ms = BACKOFF_MS
        self._not_before_ms = 0
        if self._cancel_wait is not None:
            self._cancel_wait()
            self._cancel_wait = None
        self._send_if_missing()

    def metadata_applied(self) -> None:
        """The image has new records."""
        if self._was_registered and not self.is_registered:
            self._log_replaced()
        self._was_registered = self.is_registered
        self._send_if_missing()

    def _log_replaced(self) -> None:
        other = self._image().controllers.get(BrokerId(self._static.node_id))
        if other is not None:
            self._env.log("warning", "controller-registered-elsewhere", listeners=places(other.listeners))

    def _send_if_missing(self) -> None:
        if self._under_way or self._cancel_wait is not None or self.is_registered:
            return
        leader = self._leader_endpoint()
        if leader is None or self._image().metadata_version == 0:
            return
        wait_ms = self._not_before_ms - self._env.now_ms()
        if wait_ms > 0:
            self._cancel_wait = self._env.call_later(wait_ms, self._wait_ended)
            return
        self._under_way = True
        limit_ms = self._static.int("controller.socket.timeout.ms")
        self._env.send(leader, CHANNEL, self._request(), self._answered, limit_ms)

    def _wait_ended(self) -> None:
        self._cancel_wait = None
        self._send_if_missing()

    def _request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._static.node_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                ControllerRegistrationRequest.Listener(
                    name=listener.name,
                    host=listener.endpoint.host,
                    port=listener.endpoint.port,
                    security_protocol=listener.security_protocol_id,
                )
                for listener in self._static.advertised_controller_listeners
            ],
            features=[
                ControllerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min_version, max_supported_version=levels.max_version
                )
                for name, levels in sorted(SUPPORTED_FEATURES.items())
            ],
        )

    def _answered(self, result: ControllerRegistrationResponse | SendFailure) -> None:
        self._under_way = False
        if isinstance(result, SendFailure):
            self._env.log("info", "controller-registration-again", why=result.kind)
        elif result.error_code == ErrorCode.NONE:
            self._env.log("info", "controller-registered", incarnation_id=self.incarnation_id.hex())
        else:
            # a fail-over answers NOT_CONTROLLER; anything else lasts until an operator mends it
            is_usual = result.error_code == ErrorCode.NOT_CONTROLLER
            why = error_code(result.error_code).name
            self._env.log("info" if is_usual else "warning", "controller-registration-again", why=why)
        self._not_before_ms = self._env.now_ms() + self._backoff_ms
        self._backoff_ms = min(2 * self._backoff_ms, BACKOFF_MAX_MS)
        self._send_if_missing()
