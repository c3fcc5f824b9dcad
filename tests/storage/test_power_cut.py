"""Histories of a log directory on the simulated disk, which also takes back truncations, creates, renames and unlinks.

What must hold after any power cut: what a finished flush covered is there, unless it was truncated since; every record
is one that was written at that offset; epochs rise along the log and the epoch cache says where each begins; indexes
lead to the same batches as a walk; and the log goes on from there.
"""

from __future__ import annotations

import pytest
from storage.logs import batch, contents
from storage.powered import KEY, PoweredLog

from heirlog.protocol.batch import walk
from heirlog.sim.world import Exit
from heirlog.storage.config import LogConfig

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=150, retention_ms=-1)


class Machine(PoweredLog):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, CONFIG)
        self.ever: dict[int, set[str]] = {}
        self.safe = 0
        """Below it everything was flushed, and not truncated since."""

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
        for _ in range(self.random.randrange(1, 3)):  # the second one finds that there is nothing to write
            self.close_cleanly()
            self.begin_again(Exit("stopped", 0, ""))
            assert self.directory.was_clean
        assert (contents(self.log), self.log.epochs.entries, self.log.log_start_offset) == (before, epochs, start)

    def cut_power(self) -> None:
        self.begin_again(Exit("killed", -9, ""))
        if KEY in self.directory.logs and self.log.topic_id != self.topic_id:
            # torn before it was durable, or the log of the topic that was deleted: as a broker does at its start
            assert self.safe == 0
            self.remove_log()
        if KEY not in self.directory.logs:
            assert self.safe == 0
            self.recreate()
        assert self.log.log_end_offset >= self.safe
        self.epoch += 1

    def remove_log(self) -> None:
        if self.random.random() < 0.5:
            self.directory.set_aside(*KEY)
        else:
            remove = self.directory.delete_log(*KEY)
            self.world.schedule(self.random.choice((0, 1000, 5000)), self.process, "remove", remove)

    def recreate(self) -> None:
        if KEY in self.directory.logs:
            self.remove_log()
            self.world.run_for(self.random.choice((0, 0, 1, 20)))
        self.create_log()
        self.ever, self.safe = {}, 0

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
    choices += [machine.recreate]
    for _ in range(60):
        machine.random.choice(choices)()
        machine.check()
        machine.world.run_for(machine.random.choice((0, 0, 1, 3, 20)))
