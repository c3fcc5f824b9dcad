"""The files that say which clusters there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heirlog.local import contexts
from heirlog.local.errors import LocalError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "heirlog" / "contexts"


def write(name: str, servers: str = "a:1") -> None:
    contexts.write(name, {contexts.SERVERS: servers}, "for a test")


def test_the_default_is_local_until_another_one_is_chosen(folder: Path) -> None:
    assert (contexts.names(), contexts.current()) == ([], None)
    write("prod")
    assert contexts.current() is None, "the only one is not meant because it is the only one"
    write("local", "b:1,b:2")
    found = contexts.current()
    assert found is not None and (found.name, found.bootstrap_servers) == ("local", "b:1,b:2")
    contexts.use("prod")
    assert contexts.current_name() == "prod" and contexts.names() == ["local", "prod"]
    contexts.delete("prod")
    assert contexts.current_name() == "local"


def test_only_the_user_can_read_a_file_that_may_hold_a_password(folder: Path) -> None:
    write("prod")
    assert (folder / "prod.properties").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["prod.properties"]


@pytest.mark.parametrize("name", ["", "../etc", "a/b", ".hidden", "a b"])
def test_a_name_stays_in_the_folder(name: str) -> None:
    with pytest.raises(LocalError, match="cannot be the name of a context"):
        write(name)


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(LocalError, match="there is no context prod; heirlog context list"):
        contexts.use("prod")
    write("prod")
    contexts.use("prod")
    (folder / "prod.properties").write_text("security.protocol=SSL\n")
    with pytest.raises(LocalError, match=r"has no bootstrap\.servers; add the line"):
        contexts.current()
    (folder / "prod.properties").unlink()
    with pytest.raises(LocalError, match="there is no context prod"):
        contexts.current()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "heirlog").write_text("a file")
    with pytest.raises(LocalError, match="set XDG_CONFIG_HOME to a folder that can be written"):
        write("prod")


def test_without_the_variable_it_is_below_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert contexts.folder() == Path(os.path.expanduser("~/.config/heirlog/contexts"))
