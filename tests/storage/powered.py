"""One log in one directory on a disk whose power can be cut, for tests that let chance choose the next step."""

from __future__ import annotations

from random import Random

from heirlog.protocol.types import BrokerEpoch, Uuid
from heirlog.sim.disk import SimDisk
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.world import Exit, World
from heirlog.storage.config import LogConfig
from heirlog.storage.identity import format_directory
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory

KEY = ("t", 0)


class PoweredLog:
    """`boot` begins a process, `load` opens what its disk holds."""

    def __init__(self, seed: int, config: LogConfig) -> None:
        self.config = config
        self.random = Random(seed)
        self.world = World(seed)
        self.host = self.world.host("a")
        self.disk = SimDisk(self.world, self.host, self.world.stream("disk"))
        self.epoch = 0
        self.serial = 0
        self.generation = 0
        """Rises when the topic is recreated under its name."""
        self.boot()
        format_directory(self.files, "/data", "c", 1, Uuid(bytes(16)), lambda error: None)
        self.world.run_for(100)
        self.disk.settle()
        self.load()
        self.create_log()

    @property
    def log(self) -> Log:
        return self.directory.logs[KEY]

    @property
    def topic_id(self) -> Uuid:
        return Uuid(self.generation.to_bytes(16, "big"))

    def create_log(self) -> None:
        self.generation += 1
        self.directory.create_log(*KEY, self.topic_id, self.config)

    def boot(self) -> None:
        self.process = self.world.begin(self.host)
        self.process.on_end.append(self.disk.process_ended)
        self.files = SimFiles(self.disk, self.process)

    def load(self) -> None:
        self.directory = LogDirectory.open(self.files, "/data", cluster_id="c", node_id=1)
        results: list[OSError | None] = []
        self.directory.load_logs(lambda topic: self.config, 0, results.append)
        assert results == [None]
        claimed: list[OSError | None] = []
        self.directory.claim(claimed.append)
        self._wait_for(claimed)

    def close_cleanly(self) -> None:
        results: list[OSError | None] = []
        self.directory.close_cleanly(BrokerEpoch(3), results.append)
        self._wait_for(results)

    def _wait_for(self, results: list[OSError | None]) -> None:
        self.world.run_while(lambda: not results, 1000)
        assert results == [None]

    def begin_again(self, ended: Exit) -> None:
        """The process ends, the power goes, the machine starts with what its disk kept."""
        self.world.end(self.process, ended)
        self.disk.power_cut()
        self.boot()
        self.load()
