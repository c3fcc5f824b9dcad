"""Histories of a log directory on the simulated disk, which also takes back truncations, creates, renames and unlinks.

What must hold after any power cut: what a finished flush covered is there, unless it was truncated since; every record
is one that was written at that offset; epochs rise along the log and the epoch cache says where each begins; indexes
lead to the same batches as a walk; and the log goes on from there.
"""

from __future__ import annotations

from random import Random

import pytest
from storage.logs import batch, contents

from heirlog.protocol.batch import walk
from heirlog.protocol.types import BrokerEpoch, Uuid
from heirlog.sim.disk import SimDisk, SimFiles
from heirlog.sim.world import Exit, World
from heirlog.storage.config import LogConfig
from heirlog.storage.identity import format_directory
from heirlog.storage.log_directory import LogDirectory

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=150, retention_ms=-1)
KEY = ("t", 0)


class Machine:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(seed)
        self.host = self.world.host("a")
        self.disk = SimDisk(self.world, self.host, self.world.stream("disk"))
        self.epoch = 0
        self.serial = 0
        self.sequence = 0
        self.ever: dict[int, set[str]] = {}
        self.safe = 0
        """Below it everything was flushed, and not truncated since."""
        self.boot()
        format_directory(self.files, "/data", "c", 1, Uuid(bytes(16)), lambda error: None)
        self.world.run_for(100)
        self.disk.settle()
        self.load()
        self.directory.create_log("t", 0, Uuid(bytes(15) + b"\x07"), CONFIG)
        self.settled = False

    @property
    def log(self):
        return self.directory.logs[KEY]

    def boot(self) -> None:
        self.process = self.world.begin(self.host)
        self.process.on_end.append(self.disk.process_ended)
        self.files = SimFiles(self.disk, self.process)

    def load(self) -> None:
        self.directory = LogDirectory.open(self.files, "/data", cluster_id="c", node_id=1)
        results: list[OSError | None] = []
        self.directory.load_logs(lambda topic: CONFIG, 0, results.append)
        self.world.run_while(lambda: not results, 1000)
        assert results == [None]

    def append(self) -> None:
        values = [f"v{self.serial + i}" for i in range(self.random.randrange(1, 4))]
        self.serial += len(values)
        base = self.log.log_end_offset
        for i, value in enumerate(values):
            self.ever.setdefault(base + i, set()).add(value)
        if self.random.random() < 0.5:
            self.log.append_as_leader(batch(*values), self.epoch, 0)
        else:
            self.log.append_as_follower(batch(*values, base_offset=base, leader_epoch=self.epoch), self.epoch)

    def truncate(self) -> None:
        self.epoch += 1
        self.log.truncate_to(self.random.randrange(self.log.log_start_offset, self.log.log_end_offset + 1))
        empty = self.log.log_end_offset == self.log.log_start_offset
        self.safe = 0 if empty else min(self.safe, self.log.log_end_offset)

    def flush(self) -> None:
        end, log = self.log.log_end_offset, self.log

        def flushed(error: OSError | None) -> None:
            assert error is None
            if log is self.log:
                self.safe = max(self.safe, min(end, log.recovery_point))

        log.flush(flushed)

    def delete_old(self) -> None:
        self.log.increment_log_start(self.random.randrange(self.log.log_start_offset, self.log.log_end_offset + 1))
        self.log.delete_old_segments(0, self.log.log_end_offset)

    def stop_cleanly(self) -> None:
        before, epochs, start = contents(self.log), self.log.epochs.entries, self.log.log_start_offset
        results: list[OSError | None] = []
        self.directory.close_cleanly(BrokerEpoch(3), results.append)
        self.world.run_while(lambda: not results, 1000)
        assert results == [None]
        self.world.end(self.process, Exit("stopped", 0, ""))
        self.disk.power_cut()
        self.boot()
        self.load()
        assert self.directory.was_clean
        assert (contents(self.log), self.log.epochs.entries, self.log.log_start_offset) == (before, epochs, start)

    def cut_power(self) -> None:
        self.world.end(self.process, Exit("killed", -9, ""))
        self.disk.power_cut()
        self.boot()
        self.load()
        if KEY not in self.directory.logs:
            assert self.safe == 0
            self.directory.create_log("t", 0, Uuid(bytes(15) + b"\x07"), CONFIG)
        assert self.log.log_end_offset >= self.safe
        self.epoch += 1

    def check(self) -> None:
        log = self.log
        found = contents(log)
        assert [o for o, _ in found] == list(range(log.log_start_offset, log.log_end_offset))
        assert all(value in self.ever[offset] for offset, value in found)
        epochs: list[tuple[int, int]] = []
        at = log.log_start_offset
        while at < log.log_end_offset:
            data = log.read(at, 1, log.log_end_offset).regions[0].read()
            ((_, header),) = walk(data)
            if not epochs or header.leader_epoch != epochs[-1][0]:
                epochs.append((header.leader_epoch, max(header.base_offset, log.log_start_offset)))
            at = header.next_offset
        assert epochs == sorted(epochs)
        if found:
            assert log.epochs.entries == epochs


@pytest.mark.parametrize("seed", range(80))
def test_no_power_cut_takes_what_was_flushed_or_leaves_what_was_never_written(seed: int) -> None:
    machine = Machine(seed)
    choices = [machine.append] * 8 + [machine.truncate, machine.flush, machine.cut_power, machine.stop_cleanly]
    choices += [lambda: machine.log.roll(), lambda: machine.directory.write_checkpoints({}), machine.delete_old]
    for _ in range(60):
        machine.random.choice(choices)()
        machine.check()
        machine.world.run_for(machine.random.choice((0, 0, 1, 3, 20)))
