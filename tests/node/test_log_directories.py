"""Where a node finds its metadata log."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.node.log_directories import refuse_metadata_elsewhere
from heirlog.server.files import OsFiles
from heirlog.storage.errors import StorageFormatError

FILES = OsFiles(lambda callback: None)


def metadata_in(path: Path, name: str = "00000000000000000000.log", content: bytes = b"records") -> None:
    directory = path / "__cluster_metadata-0"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)


def config(*log_dirs: Path, **more: str) -> StaticConfig:
    return parse_static(
        {
            "process.roles": "broker",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "log.dirs": ",".join(map(str, log_dirs)),
            **more,
        }
    )


def check(*log_dirs: Path, **more: str) -> None:
    refuse_metadata_elsewhere(FILES, config(*log_dirs, **more), map(str, log_dirs))


def test_a_node_whose_log_dirs_have_another_order_does_not_begin_a_new_metadata_log(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    metadata_in(first)
    check(first, second)
    with pytest.raises(StorageFormatError, match=f"is in {first}, but .* set metadata.log.dir={first} "):
        check(second, first)
    check(second, first, **{"metadata.log.dir": str(first)})
    metadata_in(second, content=b"")
    with pytest.raises(StorageFormatError):
        check(second, first)


@pytest.mark.parametrize("name", ["00000000000000000000-0000000000.checkpoint", "00000000000000000000.log"])
def test_a_metadata_log_where_the_configuration_says_is_used_whatever_is_elsewhere(tmp_path: Path, name: str) -> None:
    metadata_in(tmp_path / "old")
    metadata_in(tmp_path / "new", name)
    check(tmp_path / "new", tmp_path / "old")


def test_new_directories_have_no_metadata_log(tmp_path: Path) -> None:
    check(tmp_path / "one", tmp_path / "two")
