"""Layer `broker`, role `startup`: a real `Broker` finds the clean-shutdown files of the setup in its log directories.

The epoch is read from the registration that the broker sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from heirlog.broker.broker import Broker
from heirlog.env import SendFailure
from heirlog.metadata.config_def import parse_static
from heirlog.metadata.image import Image
from heirlog.protocol.messages import BrokerHeartbeatResponse, BrokerRegistrationResponse
from heirlog.protocol.types import Endpoint, PartitionKey, Uuid
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE
from heirlog.storage.identity import format_directory
from heirlog.storage.log_directory import LogDirectory
from heirlog.testing.conformance.body import ManualEnv, Sent
from heirlog.testing.conformance.vocabulary import UnknownName

BROKER_ID: Final = 1
CLUSTER_ID: Final = "heirlog-cluster-test-1"
CONTROLLER: Final = Endpoint("controller", 9093)
_LOADING_MS: Final = 10
_STOPPING_MS: Final = 100


class StartupScenario:
    def __init__(self, setup: Mapping[str, Any]) -> None:
        self.env = ManualEnv()
        configured = [f"/{given['dir']}" for given in setup["logDirs"]]
        self.paths = []
        for number, given in enumerate(setup["logDirs"]):
            if given.get("offline"):
                continue
            path = configured[number]
            format_directory(
                self.env.files, path, CLUSTER_ID, BROKER_ID, Uuid(bytes([65 + number]) * 16), lambda error: None
            )
            if given.get("file") is not None:
                self.env.files.open(f"{path}/{CLEAN_SHUTDOWN_FILE}", create=True).append(given["file"].encode())
            self.paths.append(path)
        self.env.advance(_LOADING_MS)
        self._static = parse_static(
            {
                "process.roles": "broker",
                "node.id": str(BROKER_ID),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "100@controller:9093",
                "listeners": "PLAINTEXT://broker:9092",
                "log.dirs": ",".join(configured),
            }
        )
        self.broker = self._new_broker()
        self._registration: Sent | None = None
        self._started = False
        self._registered = False

    def _new_broker(self) -> Broker:
        image = Image()
        return Broker(
            self.env,
            self._static,
            [
                LogDirectory.open(self.env.files, path, cluster_id=CLUSTER_ID, node_id=BROKER_ID, listener=self)
                for path in self.paths
            ],
            lambda: CONTROLLER,
            lambda: image,
            cluster_id=CLUSTER_ID,
            on_caught_up=lambda: None,
            create_topics=lambda names: None,
        )

    def log_directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        self.broker.replicas.directories.failed(directory, error)

    def log_start_moved(self, key: PartitionKey) -> None:
        self.broker.replicas.log_start_moved(key)

    def _files(self) -> list[str]:
        paths = [f"{path}/{CLEAN_SHUTDOWN_FILE}" for path in self.paths]
        return [path for path in paths if self.env.files.exists(path)]

    def play(self, event: Mapping[str, Any]) -> dict[str, Any]:
        handler: Callable[[Mapping[str, Any]], dict[str, Any]] | None = getattr(self, f"_on_{event['type']}", None)
        if handler is None:
            raise UnknownName(f"event {event['type']} of a startup is not implemented")
        observed = handler(event)
        return {"fileStillPresent": bool(self._files()), **observed}

    def _on_start(self, event: Mapping[str, Any]) -> dict[str, Any]:
        if self._started:
            # whatever the former process came to
            self.env.restart()
            self.broker = self._new_broker()
        self._started = True
        present = bool(self._files())
        self.broker.start()
        self.env.advance(_LOADING_MS)
        self._registration = self.env.take("heartbeat")
        previous = self._registration.request.previous_broker_epoch
        return {"registrationPreviousBrokerEpoch": previous, "fileStillPresent": present}

    def _on_logs_loaded(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def _on_advance_clock(self, event: Mapping[str, Any]) -> dict[str, Any]:
        self.env.advance(event["ms"])
        return {}

    def _on_register_response(self, event: Mapping[str, Any]) -> dict[str, Any]:
        if self._registration is None:
            raise UnknownName("event register_response before a start")
        self._registered = True
        self._registration.on_result(BrokerRegistrationResponse(broker_epoch=event["brokerEpoch"]))
        return {}

    def _on_controlled_stop(self, event: Mapping[str, Any]) -> dict[str, Any]:
        registered = event.get("registered", self._registered)
        if registered:
            self.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
        self.broker.shutdown(lambda: None)
        if not registered and self._registration is not None:
            # a stop waits for the answer to a registration in flight, and here the controller never answers
            self._registration.on_result(SendFailure("timed-out", "no answer"))
        if registered:
            self.env.take("heartbeat").on_result(BrokerHeartbeatResponse(should_shut_down=True))
        self.env.advance(_STOPPING_MS)
        written = self._files()
        if not written:
            return {}
        file = self.env.files.open(written[0])
        return {"fileContent": json.loads(file.pread(file.size, 0))}
