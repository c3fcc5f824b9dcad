"""The broker's life cycle towards the controller: registration, heartbeats, controlled shutdown.

    STARTING ------> RECOVERY ------> RUNNING ------> PENDING_CONTROLLED_SHUTDOWN ------> SHUTTING_DOWN
    registers;       our image has    unfenced        asks to stop; leaders move          the controller agrees,
    caught up?       our own                          away                                or cannot be reached
                     registration

* The registration says with which broker epoch this broker last stopped cleanly (-1: it did not). It is sent again with
  the same incarnation id until it is answered or `initial.broker.registration.timeout.ms` have passed.
* While STARTING, the next heartbeat follows 10 ms after the last answer, so that a start does not take longer than
  necessary; later one every `broker.heartbeat.interval.ms`. That is also the call's timeout, or a lost answer could use
  up a session. The timeout is at least a fifth of the session timeout: a call that times out closes its connection, and
  a controller that is only busy would take that for the death of the broker.
* `want_fence` stays true until the first image is applied: an unfenced broker is elected, and must know what it leads.
* A broker whose registration the controller does not know (unregistered by an operator) registers again. By then its
  logs are in use, so it no longer claims to have stopped cleanly.
* A newer registration with another incarnation id is of another process with the same `node.id`. It may be of the one
  before this one: killed while it registered, and its request arrived late. Such a registration is never unfenced. So
  while it is fenced, and this process was never unfenced, hence never led, this one registers again and applies no
  metadata until then. In all other cases it is a copy of the folder that was started while this process was paused or
  cut off. From then on "broker 1 leads" means that one. This process ends, because what it acknowledged would be on its
  disk only.
* A stop while a registration request is in flight waits for the answer: the controller may have written a new broker
  epoch, and then the epoch of the clean stop before no longer proves anything.
* If no controller answers during a controlled shutdown for a whole session timeout, the broker stops anyway: it is
  fenced by then, and the stop is still clean, because everything is flushed.

Source: KIP-631, KIP-966 (previous broker epoch); kafka-behaviour 4.7, 2.9, 2.10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from heirlog.broker.followers import RegisteredBrokers
from heirlog.env import Cancel, Env, SendFailure
from heirlog.failure_log import FailureLog
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.state import BrokerRegistration, places
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from heirlog.protocol.types import NO_BROKER_EPOCH, ZERO_UUID, BrokerEpoch, BrokerId, Endpoint, Uuid

CHANNEL = "heartbeat"
_NO_CONTROLLER = "no controller is known to be active"
_NOT_COMPARED = "the active controller's metadata are not known to be as new as this broker's copy"
STARTING_INTERVAL_MS = 10
CONTROLLED_SHUTDOWN_INTERVAL_MS = 50
LIMITS_PER_SESSION = 5
REGISTRATION_BACKOFF_MS = 100
REGISTRATION_BACKOFF_MAX_MS = 1000
CONTROLLED_SHUTDOWN_LIMIT_MS = 5 * 60_000
"""Kafka's limit for the whole of a controlled shutdown."""


class BrokerState(Enum):
    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class RegistrationProgress(Enum):
    NO = "no"
    ASKED = "asked"
    """Registration is requested and not answered yet, or the controller does not know this broker any more."""
    YES = "yes"


def answers_this_incarnation(answered: bytes, own: bytes) -> bool:
    """Guard 1: a registration response must match the incarnation that asked.

    answered: the incarnation that the controller registered; zero if it does not say so (Apache Kafka's). Without the
    guard, an answer to an earlier incarnation that arrives late gives its broker epoch to this one, which may have lost
    what the earlier one had acknowledged: it would keep the seats in ISR and ELR.
    """
    return answered in (own, ZERO_UUID)


@dataclass(frozen=True, slots=True)
class LifecycleEvents:
    """Callbacks of the rest of the broker.

    on_registered: the epoch is in `RegisteredBrokers`. on_caught_up: publish metadata now. on_shut_down: the controller
    allows the shutdown, or cannot be reached."""

    on_registered: Callable[[], None]
    on_caught_up: Callable[[], None]
    on_shut_down: Callable[[], None]


class BrokerLifecycleManager:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        cluster_id: str,
        registered_brokers: RegisteredBrokers,
        controller_endpoint: Callable[[], Endpoint | None],
        metadata_offset: Callable[[], int],
        offline_directories: Callable[[], list[Uuid]],
        events: LifecycleEvents,
        trusts_controller: Callable[[], bool] = lambda: True,
    ) -> None:
        self._env = env
        self._static = static
        self._cluster_id = cluster_id
        self._registered_brokers = registered_brokers
        self._controller_endpoint = controller_endpoint
        self._metadata_offset = metadata_offset
        self._offline_directories = offline_directories
        self._events = events
        self._trusts_controller = trusts_controller
        self._interval_ms = static.int("broker.heartbeat.interval.ms")
        self._limit_ms = max(self._interval_ms, static.int("broker.session.timeout.ms") // LIMITS_PER_SESSION)
        self.state = BrokerState.NOT_RUNNING
        self.incarnation_id = Uuid(env.random.randbytes(16))
        self._directory_ids: list[Uuid] = []
        self._previous_broker_epoch = NO_BROKER_EPOCH
        self._newest_leader_epoch: Callable[[], int] = _follows_newer
        """Newest leader epoch of the logs, if the controller must learn that its metadata is older than they are."""
        self._registered = RegistrationProgress.NO
        self._registration_deadline_ms = 0
        self._registration_backoff_ms = REGISTRATION_BACKOFF_MS
        self._registration_error = _NO_CONTROLLER
        self._cancel_registration: Cancel | None = None
        """Cancels the next attempt."""
        self._registering = False
        """A registration request is in flight."""
        self._was_unfenced = False
        """Metadata have said that this process is active, so it may have led partitions."""
        self._in_flight = False
        self._failure_log = FailureLog(env.log, env.now_ms, "heartbeat-failed", "heartbeats-resumed")
        self._ready_to_unfence = False
        self._cancel_next: Cancel | None = None
        self._reported_offline: list[Uuid] = []
        """Directories that the newest heartbeat named as offline."""
        self._last_answer_ms = 0
        self._shutdown_started_ms = 0
        self._shutdown_asked = False

    @property
    def was_registered(self) -> bool:
        """The controller knows this incarnation, or did."""
        return self._registered_brokers.broker_epoch != NO_BROKER_EPOCH

    def start(self, directory_ids: list[Uuid], previous_broker_epoch: BrokerEpoch) -> None:
        """Register, after the logs are loaded."""
        self._directory_ids = directory_ids
        self._previous_broker_epoch = previous_broker_epoch
        self.state = BrokerState.STARTING
        self._begin_registration()

    # -- registration -------------------------------------------------------------------------------------------

    def _begin_registration(self) -> None:
        if self._registered is RegistrationProgress.ASKED:
            return
        self._registered = RegistrationProgress.ASKED
        self._registration_backoff_ms = REGISTRATION_BACKOFF_MS
        self._registration_deadline_ms = self._env.now_ms() + self._static.int("initial.broker.registration.timeout.ms")
        self._register()

    def _register(self) -> None:
        self._cancel_registration = None
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        controller = self._controller_endpoint()
        if controller is None or not self._trusts_controller():
            self._registration_error = _NO_CONTROLLER if controller is None else _NOT_COMPARED
            self._register_later()
            return
        left_ms = max(1, self._registration_deadline_ms - self._env.now_ms())
        limit_ms = min(left_ms, self._static.int("controller.socket.timeout.ms"), self._limit_ms)
        self._registering = True
        self._env.send(controller, CHANNEL, self._registration(), self._registration_answered, limit_ms)

    def _registration(self) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self._registered_brokers.broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=listener.name,
                    host=listener.endpoint.host,
                    port=listener.endpoint.port,
                    security_protocol=listener.security_protocol_id,
                )
                for listener in self._static.advertised_listeners
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min_version, max_supported_version=levels.max_version
                )
                for name, levels in sorted(SUPPORTED_FEATURES.items())
            ],
            rack=self._static["broker.rack"],
            log_dirs=list(self._directory_ids),
            previous_broker_epoch=self._previous_broker_epoch,
            newest_leader_epoch=self._newest_leader_epoch(),
        )

    def _registration_answered(self, result: BrokerRegistrationResponse | SendFailure) -> None:
        self._registering = False
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if isinstance(result, SendFailure):
            self._registration_error = f"the controller did not answer ({result.kind})"
            self._register_later()
            return
        if result.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._env.stop(
                1, f"the controllers belong to another cluster than {self._cluster_id}; check the quorum's addresses"
            )
            return
        if result.error_code != ErrorCode.NONE:
            self._registration_error = f"the controller answered {error_code(result.error_code).name}"
            self._register_later()
            return
        if not answers_this_incarnation(result.incarnation_id, self.incarnation_id):
            self._registration_error = "the controller answered an earlier incarnation"
            self._register_later()
            return
        self._registered = RegistrationProgress.YES
        # from now on the logs may be written to
        self._previous_broker_epoch = NO_BROKER_EPOCH
        self._newest_leader_epoch = _follows_newer
        self._registered_brokers.broker_epoch = BrokerEpoch(result.broker_epoch)
        self._last_answer_ms = self._env.now_ms()
        self._env.log("info", "broker-registered", broker_epoch=result.broker_epoch)
        self._events.on_registered()
        if self._shutdown_asked:
            self._begin_shutdown()
        else:
            self._heartbeat()

    def _register_later(self) -> None:
        if self._shutdown_asked:
            self._release()
            return
        if self._env.now_ms() >= self._registration_deadline_ms and self.state is BrokerState.STARTING:
            self._env.stop(1, f"the broker could not register in time: {self._registration_error}")
            return
        self._env.log("info", "broker-registration-again", why=self._registration_error)
        backoff_ms = self._registration_backoff_ms
        self._registration_backoff_ms = min(2 * backoff_ms, REGISTRATION_BACKOFF_MAX_MS)
        self._cancel_registration = self._env.call_later(backoff_ms, self._register)

    def has_lost_its_place(self, brokers: Mapping[BrokerId, BrokerRegistration]) -> bool:
        """Whether these registrations name another process as this broker, so that they are not about this one.

        Ends this process, or registers it again where the other one may be gone.
        """
        own = self._registered_brokers
        known = brokers.get(own.broker_id)
        if not self.was_registered or known is None:
            return False
        if known.epoch <= own.broker_epoch or known.incarnation_id in (self.incarnation_id, ZERO_UUID):
            # it registers again, and the answer is on its way; or a seeded controller has renewed all registrations
            self._was_unfenced |= known.incarnation_id == self.incarnation_id and not known.fenced
            return False
        elsewhere = places(known.listeners)
        if known.fenced and not self._was_unfenced:
            if self._registered is RegistrationProgress.YES:
                self._env.log("warning", "broker-registered-elsewhere", broker_epoch=known.epoch, listeners=elsewhere)
            self._begin_registration()
            return True
        self._env.stop(
            1,
            f"another process has registered as broker {own.broker_id} ({elsewhere}) while this one was paused or cut "
            "off, and leads its partitions. This process ends, because what it acknowledged would be lost. Their "
            "folders differ from now on: start only one of them",
        )
        return True

    # -- heartbeats ---------------------------------------------------------------------------------------------

    def first_image_applied(self) -> None:
        """The broker knows what it leads: it may be unfenced."""
        if not self._ready_to_unfence:
            self._ready_to_unfence = True
            self._heartbeat_now()

    def metadata_applied(self) -> None:
        """The image has new records. While starting, the controller may wait for this; and a controller exists."""
        if self._cancel_registration is not None and self._registration_error in (_NO_CONTROLLER, _NOT_COMPARED):
            self._cancel_registration()
            self._register()
        if self.state is BrokerState.STARTING and self._registered is RegistrationProgress.YES and not self._in_flight:
            self._heartbeat_now()

    def directory_failed(self) -> None:
        """Send a heartbeat now: the controller should not learn of it only after the next interval."""
        self._heartbeat_now()

    def _heartbeat_now(self) -> None:
        self._cancel_next_heartbeat()
        self._heartbeat()

    def _cancel_next_heartbeat(self) -> None:
        if self._cancel_next is not None:
            self._cancel_next()
            self._cancel_next = None

    def _heartbeat_in(self, delay_ms: int) -> None:
        self._cancel_next_heartbeat()
        self._cancel_next = self._env.call_later(delay_ms, self._heartbeat_due)

    def _heartbeat_due(self) -> None:
        self._cancel_next = None
        self._heartbeat()

    def _heartbeat(self) -> None:
        if (
            self._in_flight
            or self._registered is not RegistrationProgress.YES
            or self.state is BrokerState.SHUTTING_DOWN
        ):
            return
        controller = self._controller_endpoint()
        if controller is None:
            self._no_answer("no controller is known")
            return
        self._in_flight = True
        shutting_down = self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
        self._reported_offline = list(self._offline_directories())
        request = BrokerHeartbeatRequest(
            broker_id=self._registered_brokers.broker_id,
            broker_epoch=self._registered_brokers.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._ready_to_unfence,
            want_shut_down=shutting_down,
            offline_log_dirs=[*self._reported_offline],
        )
        self._env.send(
            controller, CHANNEL, request, lambda result: self._answered(result, shutting_down), self._limit_ms
        )

    def _answered(self, result: BrokerHeartbeatResponse | SendFailure, asked_to_shut_down: bool) -> None:
        self._in_flight = False
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if isinstance(result, SendFailure):
            self._no_answer(result.kind)
            return
        if result.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            self._env.log("warning", "broker-not-registered", error=error_code(result.error_code).name)
            if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                self._release()
                return
            self._begin_registration()
            return
        if result.error_code != ErrorCode.NONE:
            self._no_answer(error_code(result.error_code).name)
            return
        self._last_answer_ms = self._env.now_ms()
        self._failure_log.worked()
        self._proceed(result, asked_to_shut_down)

    def _proceed(self, result: BrokerHeartbeatResponse, asked_to_shut_down: bool) -> None:
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if result.should_shut_down and asked_to_shut_down:
                self._release()
            else:
                # Kafka waits a whole interval after the first answer; leaders have moved long before that
                self._heartbeat_in(CONTROLLED_SHUTDOWN_INTERVAL_MS if asked_to_shut_down else 0)
            return
        if self.state is BrokerState.STARTING:
            if not result.is_caught_up:
                self._heartbeat_in(STARTING_INTERVAL_MS)
                return
            self._change_state(BrokerState.RECOVERY)
            self._events.on_caught_up()
        if self.state is BrokerState.RECOVERY and not result.is_fenced:
            self._change_state(BrokerState.RUNNING)
        if self._cancel_next is None and not self._in_flight:
            # a directory may have failed while the heartbeat was in flight
            is_new = self._reported_offline != list(self._offline_directories())
            self._heartbeat_in(0 if is_new else self._interval_ms)

    def _no_answer(self, error: str) -> None:
        self._failure_log.failed("info", error, error=error)
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN and self._is_abandoned():
            self._release()
            return
        # a lost heartbeat uses up session time, so the next one must not wait a whole interval
        self._heartbeat_in(min(self._interval_ms, REGISTRATION_BACKOFF_MS))

    def _change_state(self, state: BrokerState) -> None:
        self._env.log("info", "broker-state", before=self.state.name, state=state.name)
        self.state = state

    # -- controlled shutdown ------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Ask for a controlled shutdown; `on_shut_down` follows, at once if the controller never knew this broker."""
        if self.state in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN) or self._shutdown_asked:
            return
        self._shutdown_asked = True
        if not self._registering:
            self._begin_shutdown()

    def accept_older_metadata(self, newest_leader_epoch: Callable[[], int]) -> None:
        """Register without a clean stop, and report the newest leader epoch of the logs, once they are loaded."""
        self._previous_broker_epoch = NO_BROKER_EPOCH
        self._newest_leader_epoch = newest_leader_epoch

    def shut_down_at_once(self) -> None:
        """Stop without asking a controller: their metadata is not trusted."""
        if self.state is not BrokerState.SHUTTING_DOWN:
            self._release()

    def _begin_shutdown(self) -> None:
        self._shutdown_started_ms = self._env.now_ms()
        if self._registered is not RegistrationProgress.YES or not self._static["controlled.shutdown.enable"]:
            self._release()
            return
        self._change_state(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        self._heartbeat_now()

    def _is_abandoned(self) -> bool:
        now_ms = self._env.now_ms()
        silent_since_ms = max(self._last_answer_ms, self._shutdown_started_ms)
        return (
            now_ms - silent_since_ms >= self._static.int("broker.session.timeout.ms")
            or now_ms - self._shutdown_started_ms >= CONTROLLED_SHUTDOWN_LIMIT_MS
        )

    def _release(self) -> None:
        self._cancel_next_heartbeat()
        self._change_state(BrokerState.SHUTTING_DOWN)
        self._events.on_shut_down()


def _follows_newer() -> int:
    """Of a broker whose metadata are not newer than the controllers'."""
    return -1
