"""Creates topics that do not exist and that a client or coordinator needs: their configuration, and the request.

An ordinary topic gets the controller's defaults. `__consumer_offsets` gets the same as on Kafka: its own configurations
for partitions and replicas, compaction, and small segments. With fewer brokers than `offsets.topic.replication.factor`
the controller refuses it, as on Apache Kafka: offsets that should have three replicas must not start with one. `heirlog
up` writes a factor that fits its cluster. `__heirlog_recoveries` (`broker/loss_reports.py`) is similar, with one
partition. `__transaction_state` has configurations of its own (`transaction.state.log.*`), and so has
`__share_group_state` (`share.coordinator.state.topic.*`), which is not compacted: its coordinators delete what is old.

Clients ask repeatedly for topics that cannot be created: the reason is logged when it is new, and once a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.topic_name import OFFSETS_TOPIC, RECOVERIES_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from heirlog.node.forwarding import Forwarder
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest, CreateTopicsResponse

CONTROLLER_DEFAULT = -1
"""num.partitions and default.replication.factor."""
SEGMENT_BYTES_MIN = 1_048_576
"""The least that segment.bytes of a topic may be."""

CREATE_TOPICS_VERSION = 7
LOG_AGAIN_MS = 60_000
LAST_ERRORS_MAX = 1000
"""Limit of the names remembered for that, because clients choose them."""
WAITING_MAX = 1000
"""Limit of requests that wait for one topic; a further one is answered at once."""
ASKED_MAX = 1000
"""Limit of names in one request to the controller: for more, clients ask again."""

Topic = CreateTopicsRequest.CreatableTopic


def missing_topic(config: StaticConfig, name: str) -> CreateTopicsRequest.CreatableTopic:
    if name == TRANSACTIONS_TOPIC:
        own = {
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.int("transaction.state.log.min.isr")),
            "unclean.leader.election.enable": "false",
        }
        return _internal(
            name,
            config.int("transaction.state.log.num.partitions"),
            config.int("transaction.state.log.replication.factor"),
            config.int("transaction.state.log.segment.bytes"),
            own,
        )
    if name in (OFFSETS_TOPIC, RECOVERIES_TOPIC):
        return _internal(
            name,
            1 if name == RECOVERIES_TOPIC else config.int("offsets.topic.num.partitions"),
            config.int("offsets.topic.replication.factor"),
            config.int("offsets.topic.segment.bytes"),
            {"compression.type": "producer"},
        )
    if name == SHARE_STATE_TOPIC:
        own = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.int("share.coordinator.state.topic.min.isr")),
            "retention.bytes": "-1",
            "retention.ms": "-1",
        }
        return _internal(
            name,
            config.int("share.coordinator.state.topic.num.partitions"),
            config.int("share.coordinator.state.topic.replication.factor"),
            config.int("share.coordinator.state.topic.segment.bytes"),
            own,
        )
    return Topic(name=name, num_partitions=CONTROLLER_DEFAULT, replication_factor=CONTROLLER_DEFAULT)


def _internal(
    name: str, partitions: int, replication_factor: int, segment_bytes: int, configs: Mapping[str, str]
) -> CreateTopicsRequest.CreatableTopic:
    values = {"cleanup.policy": "compact", "segment.bytes": str(max(SEGMENT_BYTES_MIN, segment_bytes)), **configs}
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=values[key]) for key in sorted(values)],
    )


def _give_up(pending: Pending[bool], waiting: list[Pending[bool]]) -> None:
    if not pending.done:
        waiting.remove(pending)
        pending.complete(False)


class AutoTopicCreationManager:
    """Asks the controller, once at a time for each name."""

    def __init__(self, env: Env, config: StaticConfig, forwarder: Forwarder) -> None:
        self._env = env
        self._config = config
        self._forwarder = forwarder
        self._asked: dict[str, list[Pending[bool]]] = {}
        """With those that wait for the answer."""
        self._last_errors: dict[str, tuple[int, int]] = {}
        """Error code and time of the last line about a name."""

    def create(self, names: list[str], context: Context | None = None) -> None:
        """context: that of the client that needs the topics and must be allowed to create them; None: this broker."""
        wanted = sorted(set(names) - self._asked.keys())[: ASKED_MAX - len(self._asked)]
        if not wanted:
            return
        self._asked.update((name, []) for name in wanted)
        request = CreateTopicsRequest(
            topics=[missing_topic(self._config, name) for name in wanted],
            timeout_ms=self._config["request.timeout.ms"],
        )

        def answered(response: CreateTopicsResponse) -> None:
            waiting = [each for name in wanted for each in self._asked.pop(name)]
            for topic in response.topics:
                self._log_refusal(topic.name, topic.error_code, topic.error_message)
            for each in waiting:
                each.complete(True)

        def refused(code: ErrorCode) -> CreateTopicsResponse:
            return CreateTopicsResponse(
                topics=[CreateTopicsResponse.CreatableTopicResult(name=name, error_code=code) for name in wanted]
            )

        self._forwarder.forward(request, CREATE_TOPICS_VERSION, refused, context).then(answered)

    def created(self, name: str, wait_ms: int | None = None) -> Pending[bool]:
        """Create a topic, and complete once the controller has answered, or after the wait. If it has created the
        topic, this broker's image holds it then (`read_your_writes.py`)."""
        self.create([name])
        waiting = self._asked.get(name)
        if waiting is None or len(waiting) >= WAITING_MAX:
            # there is no room for one more request, or it is answered already
            pending: Pending[bool] = Pending()
            pending.complete(True)
            return pending
        pending = Pending(lambda: waiting.remove(pending))
        waiting.append(pending)
        if wait_ms is not None:
            self._env.call_later(wait_ms, partial(_give_up, pending, waiting))
        return pending

    def _log_refusal(self, name: str, code: int, why: str | None) -> None:
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._last_errors.pop(name, None)
            return
        now_ms = self._env.now_ms()
        before = self._last_errors.get(name)
        if before is not None and before[0] == code and now_ms - before[1] < LOG_AGAIN_MS:
            return
        if len(self._last_errors) >= LAST_ERRORS_MAX:
            self._last_errors.clear()
        self._last_errors[name] = code, now_ms
        self._env.log("warning", "topic-not-created", topic=name, code=code, why=why)
