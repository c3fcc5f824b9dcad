"""The start-up scenarios of the catalogue (K060 - K066): which epoch is registered, and what becomes of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heirlog.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from heirlog.protocol.messages.broker_registration import BrokerRegistrationResponse
from heirlog.protocol.types import Uuid
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE
from heirlog.storage.identity import format_directory

from .fakes import CLUSTER_ID, FakeEnv, Rig

CATALOGUE = json.loads((Path(__file__).parent / "data" / "elr-scenarios.json").read_text())
SCENARIOS = {
    scenario["id"]: scenario
    for scenario in CATALOGUE["scenarios"]
    if scenario["layer"] == "broker" and scenario["setup"].get("role") == "startup"
}
DEVIATES = {"K066": -1}
"""A -1 in any directory is unclean here: docs/design.md, "clean-shutdown file"."""


class Startup:
    def __init__(self, setup: dict[str, Any]) -> None:
        self.env = FakeEnv()
        paths = []
        for number, directory in enumerate(setup["logDirs"]):
            path = f"/{directory['dir']}"
            paths.append(path)
            if directory.get("offline"):
                continue
            format_directory(self.env.files, path, CLUSTER_ID, 1, Uuid(bytes([65 + number]) * 16), lambda error: None)
            if directory["file"] is not None:
                self.env.files.open(f"{path}/{CLEAN_SHUTDOWN_FILE}", create=True).append(directory["file"].encode())
        self.env.advance(10)
        self.paths = [path for path in paths if self.env.files.is_dir(path)]
        self.rig = Rig(1, self.env, log_dirs=",".join(self.paths))
        # a directory that could not be opened is configured and missing from what the broker is given
        self.rig.static.log_dirs = tuple(paths)
        self.registration: Any = None

    @property
    def file(self) -> str:
        return f"{self.paths[0]}/{CLEAN_SHUTDOWN_FILE}"

    def play(self, event: dict[str, Any]) -> dict[str, Any]:
        observed: dict[str, Any] = getattr(self, f"_on_{event['type']}")(event) or {}
        observed["fileStillPresent"] = self.env.files.exists(self.file)
        return observed

    def _on_start(self, event: dict[str, Any]) -> dict[str, Any]:
        before = self.env.files.exists(self.file)
        self.rig.broker.start()
        return {"registrationPreviousBrokerEpoch": self.rig.broker._previous_broker_epoch, "fileStillPresent": before}

    def _on_logs_loaded(self, event: dict[str, Any]) -> None:
        self.env.advance(10)
        self.registration = self.env.take("heartbeat")

    def _on_register_response(self, event: dict[str, Any]) -> None:
        self.registration.on_result(BrokerRegistrationResponse(broker_epoch=event["brokerEpoch"]))

    def _on_controlled_stop(self, event: dict[str, Any]) -> dict[str, Any]:
        if event.get("registered", True):
            self.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
        self.rig.broker.shutdown(lambda: None)
        if event.get("registered", True):
            self.env.take("heartbeat").on_result(BrokerHeartbeatResponse(should_shut_down=True))
        self.env.advance(100)
        file = self.env.files.open(self.file)
        return {"fileContent": json.loads(file.pread(file.size, 0))}


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_broker_starts_and_stops_as_the_catalogue_says(name: str) -> None:
    startup = Startup(SCENARIOS[name]["setup"])
    for step in SCENARIOS[name]["steps"]:
        observed = startup.play(step["event"])
        observed.setdefault("fileStillPresent", False)
        expected = dict(step["expect"])
        if step["event"]["type"] == "start":
            # the file goes while logs are loaded, which begins within this call
            expected.pop("fileStillPresent", None)
            if name in DEVIATES:
                expected["registrationPreviousBrokerEpoch"] = DEVIATES[name]
        for member, value in expected.items():
            assert observed[member] == value, (name, step["event"], member)


def test_the_registration_carries_the_epoch_that_was_read() -> None:
    startup = Startup(SCENARIOS["K060"]["setup"])
    startup.play({"type": "start"})
    startup.play({"type": "logs_loaded"})
    assert startup.registration.request.previous_broker_epoch == 37
