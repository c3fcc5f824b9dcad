"""A power cut on the files of a process that was killed.

`life` runs in a child that ends with SIGKILL; `files` flushes and syncs at once, as if the loop had turned.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from heirlog.server import ledger as ledger_module
from heirlog.server.ledger import Ledger, LedgerFailed, PowerCut, apply_power_cut, do

PROLOGUE = """
import os, queue, signal, sys
from heirlog.server import ledger as ledger_module
from heirlog.server.ledger_files import LedgerFiles

inbox = queue.SimpleQueue()
files = LedgerFiles(inbox.put, sys.argv[1] + "/ledger")
d = sys.argv[1] + "/data"

def flush(file):
    files.flush(file, lambda error: None)
    inbox.get()()

def sync(path=d):
    files.sync_dir(path, lambda error: None)
    inbox.get()()

def put(name, content, flushed=True):
    file = files.open(f"{d}/{name}", create=True)
    file.append(content)
    if flushed:
        flush(file)
    return file

def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def life(data: Path, script: str) -> None:
    """Run `script` in a process that gets SIGKILL at its end (or earlier)."""
    code = PROLOGUE + textwrap.dedent(script) + "\ndie()\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code, str(data.parent)], env=environment, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def cut(data: Path, seed: int | None = None) -> PowerCut:
    report = apply_power_cut(str(data.parent / "ledger"), seed)
    assert sorted(os.listdir(data.parent)) == ["data"], "the ledger and what it kept are gone"
    return report


def contents(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def test_what_was_flushed_survives_and_the_rest_is_cut(data: Path) -> None:
    life(data, "file = put('log', b'flushed'); sync(); file.append(b'not flushed')")
    assert contents(data) == {"log": b"flushednot flushed"}, "a kill alone loses nothing"
    report = cut(data)
    assert contents(data) == {"log": b"flushed"}
    assert [(one.flushed, one.written, one.kept) for one in report.cuts] == [(7, 18, 7)]
    assert report.undone == []


def test_afterwards_no_directory_names_the_current_start_of_the_machine(data: Path) -> None:
    life(data, "put('.heirlog_boot', b'{}'); put('log', b'flushed'); sync()")
    cut(data)
    assert contents(data) == {"log": b"flushed"}


def test_a_seed_tears_anywhere_between_flushed_and_written(data: Path) -> None:
    seen = set()
    for seed in range(30):
        life(data, "file = put('log', bytes(10)); sync(); file.append(bytes(10))") if seed < 2 else ghost(data)
        cut(data, seed)
        seen.add(len(contents(data)["log"]))
        (data / "log").unlink()
    assert min(seen) >= 10 and max(seen) <= 20 and len(seen) > 5


def ghost(data: Path) -> None:
    """The state that the life above leaves, without a child."""
    ledger = Ledger(str(data.parent / "ledger"))
    (data / "log").write_bytes(bytes(10))
    ledger.opened(str(data / "log"))
    (data / "log").write_bytes(bytes(20))
    ledger.close()


def test_one_seed_gives_one_result(data: Path) -> None:
    results = set()
    for _ in range(2):
        ghost(data)
        cut(data, 5)
        results.add(len(contents(data)["log"]))
    assert len(results) == 1


def test_an_unsynced_create_is_undone(data: Path) -> None:
    life(data, "put('kept', b'k'); sync(); put('gone', b'flushed, but nobody finds it')")
    report = cut(data)
    assert contents(data) == {"kept": b"k"}
    assert report.undone == [f"create {data}/gone"]


def test_an_unsynced_rename_is_undone_and_what_it_replaced_comes_back(data: Path) -> None:
    life(
        data,
        """
        put('checkpoint', b'old'); sync()
        put('checkpoint.tmp', b'new'); sync()
        files.rename(f'{d}/checkpoint.tmp', f'{d}/checkpoint')
        """,
    )
    assert contents(data) == {"checkpoint": b"new"}
    cut(data)
    assert contents(data) == {"checkpoint": b"old", "checkpoint.tmp": b"new"}


def test_a_synced_rename_stays(data: Path) -> None:
    life(
        data,
        """
        put('checkpoint', b'old'); sync()
        put('checkpoint.tmp', b'new'); files.rename(f'{d}/checkpoint.tmp', f'{d}/checkpoint'); sync()
        """,
    )
    assert cut(data).undone == []
    assert contents(data) == {"checkpoint": b"new"}


def test_a_rename_before_the_flush_leaves_an_empty_file(data: Path) -> None:
    """The mistake that the order of flush and rename is there to avoid."""
    life(
        data,
        """
        put('f', b'old'); sync()
        put('f.tmp', b'new', flushed=False); files.rename(f'{d}/f.tmp', f'{d}/f'); sync()
        """,
    )
    cut(data)
    assert contents(data) == {"f": b""}


def test_an_unsynced_unlink_is_undone(data: Path) -> None:
    life(data, "put('f', b'content'); sync(); files.unlink(f'{d}/f')")
    assert contents(data) == {}
    cut(data)
    assert contents(data) == {"f": b"content"}


def test_an_unsynced_removal_of_a_tree_is_undone(data: Path) -> None:
    life(
        data,
        """
        files.mkdirs(f'{d}/t-0/deep'); sync(); sync(f'{d}/t-0')
        put('t-0/log', b'content'); sync(f'{d}/t-0')
        files.rename(f'{d}/t-0', f'{d}/t-0-delete'); sync()
        files.rmdir(f'{d}/t-0-delete')
        """,
    )
    assert contents(data) == {}
    cut(data)
    assert contents(data) == {"t-0-delete/log": b"content"}
    assert (data / "t-0-delete" / "deep").is_dir()


def test_a_synced_removal_is_final(data: Path) -> None:
    life(data, "put('f', b'content'); sync(); files.unlink(f'{d}/f'); sync()")
    assert os.listdir(data.parent / "ledger.kept") == []
    cut(data)
    assert contents(data) == {}


def test_a_new_directory_vanishes_with_its_files_until_its_parent_is_synced(data: Path) -> None:
    life(data, "files.mkdirs(f'{d}/a/b'); put('a/b/f', b'1'); sync(f'{d}/a/b'); sync(f'{d}/a')")
    cut(data)
    assert os.listdir(data) == []


def test_changes_in_a_directory_that_was_renamed_and_synced_are_undone_in_its_new_place(data: Path) -> None:
    life(
        data,
        """
        files.mkdirs(f'{d}/t-0'); sync()
        put('t-0/f', b'1')
        files.rename(f'{d}/t-0', f'{d}/t-1'); sync()
        """,
    )
    cut(data)
    assert os.listdir(data) == ["t-1"]
    assert contents(data) == {}


def test_a_renamed_directory_is_synced_under_its_new_name(data: Path) -> None:
    life(
        data,
        """
        files.mkdirs(f'{d}/t-0'); sync()
        file = put('t-0/f', b'1')
        files.rename(f'{d}/t-0', f'{d}/t-1'); sync(); sync(f'{d}/t-1')
        file.append(b'2'); flush(file); file.append(b'3')
        """,
    )
    cut(data)
    assert contents(data) == {"t-1/f": b"12"}


def test_a_chain_of_unsynced_changes_is_undone_backwards(data: Path) -> None:
    life(
        data,
        """
        put('a', b'a'); put('b', b'b'); sync()
        files.rename(f'{d}/a', f'{d}/b')
        files.unlink(f'{d}/b')
        put('b', b'new'); put('a', b'newer')
        files.rename(f'{d}/b', f'{d}/a')
        """,
    )
    cut(data)
    assert contents(data) == {"a": b"a", "b": b"b"}


def test_a_sync_covers_only_what_was_changed_before_it_began(data: Path) -> None:
    life(
        data,
        """
        put('a', b'a')
        files.sync_dir(d, lambda error: None)
        put_b = files.open(f'{d}/b', create=True)
        inbox.get()()
        """,
    )
    cut(data)
    assert contents(data) == {"a": b"a"}


def test_a_truncation_counts_at_once_and_for_flushes_under_way(data: Path) -> None:
    life(
        data,
        """
        file = put('log', b'0123456789'); sync()
        file.append(b'abc')
        files.flush(file, lambda error: None)
        file.truncate(4)
        file.append(b'XYZ-not-flushed')
        inbox.get()()
        """,
    )
    cut(data)
    assert contents(data) == {"log": b"0123"}


def test_an_overwrite_may_be_lost_until_it_is_flushed(data: Path) -> None:
    life(data, "file = put('index', b'0123456789'); sync(); file.pwrite(b'X', 6)")
    cut(data)
    assert contents(data) == {"index": b"012345"}


def test_what_an_earlier_life_did_not_flush_is_still_not_flushed(data: Path) -> None:
    life(data, "file = put('log', b'12'); sync(); file.append(b'34'); put('new', b'')")
    life(data, "file = files.open(f'{d}/log'); assert file.size == 4; file.append(b'56')")
    cut(data)
    assert contents(data) == {"log": b"12"}


def test_a_file_from_before_the_ledger_counts_as_flushed(data: Path) -> None:
    (data / "old").write_bytes(b"formatted")
    life(data, "file = files.open(f'{d}/old'); file.append(b' and more')")
    cut(data)
    assert contents(data) == {"old": b"formatted"}


@pytest.mark.parametrize("change", ["os.rename", "os.link", "os.mkdir", "os.open", "none"])
def test_a_kill_between_the_entry_and_the_change_is_seen(data: Path, change: str) -> None:
    life(
        data,
        f"""
        put('f', b'old'); put('tmp', b'new'); sync()
        if {change!r} != 'none':
            {change if change != "none" else "os.rename"} = lambda *a, **k: die()
        if {change!r} in ('os.rename', 'os.link', 'none'):
            files.rename(f'{{d}}/tmp', f'{{d}}/f')
        elif {change!r} == 'os.mkdir':
            files.mkdirs(f'{{d}}/x')
        else:
            files.open(f'{{d}}/x', create=True)
        """,
    )
    cut(data)
    assert contents(data) == {"f": b"old", "tmp": b"new"}
    assert sorted(os.listdir(data)) == ["f", "tmp"]


def test_a_change_that_fails_leaves_no_entry(data: Path) -> None:
    life(
        data,
        """
        put('f', b'1'); sync()
        for bad in (lambda: files.rename(f'{d}/nothing', f'{d}/f'), lambda: files.unlink(f'{d}/nothing'),
                    lambda: files.open(f'{d}/no/where', create=True)):
            try:
                bad()
            except FileNotFoundError:
                pass
            else:
                raise AssertionError
        put('g', b'2'); sync()
        """,
    )
    assert cut(data).undone == []
    assert contents(data) == {"f": b"1", "g": b"2"}


def test_a_full_ledger_is_compacted_and_forgets_nothing(data: Path) -> None:
    life(
        data,
        """
        ledger_module.FIRST_SIZE = 4096
        os.unlink(sys.argv[1] + '/ledger'); files = LedgerFiles(inbox.put, sys.argv[1] + '/ledger')
        file = put('log', b'12'); sync(); file.append(b'34')
        put('early', b'unsynced')
        files.mkdirs(f'{d}/busy')
        for n in range(500):
            put('busy/tmp', b'%d' % n); files.rename(f'{d}/busy/tmp', f'{d}/busy/checkpoint'); sync(f'{d}/busy')
        flush(file); file.append(b'56')
        assert os.path.getsize(sys.argv[1] + '/ledger') < 20_000
        """,
    )
    assert contents(data)["busy/checkpoint"] == b"499"
    cut(data)
    assert contents(data) == {"log": b"1234"}


def test_with_a_seed_the_oldest_changes_may_survive(data: Path) -> None:
    seen = set()
    for seed in range(12):
        ledger = Ledger(str(data.parent / "ledger"))
        for name in "abc":
            create(ledger, data / name, b"")
        ledger.close()
        cut(data, seed)
        seen.add("".join(sorted(os.listdir(data))))
        for name in os.listdir(data):
            (data / name).unlink()
    assert seen == {"", "a", "ab", "abc"}


def create(ledger: Ledger, path: Path, body: bytes) -> None:
    change = ledger.enter("create", str(path))
    path.write_bytes(body)
    ledger.done(change)
    node = ledger.opened(str(path))
    ledger.flush_ended(node, ledger.flush_begins(node, len(body)), worked=True)


def make(ledger: Ledger, path: Path) -> None:
    change = ledger.enter("mkdir", str(path))
    path.mkdir()
    ledger.done(change)


def change(ledger: Ledger, kind: str, target: Path, source: Path | str = "") -> None:
    entered = ledger.enter(kind, str(target), str(source))
    do(entered)
    ledger.done(entered)


class Directory(dict[str, "Directory | bytes"]):
    """The second definition: what is there, and what was there when it was synced last."""

    durable: dict[str, Directory | bytes]

    def __init__(self) -> None:
        self.durable = {}

    def sync(self) -> None:
        self.durable = dict(self)

    def found(self, path: Path) -> dict[str, bytes | None]:
        """After the cut: None for a directory."""
        files: dict[str, bytes | None] = {}
        for name, one in self.durable.items():
            files[str(path / name)] = one if isinstance(one, bytes) else None
            if isinstance(one, Directory):
                files |= one.found(path / name)
        return files


class Life:
    """Random changes, made with the ledger and in the second definition."""

    def __init__(self, data: Path, chance: random.Random) -> None:
        self.data, self.chance = data, chance
        self.root = Directory()
        self.ledger = Ledger(str(data.parent / "ledger"))

    def places(self, path: Path, here: Directory) -> list[tuple[Path, Directory]]:
        below = [(path / name, one) for name, one in here.items() if isinstance(one, Directory)]
        return [(path, here), *(place for one in below for place in self.places(*one))]

    def step(self) -> None:
        path, here = self.chance.choice(self.places(self.data, self.root))
        name, other = f"{self.chance.randrange(4)}", f"{self.chance.randrange(4)}"
        kind = self.chance.choice(["create", "mkdir", "rename", "rename", "remove", "sync", "sync", "restart"])
        if kind == "create" and name not in here:
            here[name] = str(self.chance.random()).encode()
            create(self.ledger, path / name, here[name])  # type: ignore[arg-type]
        elif kind == "mkdir" and name not in here:
            here[name] = Directory()
            make(self.ledger, path / name)
        elif kind == "rename" and name in here and name != other and self.replaceable(here[name], here.get(other)):
            change(self.ledger, "rename", path / other, path / name)
            here[other] = here.pop(name)
        elif kind == "remove" and name in here:
            change(self.ledger, "remove", path / name)
            del here[name]
        elif kind == "sync":
            self.ledger.synced(str(path), self.ledger.mark())
            here.sync()
        elif kind == "restart":
            self.ledger.close()
            self.ledger = Ledger(str(self.data.parent / "ledger"))

    @staticmethod
    def replaceable(one: Directory | bytes, other: Directory | bytes | None) -> bool:
        return (
            other is None
            or (isinstance(one, Directory) is isinstance(other, Directory) and not isinstance(other, Directory))
            or (isinstance(one, Directory) and other == {})
        )


@pytest.mark.parametrize("first_size", [512, 1 << 20])
def test_random_lives_end_as_what_was_synced_says(data: Path, first_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories in directories, renamed and removed with what is in them; with a ledger that is soon full, too."""
    monkeypatch.setattr(ledger_module, "FIRST_SIZE", first_size)
    for seed in range(100):
        life = Life(data, random.Random(seed))
        for _ in range(life.chance.randrange(1, 80)):
            life.step()
        life.ledger.close()
        cut(data)
        found = {str(path): path.read_bytes() if path.is_file() else None for path in data.rglob("*")}
        assert found == life.root.found(data), f"seed {seed}"
        shutil.rmtree(data)
        data.mkdir()


def test_files_that_move_between_directories_are_there_or_not_but_the_cut_succeeds(data: Path) -> None:
    for seed in range(200):
        chance = random.Random(seed)
        ledger = Ledger(str(data.parent / "ledger"))
        for _ in range(chance.randrange(1, 60)):
            place = data / chance.choice("xyz")
            file = place / chance.choice("ab")
            if not place.exists():
                make(ledger, place)
            elif not file.exists():
                create(ledger, file, b"1")
            elif chance.random() < 0.4:
                target = data / chance.choice("xyz") / chance.choice("ab")
                if target.parent.exists() and target != file:
                    change(ledger, "rename", target, file)
            elif chance.random() < 0.6:
                synced = chance.choice([place, data])
                ledger.synced(str(synced), ledger.mark())
            else:
                change(ledger, "remove", chance.choice([place, file]))
        ledger.close()
        cut(data, chance.choice([None, seed]))
        shutil.rmtree(data)
        data.mkdir()


def test_a_file_removed_in_a_folder_that_was_renamed_and_removed_does_not_come_back(data: Path) -> None:
    """It was looked for in the folder that is gone, and the cut ended with FileNotFoundError."""
    life(
        data,
        """
        files.mkdirs(f'{d}/t-0'); sync(); put('t-0/f', b'1'); sync(f'{d}/t-0')
        files.unlink(f'{d}/t-0/f')
        files.rename(f'{d}/t-0', f'{d}/t-0-delete'); sync()
        files.rmdir(f'{d}/t-0-delete'); sync()
        assert os.listdir(sys.argv[1] + '/ledger.kept') == [], 'nothing will come back'
        """,
    )
    assert cut(data).undone == []
    assert os.listdir(data) == []


def test_a_removed_folder_that_is_not_synced_comes_back_with_what_was_removed_in_it(data: Path) -> None:
    life(
        data,
        """
        files.mkdirs(f'{d}/t-0'); sync(); put('t-0/f', b'1'); sync(f'{d}/t-0')
        files.unlink(f'{d}/t-0/f')
        files.rename(f'{d}/t-0', f'{d}/t-0-delete'); sync()
        files.rmdir(f'{d}/t-0-delete')
        """,
    )
    cut(data)
    assert contents(data) == {"t-0-delete/f": b"1"}


@pytest.mark.parametrize("partitions", [3_000])
def test_folders_of_many_thousands_of_partitions_come_and_go(data: Path, partitions: int) -> None:
    """With the files of a partition; after some 2,600 the ledger could not be mapped again, and the broker was gone."""
    began = time.process_time()
    ledger = Ledger(str(data.parent / "ledger"))
    names = ("0.log", "0.index", "0.timeindex", "leader-epoch-checkpoint")
    for number in range(partitions):
        folder = data / f"topic-{number}"
        make(ledger, folder)
        for name in names:
            create(ledger, folder / name, b"")
        ledger.synced(str(folder), ledger.mark())
        ledger.synced(str(data), ledger.mark())
    ledger.close()
    ledger = Ledger(str(data.parent / "ledger"))
    for number in range(partitions):
        away = data / f"topic-{number}-delete"
        change(ledger, "rename", away, data / f"topic-{number}")
        ledger.synced(str(data), ledger.mark())
        change(ledger, "remove", away)
        if number >= 10:
            ledger.synced(str(data), ledger.mark())
    create(ledger, data / "last", b"2")
    ledger.close()
    assert [name for name in os.listdir(data) if name != "last"] == []
    cut(data)
    assert os.listdir(data) == []
    assert time.process_time() - began < 30, "a change must not cost more the more files there are"


FAILURES = {
    "while it is compacted": "ledger_module.Ledger._compact = broken",
    "while a change is entered": "ledger_module.Ledger.enter = broken",
    "after a change was done": "ledger_module.Ledger.done = broken",
    "while a flush is noted": "ledger_module.Ledger.flush_ended = broken",
    "while a sync is noted": "ledger_module.Ledger.synced = broken",
    "while a truncation is noted": "ledger_module.Ledger.lost_from = broken",
    "because what it keeps cannot be moved aside": "os.rmdir(sys.argv[1] + '/ledger.kept')",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_ledger_that_fails_lets_its_node_continue_and_no_power_cut_lies(data: Path, failure: str) -> None:
    life(
        data,
        f"""
        def broken(*anything, **named):
            raise TypeError('memoryview: length is not a multiple of itemsize')
        file = put('log', b'12'); sync()
        {FAILURES[failure]}
        file.append(b'34'); flush(file); file.truncate(3)
        files.mkdirs(f'{{d}}/deep/er'); put('deep/f', b'f')
        files.rename(f'{{d}}/deep/f', f'{{d}}/deep/g'); put('deep/f', b'f')
        files.rename(f'{{d}}/deep/f', f'{{d}}/deep/g')
        sync(f'{{d}}/deep'); files.unlink(f'{{d}}/deep/g'); files.rmdir(f'{{d}}/deep'); sync()
        for n in range({20_000 if "compacted" in failure else 1}):
            files._guard.call(lambda ledger: ledger.synced(d, ledger.mark()))
        try:
            files.unlink(f'{{d}}/nothing')
        except FileNotFoundError:
            put('last', b'9')
        """,
    )
    assert contents(data) == {"last": b"9", "log": b"123"}
    for _ in range(2):
        with pytest.raises(LedgerFailed, match="a power cut cannot be played"):
            apply_power_cut(str(data.parent / "ledger"))
    assert contents(data) == {"last": b"9", "log": b"123"}
    life(data, "put('log', b'4'); sync()")
    assert contents(data)["log"] == b"1234", "the next process runs without a ledger as well"


def test_a_ledger_that_cannot_be_read_is_said_to_be_so(data: Path) -> None:
    (data.parent / "ledger").write_bytes(bytes(4096))
    with pytest.raises(LedgerFailed, match="not a ledger"):
        apply_power_cut(str(data.parent / "ledger"))
    life(data, "put('log', b'1')")
    assert contents(data) == {"log": b"1"}


def test_without_a_ledger_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--ledger"):
        apply_power_cut(str(tmp_path / "ledger"))
