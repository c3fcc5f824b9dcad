"""Layer `broker`: events become calls to a real `Partition` with a real log and the real `AlterPartitionSender`.

Time starts at 0 when the broker becomes leader. `alter_partition_response` takes the part of the controller and answers
the proposal in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from heirlog.broker.alter_partition_sender import AlterPartitionSender
from heirlog.broker.delayed_operations import DelayedOperations
from heirlog.broker.followers import NEVER_MS, RegisteredBrokers
from heirlog.broker.isr import CommittedPartitionState, IsrProposal, PendingExpandIsr
from heirlog.broker.leader_epochs import end_of
from heirlog.broker.list_offsets import offset_for
from heirlog.broker.partition import FetchStart, Partition
from heirlog.broker.produce import ProduceHandler
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.context import CLOSE, NO_ANSWER, Context
from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.image import TOPIC_RESOURCE, Image
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import RECOVERED, RECOVERING, BrokerRegistration, Ids, PartitionRegistration, TopicImage
from heirlog.pending import Pending
from heirlog.protocol.batch import encode_batch, walk
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import AlterPartitionResponse, ProduceRequest, ProduceResponse
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint, LeaderEpoch, PartitionEpoch, Uuid
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import LastStop, at_once
from heirlog.testing.conformance.body import ManualEnv
from heirlog.testing.conformance.vocabulary import UnknownName

TOPIC_ID: Final = Uuid(b"topic-id-of-foo!")
CONTROLLER: Final = Endpoint("controller", 9093)
_PRODUCE_VERSION: Final = 9
_PRODUCE_TIMEOUT_MS: Final = 30_000
RECOVERY_STATES: Final = {RECOVERED: "RECOVERED", RECOVERING: "RECOVERING"}


def batch(count: int, base_offset: int = 0, leader_epoch: int = -1) -> bytearray:
    records = [(None, b"value-%d" % number, (), 1_700_000_000_000 + number) for number in range(count)]
    return encode_batch(records, base_offset=base_offset, leader_epoch=leader_epoch)


def ids(brokers: Iterable[int]) -> Ids:
    return tuple(BrokerId(broker) for broker in brokers)


def registered(broker: int, epoch: int) -> BrokerRegistration:
    return BrokerRegistration(
        id=BrokerId(broker), epoch=BrokerEpoch(epoch), incarnation_id=Uuid(bytes(16)), fenced=False
    )


def static_config() -> StaticConfig:
    return parse_static(
        {
            "process.roles": "broker",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "100@controller:9093",
            "listeners": "PLAINTEXT://broker:9092",
            "log.dirs": "/data",
        }
    )


def open_log(env: ManualEnv) -> Log:
    path = "/data/foo-0"
    env.files.mkdirs(path)
    return at_once(
        load_log(
            env.files,
            path,
            "foo",
            0,
            LogConfig(),
            LastStop(),
            wall_ms=env.wall_ms(),
        )
    )


def fill(log: Log, end_offset: int, leader_epoch: int) -> None:
    """Append single-record batches of `leader_epoch` up to `end_offset`."""
    while log.log_end_offset < end_offset:
        log.append_as_follower(batch(1, log.log_end_offset, leader_epoch), leader_epoch)


class _OnePartition:
    """What `ProduceHandler` needs of a broker's replicas; here the broker has one."""

    def __init__(self, scenario: ReplicaScenario) -> None:
        self._scenario = scenario
        self.delayed = scenario.delayed

    def partitions_named(self, name: str) -> dict[int, Partition]:
        return {0: self._scenario.partition}

    def log_grew(self, partition: Partition, watermark: int, wall_ms: int) -> None:
        """Its followers come with the file's next event."""


def _produce_error(response: ProduceResponse) -> str:
    return ErrorCode(response.responses[0].partition_responses[0].error_code).name


class ReplicaScenario:
    def __init__(self, setup: dict[str, Any]) -> None:
        self.env = ManualEnv()
        self.setup = setup
        self.me = setup["localBroker"]
        replicas = setup["replicas"]
        self.min_isr_config = setup.get("minInsyncReplicas", 1)
        epochs = {int(b): e for b, e in setup.get("brokerEpochs", {}).items()}
        brokers: dict[BrokerId, BrokerRegistration] = {
            BrokerId(b): registered(b, epochs.get(b, 100 + b)) for b in sorted({*replicas, *epochs})
        }
        self.registered_brokers = RegisteredBrokers(BrokerId(self.me), brokers)
        self.brokers = brokers
        self.registered_brokers.broker_epoch = BrokerEpoch(epochs.get(self.me, 100 + self.me))
        self.sent: list[IsrProposal] = []
        self.sent_total = 0
        self.sender = AlterPartitionSender(
            self.env,
            lambda: CONTROLLER,
            self.registered_brokers,
            1000,
            lambda proposal, answer: self._answered(proposal, answer),
        )
        self.state = PartitionRegistration(
            replicas=ids(replicas),
            isr=ids(setup.get("isr", replicas)),
            leader=BrokerId(self.me if setup.get("role", "leader") == "leader" else setup["leader"]),
            leader_epoch=LeaderEpoch(setup["leaderEpoch"]),
            partition_epoch=PartitionEpoch(setup.get("partitionEpoch", 1)),
            leader_recovery_state=1 if setup.get("leaderRecoveryState") == "RECOVERING" else 0,
        )
        self.partition = self._partition()
        self.produce_error: str | None = None
        """Of an acks=all produce that ended since the previous step."""
        self.delayed = DelayedOperations(self.env)
        self.handler = ProduceHandler(self.env, cast(ReplicaManager, _OnePartition(self)))
        self.image_lags = False
        self.start: FetchStart | None = None
        """Where it began to follow."""
        if setup.get("role", "leader") == "leader":
            self.partition.become_leader(self.state, self.min_isr, 0)
            self.partition.leader_epoch_start_offset = setup.get("leaderEpochStartOffset", 0)
            self._set_followers()
        else:
            self.partition.become_follower(self.state, self.min_isr)
            self._start_following()

    def _start_following(self) -> None:
        cut_at = self.partition.watermark_to_cut_to
        if cut_at is not None:
            self.partition.truncate_to(cut_at)
        self.start = self.partition.fetch_position()

    def _partition(self) -> Partition:
        setup = self.setup
        log = open_log(self.env)
        cache = setup.get("epochCache")
        if cache is None:
            fill(log, setup["logEndOffset"], max(setup["leaderEpoch"] - 1, 0))
        else:
            self._fill_epochs(log, cache)
        return Partition(
            TOPIC_ID,
            "foo",
            0,
            log,
            self.registered_brokers,
            high_watermark=setup["highWatermark"],
            lag_max_ms=setup.get("replicaLagTimeMaxMs", 30_000),
        )

    def _fill_epochs(self, log: Any, cache: list[dict[str, int]]) -> None:
        end = self.setup["logEndOffset"]
        if not cache:
            fill(log, end, 0)
            log.epochs.clear()
            return
        starts = [entry["start"] for entry in cache[1:]] + [end]
        fill(log, cache[0]["start"], max(cache[0]["epoch"] - 1, 0))
        for entry, upto in zip(cache, starts, strict=True):
            fill(log, upto, entry["epoch"])
        # the file's entries and no other: not that of the records before the first
        log.epochs.clear()
        for entry in cache:
            log.epochs.assign(entry["epoch"], entry["start"])
        log.increment_log_start(self.setup.get("logStartOffset", 0))

    def _set_followers(self) -> None:
        for given in self.setup.get("followers", []):
            follower = self.partition.followers[BrokerId(given["id"])]
            if "leo" in given:
                follower.log_end_offset = given["leo"]
            if given.get("epochKnown", True):
                follower.broker_epoch = given.get("epoch", self.brokers[follower.broker_id].epoch)
            known = self.brokers[follower.broker_id]
            state = given.get("state")
            self.brokers[follower.broker_id] = replace(
                known,
                fenced=state == "fenced",
                in_controlled_shutdown=state in ("shutting_down", "controlled_shutdown"),
            )

    @property
    def min_isr(self) -> int:
        image = Image()
        image.set_topic(TOPIC_ID, TopicImage("foo", TOPIC_ID))
        image.set_config(TOPIC_RESOURCE, "foo", "min.insync.replicas", str(self.min_isr_config))
        return min_isr_of(image, static_config(), TOPIC_ID, self.state)

    # events

    def play(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Returns everything that has a value after this event."""
        self.sent = []
        handler: Callable[[dict[str, Any]], dict[str, Any]] | None = getattr(self, f"_on_{event['type']}", None)
        if handler is None:
            raise UnknownName(f"event {event['type']} is not implemented")
        self.produce_error = None
        observed = handler({name: value for name, value in event.items() if name != "type"})
        # after a change of a high watermark or of the leadership the waiting requests are woken
        self.delayed.produce.check_and_complete(self.partition.key)
        return {**self._common(), **observed}

    def _common(self) -> dict[str, Any]:
        partition = self.partition
        isr = partition.isr
        return {
            "highWatermark": partition.high_watermark,
            "logEndOffset": partition.log.log_end_offset,
            # sets, shown in ascending order
            "isr": sorted(isr.committed),
            "maximalIsr": sorted(isr.maximal),
            "state": "Committed"
            if isinstance(isr, CommittedPartitionState)
            else "PendingExpand"
            if isinstance(isr, PendingExpandIsr)
            else "PendingShrink",
            "partitionEpoch": partition.partition_epoch,
            "leaderEpoch": partition.leader_epoch,
            "failures": partition.failed_isr_updates,
            "sent": self._last_sent(),
            "sentCount": self.sent_total,
            # a leader never holds another one: what it was elected with is settled by leading
            "localRecoveryState": RECOVERY_STATES[RECOVERED],
            "produceError": self.produce_error,
            "pending": True if len(self.delayed.produce) else None,
        }

    def _last_sent(self) -> dict[str, Any] | None:
        """The AlterPartition that left for the controller since the previous step."""
        if not self.sent:
            return None
        asked = self.env.sent[-1].request.topics[0].partitions[0]
        return {
            "newIsr": [{"id": member.broker_id, "epoch": member.broker_epoch} for member in asked.new_isr_with_epochs],
            "partitionEpoch": asked.partition_epoch,
            "leaderRecoveryState": asked.leader_recovery_state,
        }

    def _propose(self, proposal: IsrProposal | None) -> None:
        if proposal is None:
            return
        if self.sender.submit(proposal):
            self.sent.append(proposal)
            self.sent_total += 1
        else:
            self.partition.not_attempted(proposal)

    def _on_follower_fetch(self, event: dict[str, Any]) -> dict[str, Any]:
        partition, broker = self.partition, event.get("broker", self._another())
        known = partition.followers.get(BrokerId(broker))
        # an honest follower continues where its log ends
        fetch_offset = event.get("fetchOffset", 0 if known is None else max(0, known.log_end_offset))
        epoch = event["brokerEpoch"] if "brokerEpoch" in event else self.brokers[BrokerId(broker)].epoch
        leader_epoch = event.get("currentLeaderEpoch", -1)
        if "metadataEpochAtFetch" in event:
            self._register(broker, event["metadataEpochAtFetch"])
        observed: dict[str, Any] = {"divergingEpoch": None, "error": "NONE"}
        try:
            partition.check_leader_epoch(leader_epoch)
            partition.check_follower(broker, epoch, leader_epoch)
            last_fetched_epoch = event.get("lastFetchedEpoch", -1)
            if last_fetched_epoch >= 0:
                diverging = partition.diverging_epoch(fetch_offset, last_fetched_epoch)
                if diverging is not None:
                    observed["divergingEpoch"] = {"epoch": diverging[0], "endOffset": diverging[1]}
                    return observed
            self._propose(partition.follower_fetched(broker, fetch_offset, 0, epoch, self.env.now_ms()))
        except KafkaError as error:
            observed["error"] = error.code.name
        finally:
            if "metadataEpochAfter" in event:
                self._register(broker, event["metadataEpochAfter"])
        follower = partition.followers.get(BrokerId(broker))
        if follower is not None:
            observed["followerLeo"] = follower.log_end_offset
            observed["followerLastCaughtUpMs"] = max(0, follower.last_caught_up_ms)
            observed["followerEpoch"] = follower.broker_epoch
            assert follower.last_caught_up_ms >= 0 or follower.last_caught_up_ms == NEVER_MS
        return observed

    def _another(self) -> BrokerId:
        """Of an event that names no broker."""
        return next(replica for replica in self.state.replicas if replica != self.me)

    def _register(self, broker: int, epoch: int) -> None:
        self.brokers[BrokerId(broker)] = registered(broker, epoch)

    def _on_append(self, event: Mapping[str, Any]) -> dict[str, Any]:
        data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(batch(event["records"])))
        request = ProduceRequest(
            acks=event["acks"],
            timeout_ms=event.get("timeoutMs", _PRODUCE_TIMEOUT_MS),
            topic_data=[ProduceRequest.TopicProduceData(name="foo", partition_data=[data])],
        )
        context = Context(_PRODUCE_VERSION, "client", "host", "PLAINTEXT", object())
        given = self.handler.produce(request, context)
        if given is NO_ANSWER:
            return {"error": "NONE", "pending": False, "response": None}
        if given is CLOSE:
            # nothing but the closed connection tells the producer
            return {"pending": False, "response": None}
        if isinstance(given, Pending):
            given.then(self._produced)
            return {"error": "NONE", "pending": not given.done, "produceError": self.produce_error}
        return {"error": _produce_error(given), "pending": False}

    def _produced(self, response: ProduceResponse) -> None:
        self.produce_error = _produce_error(response)

    def _on_complete_produce(self, event: dict[str, Any]) -> dict[str, Any]:
        self.partition.isr = CommittedPartitionState(ids(event.get("maximalIsr", self.partition.isr.maximal)))
        required = event.get("requiredOffset", self.partition.log.log_end_offset)
        outcome = self.partition.outcome_of(required, self.partition.leader_epoch)
        return {"produceError": None if outcome is None else outcome.name}

    def _on_consumer_fetch(self, event: Mapping[str, Any]) -> dict[str, Any]:
        offset = event["fetchOffset"]
        try:
            found = self.partition.log.read(offset, 1 << 20, self.partition.high_watermark)
        except KafkaError as error:
            return {"error": error.code.name}
        # the first batch may begin before the offset asked for
        counts = [
            header.next_offset - max(header.base_offset, offset)
            for region in found.regions
            for _, header in walk(region.read())
        ]
        return {"records": sum(counts), "error": "NONE"}

    def _on_list_offsets(self, event: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found = offset_for(self.partition, event["timestamp"], -1, False)
        except KafkaError as error:
            return {"error": error.code.name}
        return {"offset": found.offset, "error": "NONE"}

    def _on_offset_for_leader_epoch(self, event: dict[str, Any]) -> dict[str, Any]:
        try:
            leader_epoch = event.get("leaderEpoch", self.partition.leader_epoch)
            answer = end_of(self.partition, leader_epoch, event.get("currentLeaderEpoch", -1))
        except KafkaError as error:
            return {"error": error.code.name}
        return {"error": "NONE", "leaderEpoch": answer.leader_epoch, "endOffset": answer.end_offset}

    def _on_alter_partition_response(self, event: dict[str, Any]) -> dict[str, Any]:
        sent = self.env.take("alter-partition")
        asked = sent.request.topics[0].partitions[0]
        answer = AlterPartitionResponse.PartitionData(
            partition_index=0,
            error_code=ErrorCode[event["error"]],
            leader_id=self.me,
            leader_epoch=self.partition.leader_epoch,
            isr=event.get("isr", [member.broker_id for member in asked.new_isr_with_epochs]),
            partition_epoch=event.get("partitionEpoch", asked.partition_epoch + 1),
        )
        self.image_lags = event.get("imageLags", False)
        topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_ID, partitions=[answer])
        sent.on_result(AlterPartitionResponse(topics=[topic]))
        return {}

    def _answered(self, proposal: IsrProposal, answer: AlterPartitionResponse.PartitionData) -> None:
        if answer.error_code != ErrorCode.NONE:
            self._propose(self.partition.proposal_failed(proposal, ErrorCode(answer.error_code)))
            return
        self.partition.proposal_committed(
            proposal,
            isr=ids(answer.isr),
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
            image_has_it=not self.image_lags,
            now_ms=self.env.now_ms(),
        )

    def _on_metadata_update(self, event: dict[str, Any]) -> dict[str, Any]:
        names = {
            "isr": "isr",
            "leader": "leader",
            "leaderEpoch": "leader_epoch",
            "partitionEpoch": "partition_epoch",
            "replicas": "replicas",
            "adding": "adding",
        }
        changes: dict[str, Any] = {
            names[name]: tuple(value) if isinstance(value, list) else value for name, value in event.items()
        }
        self.state = self.state._replace(**changes)
        for broker in self.state.replicas:
            self.brokers.setdefault(broker, registered(broker, 100 + broker))
        if self.state.leader == self.me:
            self.partition.become_leader(self.state, self.min_isr, self.env.now_ms())
        else:
            self.partition.become_follower(self.state, self.min_isr)
            self._start_following()
        return {}

    def _on_metadata_update_broker(self, event: dict[str, Any]) -> dict[str, Any]:
        broker = BrokerId(event.get("broker", self._another()))
        self.brokers[broker] = replace(self.brokers[broker], fenced=event["fenced"])
        self.partition.advance_high_watermark(self.env.now_ms())
        return {}

    def _on_advance_clock(self, event: dict[str, Any]) -> dict[str, Any]:
        self.env.advance(event["ms"])
        return {}

    def _on_isr_shrink_check(self, event: dict[str, Any]) -> dict[str, Any]:
        self._propose(self.partition.check_lag(self.env.now_ms()))
        return {}

    def _on_read_gauges(self, event: dict[str, Any]) -> dict[str, Any]:
        return {"underMinIsr": int(self.partition.is_under_min_isr), "atMinIsr": int(self.partition.is_at_min_isr)}

    def _on_become_leader(self, event: dict[str, Any]) -> dict[str, Any]:
        self.state = self.state._replace(leader=BrokerId(self.me))
        self.partition.become_leader(self.state, self.min_isr, self.env.now_ms())
        return {}

    def _on_become_follower(self, event: dict[str, Any]) -> dict[str, Any]:
        if self.start is None:
            raise UnknownName("event become_follower of a replica that leads; metadata_update names another leader")
        fetch = {
            "fetchOffset": self.start.fetch_offset,
            "lastFetchedEpoch": self.start.last_fetched_epoch,
            "currentLeaderEpoch": self.partition.leader_epoch,
        }
        return {"fetch": fetch, "truncateTo": self.partition.log.log_end_offset}

    def _on_fetch_response(self, event: dict[str, Any]) -> dict[str, Any]:
        partition = self.partition
        if self.start is None:
            raise UnknownName("event fetch_response of a replica that leads")
        observed: dict[str, Any] = {}
        diverging = event.get("divergingEpoch")
        if diverging is not None:
            epoch, end_offset = diverging.get("epoch", 0), diverging.get("endOffset", 0)
            complete = partition.truncate_for(epoch, end_offset, self.start.fetch_offset)
            observed["truncationComplete"] = complete
            observed["truncateTo"] = partition.log.log_end_offset
        elif event.get("records"):
            records = batch(event["records"], partition.log.log_end_offset, partition.leader_epoch)
            partition.append_from_leader(records, partition.leader_epoch)
        if "highWatermark" in event:
            partition.follow(event["highWatermark"], 0)
        following: FetchStart = partition.fetch_position()
        observed["next"] = {
            "fetchOffset": following.fetch_offset,
            "lastFetchedEpoch": following.last_fetched_epoch,
        }
        return observed
