"""Laid beside kafka-python's tests, whose source distribution lacks it: handles of brokers that they do not start."""

from __future__ import annotations


class ExternalService:
    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def dump_logs(self) -> None: ...

    def wait_for(self, pattern: str, timeout: float | None = None) -> bool:
        return True


SpawnedService = ExternalService
