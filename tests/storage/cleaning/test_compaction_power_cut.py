"""Power cuts at every point of a compaction, on the simulated disk that takes back what was not synced.

What must hold whenever the log is opened again: it is contiguous; every record is one that was written at that offset;
and of each durable record either it or a later one of its key is there.
"""

from __future__ import annotations

import pytest
from storage.cleaning.compacting import batches, keyed
from storage.powered import PoweredLog

from heirlog.sim.world import Exit
from heirlog.storage.cleaning.checkpoint import CleanerCheckpoint
from heirlog.storage.cleaning.compaction import Compaction, Steps
from heirlog.storage.cleaning.plan import plan_of
from heirlog.storage.config import LogConfig

CONFIG = LogConfig(compact=True, segment_bytes=400, index_interval_bytes=150, retention_ms=-1)


class Machine(PoweredLog):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, CONFIG)
        self.ever: dict[int, set[tuple[str, str]]] = {}
        self.durable: dict[int, str] = {}
        """Offset and key of what was flushed and not truncated since."""
        self.written: dict[int, str] = {}
        self.passes = 0
        self.cut_count = 0
        self.world.run_for(100)

    def load(self) -> None:
        super().load()
        self.steps: Steps | None = None
        self.checkpoint = CleanerCheckpoint(self.files, self.directory)
        self.checkpoint.read()

    def append(self) -> None:
        pairs = [(self.random.choice("abcdef"), f"{self.serial + i}") for i in range(self.random.randrange(1, 4))]
        self.serial += len(pairs)
        base = self.log.log_end_offset
        for i, (key, value) in enumerate(pairs):
            self.ever.setdefault(base + i, set()).add((key, value))
            self.written[base + i] = key
        self.log.append_as_leader(keyed(*pairs, compression=self.random.choice((0, 0, 1))), self.epoch, 0)

    def truncate(self) -> None:
        self.epoch += 1
        self.log.truncate_to(self.random.randrange(self.log.log_start_offset, self.log.log_end_offset + 1))
        # what a record had replaced may be gone already when the record itself is truncated: here nothing stands for a
        # high watermark that would keep compaction below
        self.durable = {}
        self.written = self.held()

    def flush(self) -> None:
        written, log, cuts = dict(self.written), self.log, self.log.cut_count

        def flushed(error: OSError | None) -> None:
            assert error is None
            if log is self.log and cuts == log.cut_count:
                self.durable.update(written)

        log.flush(flushed)

    def compact(self) -> None:
        """Begin a pass, or take some steps of the one under way."""
        if self.steps is not None and self.cut_count != self.log.cut_count:
            self.compaction.give_up()
            self.steps = None
        if self.steps is None:
            plan = plan_of(self.log, self.log.log_end_offset, 0)
            if plan is None:
                return
            self.waiting = False
            self.cut_count = self.log.cut_count
            self.compaction = Compaction(self.files, self.log, plan, 4, 0, self.removals)
            self.steps = self.compaction.steps()
        for _ in range(self.random.choice((1, 5, 50, 1000))):
            if self.waiting:
                return
            wait = next(self.steps, 0)
            if wait == 0:
                self.passes += 1
                self.steps = None
                self.checkpoint.write(lambda error: None)
                return
            if wait is not None:
                self.waiting = True
                wait(lambda error, steps=self.steps: self.resumed(steps))

    def resumed(self, steps: Steps) -> None:
        if steps is self.steps:
            self.waiting = False

    def removals(self, remove) -> None:
        def due(process=self.process) -> None:
            if process.alive:
                remove()

        self.world.schedule(5_000, self.process, "removed", due)

    def stop_cleanly(self) -> None:
        before = batches(self.log)
        self.steps = None
        self.close_cleanly()
        self.begin_again(Exit("stopped", 0, ""))
        assert self.directory.was_clean
        assert batches(self.log) == before

    def cut_power(self) -> None:
        self.begin_again(Exit("killed", -9, ""))
        self.epoch += 1
        self.written = self.held()

    def held(self) -> dict[int, str]:
        return {record.offset: record.key.decode() for _, found in batches(self.log) for record in found}

    def check(self) -> None:
        log = self.log
        latest: dict[str, int] = {}
        for _, found in batches(log):
            for record in found:
                key, value = record.key.decode(), record.value.decode()
                assert (key, value) in self.ever[record.offset]
                latest[key] = record.offset
        for offset, key in self.durable.items():
            if offset >= log.log_start_offset:
                assert latest.get(key, -1) >= offset
        assert log.log_end_offset > max(self.durable, default=-1)
        assert [s.base_offset for s in log.segments] == sorted({s.base_offset for s in log.segments})


@pytest.mark.parametrize("seed", range(60))
def test_no_power_cut_takes_the_last_record_of_a_key(seed: int) -> None:
    machine = Machine(seed)
    choices = [machine.append] * 8 + [machine.compact] * 8 + [machine.truncate, machine.cut_power, machine.stop_cleanly]
    choices += [lambda: machine.log.roll(), machine.flush, lambda: machine.directory.write_checkpoints({})] * 2
    for _ in range(120):
        machine.random.choice(choices)()
        machine.check()
        machine.world.run_for(machine.random.choice((0, 0, 1, 3, 20)))
    machine.world.run_for(100)
    machine.check()


@pytest.mark.parametrize("with_checkpoint", [True, False])
@pytest.mark.parametrize("cuts_after", range(60))
def test_a_cut_at_any_event_of_a_pass_leaves_the_log_before_or_after_it(cuts_after: int, with_checkpoint: bool) -> None:
    machine = Machine(cuts_after)
    for _ in range(30):
        machine.append()
    machine.log.roll()
    machine.flush()
    machine.world.run_for(50)
    if with_checkpoint:
        machine.directory.write_checkpoints({})
        machine.world.run_for(50)
    end = machine.log.log_end_offset
    for _ in range(cuts_after):
        machine.compact()
        machine.world.step(machine.world.now_us + 10_000)
    machine.cut_power()
    assert machine.log.log_end_offset == end
    machine.check()
    names = machine.files.list("/data/t-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
