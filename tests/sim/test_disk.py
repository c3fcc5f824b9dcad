from __future__ import annotations

import pytest

from heirlog.sim.disk import DAMAGES, SimDisk
from heirlog.sim.disk_files import FlushedAgain, SimFiles
from heirlog.sim.world import Exit, World


class Machine:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.host = self.world.host("a")
        self.disk = SimDisk(self.world, self.host, self.world.stream("disk"))
        self.boot()

    def boot(self) -> None:
        self.process = self.world.begin(self.host)
        self.process.on_end.append(self.disk.process_ended)
        self.files = SimFiles(self.disk, self.process)

    def power_cut(self) -> None:
        self.world.end(self.process, Exit("killed", -9, ""))
        self.disk.power_cut()
        self.boot()

    def content(self, path: str) -> bytes:
        file = self.files.open(path)
        return file.pread(file.size, 0)

    def flush(self, path: str) -> None:
        done: list[object] = []
        self.files.flush(self.files.open(path), done.append)
        self.world.run_while(lambda: not done, 1000)
        assert done == [None]

    def sync(self, path: str) -> None:
        done: list[object] = []
        self.files.sync_dir(path, done.append)
        self.world.run_while(lambda: not done, 1000)


def _machine_with_synced_file(seed: int, content: bytes = b"") -> Machine:
    machine = Machine(seed)
    machine.files.mkdirs("/d")
    machine.files.open("/d/f", create=True).append(content)
    machine.flush("/d/f")
    machine.sync("/")
    machine.sync("/d")
    return machine


def test_a_kill_loses_nothing() -> None:
    machine = Machine()
    machine.files.open("/f", create=True).append(b"data")
    machine.world.end(machine.process, Exit("killed", -9, ""))
    machine.boot()
    assert machine.content("/f") == b"data"


def test_only_a_power_cut_begins_another_start_of_the_machine() -> None:
    machine = Machine()
    first = machine.files.boot_id
    machine.world.end(machine.process, Exit("killed", -9, ""))
    machine.boot()
    assert machine.files.boot_id == first
    machine.power_cut()
    assert machine.files.boot_id != first


def test_a_power_cut_may_take_everything_that_was_not_flushed() -> None:
    machine = _machine_with_synced_file(1, b"flushed")
    machine.disk.keeps_least = True
    machine.files.open("/d/f").append(b" and not")
    machine.power_cut()
    assert machine.content("/d/f") == b"flushed"


def test_a_power_cut_keeps_what_was_flushed_and_a_random_prefix_of_the_rest() -> None:
    seen = set()
    for seed in range(60):
        machine = _machine_with_synced_file(seed, b"flushed.")
        machine.files.open("/d/f").append([b"not ", b"flushed"])
        machine.power_cut()
        content = machine.content("/d/f")
        assert b"flushed.not flushed".startswith(content)
        assert content.startswith(b"flushed.")
        seen.add(len(content))
    assert {8, 19} < seen, "all or nothing, and cuts in between"


def test_a_disk_that_lies_keeps_nothing_for_a_flush_and_shows_what_it_lost() -> None:
    lost = []
    for seed in range(1, 9):
        machine = Machine(seed)
        machine.disk.lies = True
        file = machine.files.open("/f", create=True)
        file.append(b"abc")
        flushed: list[OSError | None] = []
        machine.files.flush(file, flushed.append)
        machine.world.run_for(10)
        assert flushed == [None] and not machine.disk.has_lost_flushed
        machine.power_cut()
        lost.append(machine.disk.has_lost_flushed)
    assert set(lost) == {True, False}, "chance decides what a power cut takes"


@pytest.mark.parametrize("how", DAMAGES)
def test_damage_is_in_the_file_until_it_is_written_again(how: str) -> None:
    machine = Machine()
    machine.files.open("/f", create=True).append(b"x" * 600)
    machine.disk.settle()
    damage = machine.disk.damage("/f", how)
    content = machine.content("/f")
    assert content != b"x" * 600 and content[: damage.position] == b"x" * damage.position
    assert len(content) == (damage.position if how == "truncation" else 600)
    assert machine.disk.is_damaged("/") is (how != "truncation")
    machine.files.open("/f").truncate(0)
    assert not machine.disk.is_damaged("/")


def test_a_flush_covers_what_was_written_before_it_was_asked_for() -> None:
    lengths = set()
    for seed in range(40):
        machine = _machine_with_synced_file(seed)
        file = machine.files.open("/d/f")
        file.append(b"one")
        done: list[object] = []
        machine.files.flush(file, done.append)
        file.append(b"two")
        machine.world.run_while(lambda done=done: not done, 100)
        machine.power_cut()
        lengths.add(len(machine.content("/d/f")))
    assert min(lengths) == 3


def test_calls_made_during_a_flush_share_the_next_one() -> None:
    machine = _machine_with_synced_file(1)
    file = machine.files.open("/d/f")
    order: list[tuple[str, int]] = []
    for name in ("first", "second", "third"):
        file.append(b"x")
        machine.files.flush(file, lambda error, name=name: order.append((name, machine.world.now_us)))
    machine.world.run_for(100)
    assert [name for name, _ in order] == ["first", "second", "third"]
    assert order[0][1] < order[1][1] == order[2][1]


def test_a_flush_under_way_at_a_kill_does_not_block_the_next_incarnation() -> None:
    machine = _machine_with_synced_file(1)
    done: list[object] = []
    machine.files.flush(machine.files.open("/d/f"), done.append)
    machine.world.end(machine.process, Exit("killed", -9, ""))
    machine.boot()
    machine.flush("/d/f")
    assert done == []


def test_an_unsynced_create_may_be_gone_and_a_synced_one_is_not() -> None:
    outcomes = set()
    for seed in range(40):
        machine = _machine_with_synced_file(seed)
        machine.files.open("/d/g", create=True).append(b"x")
        machine.flush("/d/g")
        machine.power_cut()
        assert machine.files.exists("/d/f")
        outcomes.add(machine.files.exists("/d/g"))
    assert outcomes == {True, False}


def test_directory_changes_survive_in_their_order() -> None:
    outcomes = set()
    for seed in range(60):
        machine = _machine_with_synced_file(seed, b"old")
        machine.files.open("/d/f.tmp", create=True).append(b"new")
        machine.flush("/d/f.tmp")
        machine.files.rename("/d/f.tmp", "/d/f")
        machine.files.unlink("/d/f")
        machine.power_cut()
        names = machine.files.list("/d")
        outcomes.add((tuple(names), machine.content("/d/f") if "f" in names else None))
    assert outcomes == {
        (("f",), b"old"),
        (("f", "f.tmp"), b"old"),
        (("f",), b"new"),
        ((), None),
    }


def test_a_directory_takes_its_files_along_when_its_rename_is_undone() -> None:
    outcomes = set()
    for seed in range(60):
        machine = _machine_with_synced_file(seed, b"x")
        machine.files.rename("/d", "/e")
        machine.files.open("/e/g", create=True)
        machine.sync("/e")
        machine.power_cut()
        (name,) = machine.files.list("/")
        assert machine.files.list(f"/{name}") == ["f", "g"]
        outcomes.add(name)
    assert outcomes == {"d", "e"}


def test_a_removed_directory_may_come_back_whole() -> None:
    outcomes = set()
    for seed in range(40):
        machine = _machine_with_synced_file(seed, b"x")
        machine.files.rmdir("/d")
        machine.power_cut()
        outcomes.add(machine.files.exists("/d/f"))
    assert outcomes == {True, False}


def test_truncation_and_overwriting_may_be_undone() -> None:
    outcomes = set()
    for seed in range(80):
        machine = _machine_with_synced_file(seed, b"abcdef")
        file = machine.files.open("/d/f")
        file.truncate(3)
        file.pwrite(b"X", 0)
        file.append(b"!")
        machine.power_cut()
        outcomes.add(machine.content("/d/f"))
    assert outcomes == {b"abcdef", b"abc", b"Xbc", b"Xbc!"}


def test_a_flush_after_a_truncation_keeps_it() -> None:
    for seed in range(20):
        machine = _machine_with_synced_file(seed, b"abcdef")
        machine.files.open("/d/f").truncate(3)
        machine.flush("/d/f")
        machine.power_cut()
        assert machine.content("/d/f") == b"abc"


def test_a_file_stays_usable_through_a_handle_opened_before_it_was_renamed_or_unlinked() -> None:
    machine = _machine_with_synced_file(1, b"abc")
    file = machine.files.open("/d/f")
    machine.files.rename("/d/f", "/d/g")
    file.append(b"d")
    assert machine.content("/d/g") == b"abcd"
    machine.files.unlink("/d/g")
    assert file.pread(10, 1) == b"bcd"
    file.close()
    with pytest.raises(OSError):
        file.pread(1, 0)


def test_errors_are_those_of_a_real_disk() -> None:
    machine = _machine_with_synced_file(1, b"abc")
    files = machine.files
    for refused in (
        lambda: files.open("/d/none"),
        lambda: files.open("/none/f", create=True),
        lambda: files.list("/none"),
        lambda: files.unlink("/d/none"),
        lambda: files.rename("/d/none", "/d/x"),
    ):
        with pytest.raises(FileNotFoundError):
            refused()
    with pytest.raises(OSError):
        files.open("/d/f").pwrite(b"xx", 2)
    assert files.exists("/d")
    assert files.is_dir("/d")
    assert not files.is_dir("/d/f")
    assert not files.exists("/d/f/x")
    assert files.list("/d") == ["f"]
    assert files.modified_ms("/d/f") >= 1_700_000_000_000


def test_settling_makes_everything_durable_at_once() -> None:
    for seed in range(10):
        machine = Machine(seed)
        machine.files.mkdirs("/x/y")
        machine.files.open("/x/y/f", create=True).append(b"abc")
        machine.disk.settle()
        machine.power_cut()
        assert machine.content("/x/y/f") == b"abc"


def test_a_full_directory_refuses_every_write_below_it_and_no_read() -> None:
    machine = _machine_with_synced_file(1, b"data")
    machine.disk.break_at("/d", "full")
    with pytest.raises(OSError, match="no space left"):
        machine.files.open("/d/f").append(b"more")
    with pytest.raises(OSError, match="no space left"):
        machine.files.open("/d/new", create=True)
    assert machine.content("/d/f") == b"data"
    machine.files.open("/elsewhere", create=True).append(b"fine")
    machine.disk.repair()
    machine.files.open("/d/f").append(b"more")
    assert machine.content("/d/f") == b"datamore"


def test_a_flush_that_failed_made_nothing_durable() -> None:
    kept = set()
    for seed in range(20):
        machine = _machine_with_synced_file(seed)
        machine.files.open("/d/f").append(b"data")
        machine.disk.break_at("/d/f", "flush")
        done: list[OSError | None] = []
        machine.files.flush(machine.files.open("/d/f"), done.append)
        machine.world.run_while(lambda done=done: not done, 1000)
        assert done[0] is not None and "input/output error" in str(done[0])
        with pytest.raises(FlushedAgain):
            machine.flush("/d/f")
        machine.power_cut()
        kept.add(machine.content("/d/f"))
    assert b"" in kept


def test_one_file_can_be_unreadable_beside_others() -> None:
    machine = _machine_with_synced_file(1, b"data")
    machine.files.open("/d/g", create=True).append(b"other")
    machine.disk.break_at("/d/f", "read")
    with pytest.raises(OSError, match="input/output error"):
        machine.content("/d/f")
    assert machine.content("/d/g") == b"other"
    with machine.disk.readable():
        assert machine.content("/d/f") == b"data", "a checker reads it"
    with pytest.raises(OSError, match="input/output error"):
        machine.content("/d/f")
