"""`heirlog produce TOPIC FILE...`: each file, or each line of the files, is a record."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Heirlog

from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        for topic in ("whole", "lines", "json", "none", "batches", "pipe", "transaction"):
            running.create_topic(topic, partitions=1)
        yield running


def values(heirlog: Heirlog, topic: str) -> str:
    return heirlog("consume", topic, "-e", "-f", "[%s]").out


def files(folder: Path, **contents: str) -> list[str]:
    for name, content in contents.items():
        (folder / name).write_text(content)
    return [str(folder / name) for name in contents]


def test_each_file_is_a_record_with_all_its_bytes(heirlog: Heirlog, tmp_path: Path) -> None:
    outcome = heirlog("produce", "whole", *files(tmp_path, a="one\ntwo\n", b="", c="last"))
    assert (outcome.code, outcome.err) == (0, "whole: 3 records acknowledged\n")
    assert values(heirlog, "whole") == "[one\ntwo\n][][last]"


def test_lines_of_files_are_records_and_a_file_ends_its_last_line(heirlog: Heirlog, tmp_path: Path) -> None:
    outcome = heirlog("produce", "lines", "-l", "--key-separator", ":", *files(tmp_path, a="k:1\n2", b="3\n", c=""))
    assert (outcome.code, outcome.err) == (0, "lines: 3 records acknowledged\n")
    assert heirlog("consume", "lines", "-e", "-f", "%k=%s ").out == "k=1 =2 =3 "


def test_files_of_json_lines_hold_a_record_in_each_line(heirlog: Heirlog, tmp_path: Path) -> None:
    named = files(tmp_path, a='{"value": "1"}\n{"value": "2"}\n', b='{"value": "3"}\n')
    assert heirlog("produce", "json", "--input-format", "json", *named).code == 0
    assert values(heirlog, "json") == "[1][2][3]"


@pytest.mark.parametrize("option", [[], ["--lines"]])
def test_before_the_first_record_all_files_are_looked_at(heirlog: Heirlog, tmp_path: Path, option: list[str]) -> None:
    (good,) = files(tmp_path, good="x")
    for bad, sentence in [("missing", "there is no such file"), (".", "is a folder; name its files")]:
        outcome = heirlog("produce", "none", *option, good, str(tmp_path / bad))
        assert (outcome.code, outcome.err.count("\n")) == (1, 1) and sentence in outcome.err
    assert values(heirlog, "none") == ""


def test_lines_without_files_are_refused(heirlog: Heirlog) -> None:
    outcome = heirlog("produce", "none", "--lines")
    assert outcome.code == 2 and "--lines is for files" in outcome.err


def test_files_that_fit_alone_are_not_refused_together(heirlog: Heirlog, tmp_path: Path) -> None:
    named = files(tmp_path, small="s" * 200_000, large="l" * 1_000_000, end="e")
    outcome = heirlog("produce", "batches", *named)
    assert (outcome.code, outcome.err) == (0, "batches: 3 records acknowledged\n")


def test_a_file_that_a_broker_refuses_is_named_as_not_acknowledged(heirlog: Heirlog, tmp_path: Path) -> None:
    named = files(tmp_path, small="s" * 300_000, large="l" * 3_000_000, end="e")
    outcome = heirlog("produce", "batches", *named)
    assert outcome.code == 1 and f"{tmp_path / 'large'}: batches-0 refused a batch of 1 record: MESSAGE" in outcome.err
    assert "heirlog configs alter topic batches max.message.bytes=BYTES raises the limit" in outcome.err
    assert "batches: 1 record acknowledged, 2 not acknowledged\n" in outcome.err


def test_a_pipe_is_a_file(heirlog: Heirlog, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("through\na pipe",))
    writer.start()
    outcome = heirlog("produce", "pipe", str(pipe))
    writer.join()
    assert (outcome.code, values(heirlog, "pipe")) == (0, "[through\na pipe]")


def test_files_go_in_one_transaction(heirlog: Heirlog, tmp_path: Path) -> None:
    outcome = heirlog("produce", "transaction", "--transactional-id", "t", *files(tmp_path, a="1", b="2"))
    assert (outcome.code, outcome.err) == (0, "transaction: 2 records committed in 1 transaction\n")
