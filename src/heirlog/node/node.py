"""A process's brain: broker role, controller role or both, on one `NodeEnv`.

    start      log directories are opened. One that cannot be opened is offline as long as another one is usable. A
               foreign one, or an unusable one of the metadata log, ends the node with a message that says what to do
               -> the quorum: leader (controller) or observer (broker)
               -> the broker role loads its logs, registers, and is fed committed metadata; requests on its listeners
                  are held until then
    running    bodies bring connections; connections bring requests; the router finds their handlers
    shutdown   broker role: controlled shutdown, logs closed, clean-shutdown file -> quorum -> `env.stop(0)`

Both roles share one quorum and one process, and nothing else. The broker role sends requests to the controller, even to
the one in the same process, and sees only committed metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from heirlog.context import Context, Reply
from heirlog.env import Cancel, NodeEnv
from heirlog.log_levels import LogLevels
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, ResourceType
from heirlog.metadata.address import kafka_host
from heirlog.metadata.authorizer import Authorizer
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import listener_limit, server_value
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.metadata.state import BrokerRegistration
from heirlog.node.audit import AuditLog
from heirlog.node.authentication import Authentications, Authenticators
from heirlog.node.auto_topic_creation import AutoTopicCreationManager
from heirlog.node.connection import ClientConnection, ReadAhead, Transport
from heirlog.node.dynamic_stores import DynamicStores, ListenerStores
from heirlog.node.forwarding import Forwarder
from heirlog.node.log_directories import metadata_identity, open_directories, refuse_metadata_elsewhere
from heirlog.node.metadata_publisher import MetadataPublisher
from heirlog.node.quorum_configs import configured_controllers, metadata_log_config, quorum_config
from heirlog.node.read_your_writes import LocalImageWaits, MetadataPropagation
from heirlog.node.request_dispatcher import RequestDispatcher
from heirlog.node.router import ApiRoute, ListenerRoutes, listeners_of
from heirlog.node.snapshots import SnapshotTrigger
from heirlog.node.wire import api_keys
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import METADATA_TOPIC, Endpoint, PartitionKey
from heirlog.raft.bootstrap import read_bootstrap_records
from heirlog.raft.latency_window import LatencyWindow
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.older_metadata import OlderMetadata
from heirlog.raft.quorum import Quorum
from heirlog.raft.replay import CommittedBatch
from heirlog.raft.snapshot import InvalidSnapshot
from heirlog.rate_limited_log import RateLimitedLog
from heirlog.security.access_token import Signatures
from heirlog.security.exchange import Exchange
from heirlog.storage.atomic import OnDurable
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.log_directory import LogDirectory
from heirlog.version import __version__

if TYPE_CHECKING:
    from heirlog.broker.broker import Broker
    from heirlog.controller.controller import Controller
    from heirlog.controller.controller_registration_manager import ControllerRegistrationManager
    from heirlog.node.client_quotas import ClientQuotaManager
    from heirlog.node.request_metrics import RequestMetrics
    from heirlog.node.sasl_connection import SaslConnection

R = TypeVar("R")
NO_NODE = -1


class NodeRoles(NamedTuple):
    quorum: Quorum | None
    controller: Controller | None
    broker: Broker | None


class Node:
    """One incarnation. `listeners` is where the body must listen before it calls `start`."""

    def __init__(
        self,
        env: NodeEnv,
        config: StaticConfig,
        unusable: Mapping[str, str] | None = None,
        log_levels: LogLevels | None = None,
        now_ns: Callable[[], int] | None = None,
        signatures: Mapping[str, Signatures] | None = None,
        stores: ListenerStores | None = None,
    ) -> None:
        """unusable: log directories that the body could not take for this process, and why.

        signatures: by listener, what checks those of tokens (OAUTHBEARER).
        stores: the body's key and trust stores, which dynamic configurations may replace.

        log_levels: what the body's log shows; changed here as operators ask for it.
        now_ns: a clock finer than the body's `Env.now_ms`, to measure requests by.
        """
        self._unusable = unusable or {}
        self.log_levels = log_levels or LogLevels()
        self.env = env
        self.config = config
        self.cluster_id = ""
        self._by_name = {listener.name: listener for listener in listeners_of(config)}
        self._now_ns = now_ns or (lambda: env.now_ms() * 1_000_000)
        self._connections: dict[ClientConnection, None] = {}
        self.requests: RequestMetrics | None = None
        """Only if the node serves metrics; the same for the next one."""
        self.commit_latency: LatencyWindow | None = None
        if config.metrics_listener is not None:
            from heirlog.node.request_metrics import RequestMetrics

            self.commit_latency = LatencyWindow()
            self.requests = RequestMetrics(self._now_ns)
        self.client_quotas: ClientQuotaManager | None = None
        """None: no client has a quota."""
        self.read_ahead = ReadAhead(config.int("queued.max.requests"), config.int("queued.max.request.bytes"))
        self.log_limited = RateLimitedLog(env.log, env.now_ms)
        self.controllers_seen = 0
        """How often a controller became active, as far as this node knows."""
        self._directories: list[LogDirectory] = []
        self._quorum: Quorum | None = None
        self._former_controller: Endpoint | None = None
        """Where the newest known active controller listens, or listened."""
        self._controller: Controller | None = None
        self._registration: ControllerRegistrationManager | None = None
        self._broker: Broker | None = None
        self._publisher = MetadataPublisher(
            self._applied,
            self._published,
            SnapshotTrigger(
                config["metadata.log.max.record.bytes.between.snapshots"],
                config["metadata.log.max.snapshot.interval.ms"],
                env.now_ms,
            ),
            lambda records, offset, epoch: self.quorum.snapshot(records, offset, epoch),
        )
        self._own_image = LocalImageWaits(env, lambda: self.image.offset)
        self.every_broker = MetadataPropagation(env, lambda: self.controller.image, config.node_id)
        self._forwarder = Forwarder(
            env, self.controller_endpoint, config["controller.socket.timeout.ms"], self._own_image.when_applied
        )
        self._missing_topics = AutoTopicCreationManager(env, config, self._forwarder)
        self.authorizer: Authorizer | None = None
        """None: every operation is allowed."""
        if config.has_authorizer:
            by_default = config["allow.everyone.if.no.acl.found"]
            self.authorizer = Authorizer(config.super_users, by_default, lambda: self.image.acls)
        self._authenticators = Authenticators(
            config, lambda: self.image, lambda: self.cluster_id, env.wall_ms, signatures or {}
        )
        self.authentications = Authentications(env.log, self.log_limited)
        self._audit = AuditLog(env.log, env.now_ms, env.call_later)
        self.log_denied = self._audit.denied
        self._dispatcher = RequestDispatcher(self, self.every_broker, self._audit)
        self.handle = self._dispatcher.handle
        self._stores = DynamicStores(stores, config.node_id)
        self._stopping = False

    # for handlers

    @property
    def image(self) -> Image:
        """Committed metadata as far as this node has applied it."""
        return self._publisher.image

    @property
    def quorum(self) -> Quorum:
        assert self._quorum is not None, "requests come after start"
        return self._quorum

    @property
    def controller(self) -> Controller:
        assert self._controller is not None, "only a controller's listener routes here"
        return self._controller

    @property
    def broker(self) -> Broker:
        assert self._broker is not None, "only a broker's listener routes here"
        return self._broker

    @property
    def parts(self) -> NodeRoles:
        """For metrics: what there is of this node by now."""
        return NodeRoles(self._quorum, self._controller, self._broker)

    @property
    def has_roles(self) -> bool:
        return self._quorum is not None

    @property
    def held_count(self) -> int:
        """Requests that wait for metadata."""
        return self._dispatcher.held_count

    @property
    def applied_time_ms(self) -> int:
        """When the newest metadata record of this node's image was written, -1 where no log but a snapshot says it."""
        return self._publisher.applied_time_ms

    def forwarded(self, api_key: int) -> int:
        """Clients' requests of this API that wait for the active controller."""
        return self._forwarder.waiting(api_key)

    @property
    def holds_requests(self) -> bool:
        """Whether clients' requests wait until this broker has metadata."""
        return not self._dispatcher.has_metadata

    @property
    def directories(self) -> list[LogDirectory]:
        return self._directories

    def server_value(self, name: str) -> Any:
        """A server configuration as it counts now, dynamic values included."""
        return server_value(self.image, self.config, name)

    def listener_limit(self, listener: str, name: str) -> int:
        """As it counts now for one listener."""
        return listener_limit(self.image, self.config, listener, name)

    def reason_against_stores(self, changes: Mapping[str, str | None]) -> str | None:
        """Why this node cannot serve its listeners with its configurations changed like this; None: it can."""
        return self._stores.reason_against(self.image, changes)

    def listener(self, name: str) -> ListenerRoutes:
        return self._by_name[name]

    def routes(self, listener: str) -> Mapping[int, ApiRoute]:
        return self.listener(listener).routes

    def api_keys(self, listener: str) -> list[ApiVersionsResponse.ApiVersion]:
        """What ApiVersions shows on this listener."""
        return api_keys(self.listener(listener))

    def controller_endpoint(self) -> Endpoint | None:
        """The active controller's, None while this node does not know it."""
        return self._quorum.leader_endpoint if self._quorum is not None else None

    def controllers(self) -> list[Endpoint]:
        """Where this node looks for the active controller."""
        return list(dict.fromkeys([*(voter.endpoint for voter in self.quorum.voters), *self.config.bootstrap_servers]))

    def sorted_brokers(self) -> list[BrokerRegistration]:
        return [broker for _, broker in sorted(self.image.brokers.items())]

    def any_live_broker(self) -> int:
        """The "controller" in answers to clients: a broker that accepts their admin requests (KIP-590).

        This one if it is unfenced, and also where none is (`apis.common.describe.live_brokers`).
        """
        live = [broker.id for broker in self.sorted_brokers() if not broker.fenced]
        return self.config.node_id if self.config.node_id in live or not live else live[0]

    def forward(
        self,
        request: Message,
        context: Context,
        refusal: Callable[[ErrorCode], R],
        time_limit_ms: int | None = None,
    ) -> Pending[R]:
        return self._forwarder.forward(request, context.api_version, refusal, context, time_limit_ms)

    def create_missing_topics(self, names: list[str], context: Context | None = None) -> None:
        """context: of the client that needs them; None: this broker does."""
        self._missing_topics.create(names, context)

    def create_missing_topic(self, name: str, wait_ms: int | None = None) -> Pending[bool]:
        """Complete once the controller has answered, whether the topic could be created or not, or after the wait."""
        return self._missing_topics.created(name, wait_ms)

    # life

    @property
    def listeners(self) -> list[tuple[str, Endpoint]]:
        return [(listener.name, listener.bind) for listener in self._by_name.values()]

    def start(self) -> None:
        config = self.config
        try:
            identity = metadata_identity(self.env, config, self._unusable)
            self.cluster_id = identity.cluster_id
            self._say_who()
            self._directories = open_directories(self.env, config, self.cluster_id, self._unusable, self)
            refuse_metadata_elsewhere(self.env.files, config, [directory.path for directory in self._directories])
            # only a cluster's first controller uses them: a broker need not be stopped by a damaged file
            bootstrap = read_bootstrap_records(self.env.files, config.metadata_log_dir) if config.is_controller else []
        except (StorageFormatError, InvalidSnapshot, OSError) as error:
            self.env.stop(1, str(error))
            return
        self._quorum = Quorum(
            self.env,
            LocalReplica(
                config.node_id,
                identity.directory_id,
                identity.cluster_id,
                config.metadata_log_dir,
                config.is_controller,
            ),
            configured_controllers(config, identity.directory_id),
            listeners=[self],
            config=metadata_log_config(config),
            quorum_config=quorum_config(config),
            older_metadata=OlderMetadata(self._refuse_older_metadata, self._accepts_older_metadata),
            on_replica_knows=self.every_broker.fetched if config.is_controller else None,
        )
        # each role's modules are imported only where the role is: a tenth of the time that a start takes
        if config.is_controller:
            from heirlog.controller.controller import Controller
            from heirlog.controller.controller_registration_manager import ControllerRegistrationManager

            self._controller = Controller(
                self.env,
                config,
                self._quorum,
                cluster_id=self.cluster_id,
                bootstrap=bootstrap,
            )
            self._controller.follow(self._publisher.image)
            self._registration = ControllerRegistrationManager(
                self.env, config, self.controller_endpoint, lambda: self.image
            )
        if config.is_broker:
            from heirlog.broker.broker import Broker

            self._broker = Broker(
                self.env,
                config,
                self._directories,
                self.controller_endpoint,
                lambda: self.image,
                cluster_id=self.cluster_id,
                on_caught_up=self._caught_up,
                create_topics=self.create_missing_topics,
                trusts_controller=lambda: self.quorum.agrees,
            )
        self._quorum.start(self._quorum_ready)

    def _say_who(self) -> None:
        """The first line of the log."""
        self.env.log(
            "info",
            "node-starting",
            version=__version__,
            cluster_id=self.cluster_id,
            roles=list(self.config.roles),
            listeners=[f"{name}://{endpoint}" for name, endpoint in self.listeners],
            log_dirs=list(self.config.log_dirs),
        )

    def _quorum_ready(self) -> None:
        if self._broker is not None and not self._stopping:
            self._broker.start()

    def shutdown(self) -> None:
        """SIGTERM: stop cleanly; ends with `env.stop(0)`. A second call changes nothing."""
        if self._stopping:
            return
        self._stopping = True
        if self._broker is not None:
            self._broker.shutdown(self._stop_quorum)
        else:
            self._stop_quorum()

    def _refuse_older_metadata(self, reason: str) -> None:
        """The logs are closed as they are; nothing is asked of a controller that knows less than this node."""
        if self._broker is None:
            self.env.stop(1, reason)
            return
        self._stopping = True
        self._broker.stop_at_once(lambda: self.env.stop(1, reason))

    def _accepts_older_metadata(self) -> Callable[[OnDurable], None] | None:
        if self._broker is None or self._dispatcher.has_metadata or not self.config["heirlog.accept.older.metadata"]:
            return None
        return self._broker.accept_older_metadata

    def _stop_quorum(self) -> None:
        if self._quorum is None:
            self._end_quorum()
        else:
            self._quorum.hand_over(self._end_quorum)

    def _end_quorum(self) -> None:
        for connection in list(self._connections):
            connection.transport.close()
        self._audit.write_left_out()
        if self._controller is not None:
            self._controller.shutdown()
        if self._quorum is None:
            self.env.stop(0, "stopped before it had started")
        else:
            self._quorum.shutdown(lambda: self.env.stop(0, "stopped on request"))

    # connections

    def connected(self, transport: Transport) -> ClientConnection:
        """On a listener without SASL."""
        connection = ClientConnection(self, self._by_name[transport.listener], transport)
        self._connections[connection] = None
        return connection

    def accepted(self, transport: Transport) -> ClientConnection | SaslConnection:
        """On any listener."""
        connection = self.connected(transport)
        listener = connection.listener
        if not listener.security.uses_sasl:
            return connection
        from heirlog.node.sasl_connection import SaslConnection

        delay_ms = self.config.int("connection.failed.authentication.delay.ms")
        return SaslConnection(self, listener.security, connection, delay_ms)

    # authentication

    @property
    def secured_listeners(self) -> list[str]:
        return [name for name, listener in self._by_name.items() if listener.security.protocol != "PLAINTEXT"]

    @property
    def now_ms(self) -> int:
        return self.env.now_ms()

    @property
    def wall_ms(self) -> int:
        return self.env.wall_ms()

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel:
        return self.env.call_later(delay_ms, fn)

    def exchange(self, security: ListenerSecurity, mechanism: str, random_bytes: bytes) -> Exchange:
        return self._authenticators.exchange(security, mechanism, random_bytes)

    def answer_api_versions(
        self, listener: ListenerRoutes, request: ApiVersionsRequest, context: Context
    ) -> ApiVersionsResponse:
        """At once, for a client that has not authenticated: no ACL counts for it, and controllers may have none yet."""
        answer: ApiVersionsResponse = listener.routes[ApiKey.API_VERSIONS].handle(self, request, context)  # type: ignore[assignment]
        return answer

    def serves(self, listener: ListenerRoutes) -> bool:
        return self._dispatcher.serves(listener)

    def when_it_serves(self, fn: Callable[[], None]) -> Cancel:
        return self._dispatcher.when_it_serves(fn)

    def disconnected(self, connection: ClientConnection) -> None:
        self._connections.pop(connection, None)

    def refused_frame(self, connection: ClientConnection, reason: str) -> None:
        transport = connection.transport
        self.log_limited("warning", "frame-refused", listener=transport.listener, peer=transport.peer_host, why=reason)

    def log_directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        if self._broker is not None:
            self._broker.replicas.directories.failed(directory, error)

    def directory_replaced(self, path: str, error: OSError) -> None:
        """What this node has opened is not at this path any more: its next start would not find it."""
        if path == self.config.metadata_log_dir:
            self.env.stop(1, f"the directory of the metadata log, {path}, is not there any more: {error}")
            return
        for directory in self._directories:
            if directory.path == path:
                self.log_directory_failed(directory, error)

    def log_start_moved(self, key: PartitionKey) -> None:
        if self._broker is not None:
            self._broker.replicas.log_start_moved(key)

    def read_failed(self, path: str, error: OSError) -> None:
        """A file could not be read while an answer that names a region of it was sent."""
        if path.startswith(f"{self.config.metadata_log_dir}/{METADATA_TOPIC}-"):
            self.env.stop(1, f"the metadata log cannot be read: {error}")
        elif self._broker is not None:
            self._broker.replicas.directories.file_failed(path, error)

    def serve(self, route: ApiRoute, request: Any, context: Context) -> Reply[Any]:
        """The answer to a request within another one, which is not held."""
        return self._dispatcher.serve(route, request, context)

    # the quorum's listener: an active controller first, so that it never knows less than the broker of this process. An
    # inactive one has no image of its own: it reads the publisher's

    def on_snapshot(self, records: list[Message], offset: int, epoch: int) -> None:
        self._publisher.on_snapshot(records, offset, epoch)
        if self._controller is not None:
            self._controller.follow(self._publisher.image)
        self._own_image.applied()

    def on_commit(self, batches: list[CommittedBatch]) -> None:
        if self.commit_latency is not None and self._controller is not None and self._controller.is_active:
            latency_ms = self.env.wall_ms() - batches[0].append_time_ms
            self.commit_latency.add(self.env.now_ms(), latency_ms)
        leads = self._controller is not None and self._controller.is_active
        if leads:
            self._controller_commits(batches)
        self._publisher.on_commit(batches)
        if not leads:
            self._controller_commits(batches)
        self._own_image.applied()

    def _controller_commits(self, batches: list[CommittedBatch]) -> None:
        if self._controller is not None:
            self._controller.on_commit(batches)
            self.every_broker.brokers_changed()

    def on_leader_change(self, leader_id: int, epoch: int, is_me: bool) -> None:
        self.controllers_seen += leader_id != NO_NODE
        self._leave_former_controller()
        if self._controller is not None:
            self._controller.on_leader_change(leader_id, epoch, is_me)
            if not self._controller.is_active:
                self._controller.follow(self._publisher.image)
        if self._registration is not None:
            self._registration.leader_changed()

    def _leave_former_controller(self) -> None:
        """What was asked of a controller that is no longer active is asked of its successor, not waited for."""
        endpoint = self.controller_endpoint()
        if endpoint is None:
            return
        if self._former_controller not in (None, endpoint):
            self.env.disconnect(self._former_controller)
        self._former_controller = endpoint

    def _caught_up(self) -> None:
        self._publisher.publish()
        self._dispatcher.caught_up()

    # the publisher's listener

    def _applied(self) -> None:
        if 0 < self.quorum.high_watermark <= self.image.offset + 1:
            # everything that was committed when this node started is applied
            self._dispatcher.acls_are_loaded()
            if self._broker is None:
                self._publisher.publish()
        self.log_levels.configure(server_value(self.image, self.config, "log.level"))
        self._quotas_changed()
        if self._registration is not None:
            self._registration.metadata_applied()
        if self._broker is not None:
            self._broker.on_metadata_applied()

    def _quotas_changed(self) -> None:
        if not self.image.client_quotas.by_entity:
            self.client_quotas = None
        elif self.client_quotas is None:
            from heirlog.node.client_quotas import ClientQuotaManager

            self.client_quotas = ClientQuotaManager(
                lambda: self.image.client_quotas,
                self.env.now_ms,
                self._now_ns,
                self.config.int("quota.window.num"),
                self.config.int("quota.window.size.seconds") * 1000,
                lambda response, is_full: self.broker.fetch_sessions.not_sent(response, is_full),
                self._may_be_node,
            )

    def _may_be_node(self, principal: str, host: str) -> bool:
        return self.authorizer is None or self.authorizer.may(
            principal, kafka_host(host), AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def _published(self, image: Image, changed: ImageJournal) -> None:
        self._stores.follow(image, changed)
        if self._broker is not None:
            self._broker.on_image(image, changed)
