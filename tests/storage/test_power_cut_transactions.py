"""Transactions of a log whose power is cut: what is left decides which records are aborted, and nothing else does."""

from __future__ import annotations

import pytest
from storage.powered import KEY, PoweredLog
from storage.transactional import (
    ABORT,
    COMMIT,
    committed_values,
    data,
    end,
    entries_of,
    put,
    read_committed,
    transactions_of,
)

from heirlog.sim.world import Exit
from heirlog.storage.config import LogConfig

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=150, retention_ms=-1)


class Machine(PoweredLog):
    def append(self) -> None:
        at, producer_id = self.log.log_end_offset, self.random.randrange(1, 4)
        if self.random.random() < 0.6:
            entry = data(at, producer_id, at, count=self.random.randrange(1, 4))
        else:
            entry = end(at, producer_id, self.random.choice((ABORT, ABORT, COMMIT)))
        put(self.log, entry, epoch=self.epoch)

    def truncate(self) -> None:
        self.epoch += 1
        self.log.truncate_to(self.random.choice([entry.first for entry in entries_of(self.log)] or [0]))

    def flush(self) -> None:
        self.log.flush(lambda error: None)

    def stop_cleanly(self) -> None:
        self.close_cleanly()
        self.begin_again(Exit("stopped", 0, ""))
        assert self.directory.was_clean

    def cut_power(self) -> None:
        self.begin_again(Exit("killed", -9, ""))
        if KEY not in self.directory.logs:
            self.create_log()
        self.epoch += 1

    def check(self) -> None:
        log = self.log
        # a power cut may bring back what a truncation had removed: the batches that are there count
        entries = entries_of(log)
        assert read_committed(log, log.log_end_offset) == committed_values(entries, 0, log.log_end_offset)
        opened = {one.producer_id: one.first for one in transactions_of(entries) if one.marker is None}
        found = log.producers.producers.items()
        assert {id: state.transaction_start for id, state in found if state.transaction_start >= 0} == opened


@pytest.mark.parametrize("seed", range(30))
def test_no_power_cut_shows_a_record_of_an_aborted_transaction(seed: int) -> None:
    machine = Machine(seed, CONFIG)
    choices = [machine.append] * 10 + [machine.flush] * 2 + [machine.truncate, machine.cut_power, machine.stop_cleanly]
    choices += [lambda: machine.log.roll(), lambda: machine.directory.write_checkpoints({})]
    for _ in range(60):
        machine.random.choice(choices)()
        machine.check()
        machine.world.run_for(machine.random.choice((0, 0, 1, 3, 20)))
