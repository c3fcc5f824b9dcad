"""Layer `recovery`: the unclean recovery manager of a real `Controller`, whose requests the file answers.

The setup's partitions are appended with the first event, so that the reaction of the controller is part of that step.
Brokers that a file names only in an event are registered, fenced, with that event.

The value of `action`, first match:

    elect    a leader was elected by this event        query   replicas were asked since the previous step; a recovery
                                                               that restarts asks all, also by requests in flight
    error    an operator's election was refused        wait    none of these, and a recovery is in progress
    none     none of these, or an answer that is not expected any more

Each broker has at most one request in flight. Therefore the number of requests for a set of partitions is counted on a
second instance, which has played the same events and gets an answer to each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from heirlog.controller.controller import Controller
from heirlog.controller.elect_leaders import (
    DESIGNATION_TYPE,
    LONGEST_LOG_AGGRESSIVE_TYPE,
    LONGEST_LOG_BALANCED_TYPE,
    PREFERRED_TYPE,
    RECOVERY_TYPES_VERSION,
    UNCLEAN_TYPE,
)
from heirlog.controller.recovery.manager import AGGRESSIVE_WINDOW_MS
from heirlog.controller.recovery.open_recoveries import OpenRecovery
from heirlog.controller.recovery.sender import CHANNEL
from heirlog.controller.recovery.strategy import STRATEGY, TIMEOUT, UNCLEAN_ELECTION_ENABLE, strategy_of
from heirlog.env import SendFailure
from heirlog.metadata.apply import image_of_snapshot
from heirlog.metadata.basis import Basis
from heirlog.metadata.image import ELR_VERSION, METADATA_VERSION, TOPIC_RESOURCE
from heirlog.metadata.state import PartitionRegistration
from heirlog.metadata.survey import at_once
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ElectLeadersRequest, ElectLeadersResponse, GetReplicaLogInfoResponse
from heirlog.protocol.records import ConfigRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.testing.conformance.body import Sent
from heirlog.testing.conformance.controller_layer import CLUSTER_ID, ControllerScenario, Observed
from heirlog.testing.conformance.setup_records import CONTROLLER_ID, Members, broker_record, directory, partition_record
from heirlog.testing.conformance.vocabulary import UnknownName

_TOPIC: Final = "foo"
_TOPIC_ID: Final = Uuid(b"topic of recover")
_TOOLS: Final = {
    "PREFERRED": PREFERRED_TYPE,
    "UNCLEAN": UNCLEAN_TYPE,
    "LONGEST_LOG_BALANCED": LONGEST_LOG_BALANCED_TYPE,
    "LONGEST_LOG_AGGRESSIVE": LONGEST_LOG_AGGRESSIVE_TYPE,
    "DESIGNATION": DESIGNATION_TYPE,
}
_ELSEWHERE: Final = BrokerId(-1)


class RecoveryScenario:
    """One scenario at work. `play` returns what is observed after one event."""

    def __init__(self, setup: Members) -> None:
        self._setup = setup
        self._replicas: list[int] = setup.get("replicas", [1, 2, 3])
        self._unfenced: list[int] = setup.get("unfencedBrokers", self._replicas)
        self._epochs: Members = setup.get("brokerEpochs", {})
        named = {*self._replicas, *self._unfenced, *(int(broker) for broker in self._epochs)}
        self._scenario = ControllerScenario(
            {
                "features": {METADATA_VERSION: 29, ELR_VERSION: 1},
                "config": {"static": {TIMEOUT: str(setup["timeoutMs"])} if "timeoutMs" in setup else {}},
                "brokers": [self._broker(broker) for broker in sorted(named)],
            },
            manager=setup.get("managerEnabled", True),
        )
        self._begun = False
        self._played: list[Members] = []

    def _broker(self, number: int) -> Members:
        state = "unfenced" if number in self._unfenced else "fenced"
        return {"id": number, "epoch": self._epochs.get(str(number), 100 + number), "state": state}

    @property
    def _controller(self) -> Controller:
        return self._scenario.controller

    # -- steps --------------------------------------------------------------------------------------------------

    def play(self, event: Members) -> Observed:
        observed = self._play(event)
        if "requestsPerBroker" in observed and self._setup.get("partitions", 1) > 1:
            observed["requestsPerBroker"] = self._twin().requests_per_broker(event)
        self._played.append(event)
        return observed

    def requests_per_broker(self, event: Members) -> int:
        """The number of requests after `event`, if each is answered. This instance cannot be used afterwards."""
        self._play(event)
        asked: dict[int, int] = {}
        while self._in_flight():
            sent = self._in_flight()[0]
            asked[sent.request.broker_id] = asked.get(sent.request.broker_id, 0) + 1
            self._answer(sent, {"error": ErrorCode.NOT_LEADER_OR_FOLLOWER.name})
        return max(asked.values())

    def _twin(self) -> RecoveryScenario:
        twin = RecoveryScenario(self._setup)
        for event in self._played:
            twin._play(event)
        return twin

    def _play(self, event: Members) -> Observed:
        handler: Callable[[Members], Observed] | None = getattr(self, f"_on_{event['type']}", None)
        if handler is None:
            raise UnknownName(f"event {event['type']} is not implemented")
        before, memory = self._in_flight(), self._memory()
        self._written: list[Any] = []
        self._begin()
        observed = handler(event)
        self._scenario.env.advance(0)
        self._written += self._scenario.commit()
        # brokers come and go only by events of the file, not because no heartbeat comes between them
        self._controller.sessions.clear()
        asked = [sent for sent in self._in_flight() if not any(sent is old for old in before)]
        if self._memory() is not memory:
            asked += [sent for sent in before if self._is_waited_for(sent)]
        return observed | self._state_shown() | self._action(observed, asked)

    def _begin(self) -> None:
        """Append the partitions of the setup."""
        if self._begun:
            return
        self._begun = True
        self._controller.recovery.aggressive_window_ms = self._setup.get("aggressiveWindowMs", AGGRESSIVE_WINDOW_MS)
        configs = {}
        if "strategy" in self._setup:
            configs[STRATEGY] = self._setup["strategy"]
        if "uncleanLeaderElectionEnable" in self._setup:
            configs[UNCLEAN_ELECTION_ENABLE] = str(self._setup["uncleanLeaderElectionEnable"]).lower()
        records: list[Any] = [
            TopicRecord(name=_TOPIC, topic_id=_TOPIC_ID),
            *(_config(name, value) for name, value in configs.items()),
        ]
        for number in range(self._setup.get("partitions", 1)):
            records.append(partition_record(self._partition(number), _TOPIC_ID))
        self._written += self._scenario.append(records)

    def _partition(self, number: int) -> Members:
        setup = self._setup
        return {
            "partition": number,
            "replicas": self._replicas,
            "isr": setup.get("isr", []),
            "elr": setup.get("elr", []),
            "lastKnownElr": setup.get("lastKnownElr", []),
            "leader": setup.get("leader", -1),
            "leaderEpoch": setup.get("leaderEpoch", 7),
            "partitionEpoch": setup.get("partitionEpoch", 30),
        }

    def _action(self, observed: Observed, asked: Iterable[Sent]) -> Observed:
        elections = [
            record for record in self._written if isinstance(record, PartitionChangeRecord) and record.leader >= 0
        ]
        asked = list(asked)
        shown: Observed = {}
        if elections:
            shown["action"] = "elect"
        elif asked:
            shown["action"] = "query"
        elif observed.get("error", ErrorCode.NONE.name) != ErrorCode.NONE.name and not observed.pop("waits", False):
            shown["action"] = "error"
        elif observed.get("ignored") or not self._is_recovering():
            shown["action"] = "none"
        else:
            shown["action"] = "wait"
        if asked:
            shown["brokers"] = sorted({sent.request.broker_id for sent in asked})
            shown["requestsPerBroker"] = 1
            shown["partitionsPerRequestMax"] = max(
                sum(len(topic.partitions) for topic in sent.request.topic_partitions) for sent in asked
            )
        return shown

    def _memory(self) -> OpenRecovery | None:
        """What the manager knows of partition 0; another object after each new beginning."""
        return self._controller.recovery.open_recoveries.recoveries.get((_TOPIC_ID, 0))

    def _is_waited_for(self, sent: Sent) -> bool:
        """Whether an earlier request is still in flight, which a restarted recovery need not send again."""
        asks = self._controller.recovery.sender.is_asking(sent.request.broker_id, (_TOPIC_ID, 0))
        return asks and sent.request.broker_id in self._state().replicas

    def _is_recovering(self) -> bool:
        return any(
            recovery.began_ms is not None for recovery in self._controller.recovery.open_recoveries.recoveries.values()
        )

    def _state(self) -> PartitionRegistration:
        return self._scenario.image.partitions[_TOPIC_ID][0]

    def _state_shown(self) -> Observed:
        state, counts = self._state(), at_once(self._controller.recovery_counts())
        return {
            "leader": state.leader,
            "isr": list(state.isr),
            "elr": list(state.elr),
            "lastKnownElr": list(state.last_known_elr),
            "leaderEpoch": state.leader_epoch,
            "partitionEpoch": state.partition_epoch,
            "leaderRecoveryState": "RECOVERING" if state.leader_recovery_state else "RECOVERED",
            "strategy": strategy_of(self._scenario.image, self._scenario.static, _TOPIC).value,
            "metrics": {
                "unclean_recovery_partitions_count": counts.recovery_partitions,
                "manual_leader_election_required_partition_count": counts.manual_election_required,
                "unclean_recovery_finished_count": self._controller.elections[Basis.RECOVERED],
            },
        }

    # -- what the controller sees of time and of itself -----------------------------------------------------------

    def _on_evaluate(self, event: Members) -> Observed:
        if self._controller.recovery.enabled:
            self._controller.recovery.judge_all()
            self._controller.recovery.settle()
        else:
            # without a manager, elections that are owed are held when a controller begins
            self._fail_over()
        return {}

    def _on_advance_clock(self, event: Members) -> Observed:
        self._scenario.env.advance(event["ms"])
        return {}

    def _on_controller_failover(self, event: Members) -> Observed:
        self._fail_over()
        return {}

    def _fail_over(self) -> None:
        """Another controller with the same log: here the same one, which stops and becomes active again."""
        self._written += self._scenario.commit()
        epoch = self._controller.epoch
        self._controller.on_leader_change(_ELSEWHERE, epoch + 1, False)
        self._controller.on_leader_change(CONTROLLER_ID, epoch + 2, True)

    def _on_controller_restart(self, event: Members) -> Observed:
        """A new process, from a snapshot."""
        scenario, image = self._scenario, self._scenario.image
        scenario.commit()
        records, epoch = list(image.records()), self._controller.epoch
        self._controller.shutdown()
        scenario.controller = Controller(scenario.env, scenario.static, scenario.quorum, cluster_id=CLUSTER_ID)
        scenario.controller.recovery.aggressive_window_ms = self._setup.get("aggressiveWindowMs", AGGRESSIVE_WINDOW_MS)
        scenario.controller.follow(image_of_snapshot(records, image.offset, epoch))
        scenario.controller.on_leader_change(CONTROLLER_ID, epoch + 1, True)
        return {}

    def _on_recovery_lost(self, event: Members) -> Observed:
        """The manager loses its memory; no known defect of heirlog causes this."""
        self._controller.recovery.open_recoveries.recoveries.clear()
        self._controller.recovery.sender.stop()
        return {}

    def _on_resolve_strategy(self, event: Members) -> Observed:
        given = {name: event.get(name) for name in (UNCLEAN_ELECTION_ENABLE, STRATEGY)}
        self._written += self._scenario.append([_config(name, value) for name, value in given.items()])
        return {}

    # -- brokers ----------------------------------------------------------------------------------------------------

    def _on_heartbeat(self, event: Members) -> Observed:
        return self._asked({"type": "heartbeat", "broker": event["broker"]})

    def _on_broker_unfenced(self, event: Members) -> Observed:
        self._know([event["broker"]])
        return self._asked({"type": "heartbeat", "broker": event["broker"]})

    def _on_broker_fenced(self, event: Members) -> Observed:
        return self._asked({"type": "fence_broker", "broker": event["broker"]})

    def _on_broker_registered(self, event: Members) -> Observed:
        epoch = {"newBrokerEpoch": event["newBrokerEpoch"]} if "newBrokerEpoch" in event else {}
        self._asked({"type": "register_broker", "broker": event["broker"], **epoch})
        if event.get("unfenced", False):
            self._asked({"type": "heartbeat", "broker": event["broker"]})
        return {}

    def _asked(self, event: Members) -> Observed:
        """An event of the controller layer; its records count as written by this step."""
        self._scenario.play(event)
        self._written += self._scenario.written
        return {}

    def _know(self, brokers: Iterable[int]) -> None:
        unknown = [broker for broker in brokers if BrokerId(broker) not in self._scenario.image.brokers]
        if unknown:
            self._scenario.append([broker_record(self._broker(broker)) for broker in unknown])

    def _on_reassigned(self, event: Members) -> Observed:
        """As the log says when a reassignment has ended."""
        state = self._state()
        replicas = event.get("replicas", [*state.replicas])
        self._know(replicas)
        record = PartitionRecord(
            topic_id=_TOPIC_ID,
            partition_id=0,
            replicas=replicas,
            isr=[member for member in state.isr if member in replicas],
            leader=state.leader,
            leader_epoch=event.get("leaderEpoch", state.leader_epoch + 1),
            partition_epoch=state.partition_epoch + 1,
            directories=[directory(replica, 0) for replica in replicas],
            eligible_leader_replicas=[member for member in state.elr if member in replicas],
            last_known_elr=[member for member in state.last_known_elr if member in replicas],
        )
        self._written += self._scenario.append([record])
        return {}

    # -- answers ----------------------------------------------------------------------------------------------------

    def _in_flight(self) -> list[Sent]:
        return [sent for sent in self._scenario.env.sent if sent.channel == CHANNEL]

    def _on_send_failed(self, event: Members) -> Observed:
        sent = self._newest(event["broker"])
        if sent is None:
            return {"ignored": True}
        self._scenario.env.sent.remove(sent)
        sent.on_result(SendFailure("disconnected", "as the scenario says"))
        return {}

    def _on_log_info_response(self, event: Members) -> Observed:
        """Every request that waits at the broker gets it, once per partition."""
        broker = BrokerId(event["broker"])
        asked: set[int] = set()
        while (sent := self._newest(broker)) is not None:
            partitions = [partition for topic in sent.request.topic_partitions for partition in topic.partitions]
            if asked.intersection(partitions):
                break
            asked |= set(partitions)
            self._answer(sent, event)
        known = self._controller.recovery.open_recoveries.recoveries.values()
        listened_to = bool(asked) and any(broker in recovery.answers for recovery in known)
        return {} if listened_to else {"ignored": True}

    def _newest(self, broker: int) -> Sent | None:
        """The last request to it: an older one was asked by a controller that is gone."""
        return next((sent for sent in reversed(self._in_flight()) if sent.request.broker_id == broker), None)

    def _answer(self, sent: Sent, event: Members) -> None:
        self._scenario.env.sent.remove(sent)
        broker = BrokerId(sent.request.broker_id)
        registered = self._scenario.image.brokers.get(broker)
        epoch = -1 if registered is None else registered.epoch
        if "brokerEpoch" in event:
            epoch = self._scenario.epochs.meant(broker, event["brokerEpoch"])
        sent.on_result(
            GetReplicaLogInfoResponse(
                broker_epoch=epoch,
                topic_partition_log_info_list=[
                    GetReplicaLogInfoResponse.TopicPartitionLogInfo(
                        topic_id=topic.topic_id,
                        partition_log_info=[self._info(partition, event) for partition in topic.partitions],
                    )
                    for topic in sent.request.topic_partitions
                ],
            )
        )

    def _info(self, partition: int, event: Members) -> GetReplicaLogInfoResponse.PartitionLogInfo:
        code = event.get("error", ErrorCode.NONE.name)
        if code not in ErrorCode.__members__:
            raise UnknownName(f"event log_info_response: error {code}")
        return GetReplicaLogInfoResponse.PartitionLogInfo(
            partition=partition,
            current_leader_epoch=event.get("currentLeaderEpoch", self._state().leader_epoch),
            last_written_leader_epoch=event.get("lastWrittenLeaderEpoch", -1),
            log_end_offset=event.get("logEndOffset", 0),
            error_code=ErrorCode[code],
            error_message=None,
        )

    # -- an operator ------------------------------------------------------------------------------------------------

    def _on_elect_leaders(self, event: Members) -> Observed:
        if event["tool"] not in _TOOLS:
            raise UnknownName(f"event elect_leaders: tool {event['tool']}")
        partitions = [*range(event.get("count", 1))]
        desired = [event["desiredLeader"]] * len(partitions) if "desiredLeader" in event else None
        request = ElectLeadersRequest(
            election_type=_TOOLS[event["tool"]],
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=_TOPIC, partitions=partitions, desired_leaders=desired)
            ],
        )
        self._scenario.written = []
        response: ElectLeadersResponse = self._scenario.ask(request, RECOVERY_TYPES_VERSION)
        self._written += self._scenario.written
        codes = [
            ErrorCode(result.error_code)
            for topic in response.replica_election_results
            for result in topic.partition_result
        ]
        limited = codes.count(ErrorCode.REQUEST_LIMIT_REACHED)
        refused = [code for code in (ErrorCode(response.error_code), *codes) if code is not ErrorCode.NONE]
        error = ErrorCode.REQUEST_LIMIT_REACHED if limited else next(iter(refused), ErrorCode.NONE)
        # a longest-log election that cannot be held at once continues on its own
        waits = request.election_type in (LONGEST_LOG_BALANCED_TYPE, LONGEST_LOG_AGGRESSIVE_TYPE) and (
            error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        return {
            "error": error.name,
            "served": len(codes) - limited,
            "limitReached": limited,
            **({"waits": True} if waits else {}),
        }


def _config(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=_TOPIC, name=name, value=value)
