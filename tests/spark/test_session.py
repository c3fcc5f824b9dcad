"""What a session sees to before its Java starts."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import eventually
from pyspark.sql import SparkSession

from heirlog.spark import session
from heirlog.spark.session import name_files_in_utf_8, silence_py4j


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
        ({"LC_CTYPE": "C.UTF-8"}, None),
        ({"LC_ALL": "", "LANG": "de_DE.ISO-8859-1"}, None),
    ],
)
def test_java_can_say_every_name_of_a_file_and_keeps_a_locale_that_somebody_chose(
    environment: dict[str, str], locale: str | None
) -> None:
    before = environment.get("LC_ALL")
    name_files_in_utf_8(environment)
    assert environment.get("LC_ALL") == (locale or before)


def test_spark_finds_the_cause_in_a_long_error_when_it_is_stopped(spark: SparkSession) -> None:
    assert spark._jvm is not None
    patterns = spark._jvm.java.util.regex.Pattern
    # of StreamExecution: recursive in Java, once for each character
    found = patterns.compile(r"calling((.|\r\n|\r|\n)*)InterruptedException").matcher(
        "calling" + "x" * 20_000 + "InterruptedException"
    )
    assert found.find()


def test_a_checkpoint_on_a_local_disk_is_written_without_a_program_for_each_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    jvm: Any = spark._jvm
    managers = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
    place = jvm.org.apache.hadoop.fs.Path(str(tmp_path))
    made = managers.create(place, spark._jsparkSession.sessionState().newHadoopConf())  # type: ignore[attr-defined]
    assert made.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"


def test_a_class_for_checkpoints_that_the_user_chose_stays(spark: SparkSession) -> None:
    name = "spark.sql.streaming.checkpointFileManagerClass"
    ours = spark.conf.get(name)
    spark.conf.set(name, "the.users.own")
    try:
        assert session.start("local[2]") is spark
        assert spark.conf.get(name) == "the.users.own"
    finally:
        spark.conf.set(name, ours)


def test_who_is_about_to_end_reads_no_traces_of_calls_that_java_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def log(name: str | None, folder: str) -> None:
        error = logging.LogRecord(name or "root", logging.ERROR, f"/site-packages/{folder}/f.py", 1, "gone", None, None)
        logging.getLogger(name).handle(error) if logging.getLogger(name).isEnabledFor(error.levelno) else None

    level = logging.getLogger("py4j").level
    try:
        silence_py4j()
        log("py4j.clientserver", "py4j")
        log(None, "py4j")
        assert not caplog.records
        log(None, "heirlog")
        assert len(caplog.records) == 1
    finally:
        logging.getLogger("py4j").setLevel(level)
        logging.getLogger().filters.clear()


JAVA_CLASS = "org.apache.spark.deploy.SparkSubmit"


def java_of(process: psutil.Process) -> psutil.Process | None:
    return next((child for child in process.children() if JAVA_CLASS in command_of(child)), None)


def command_of(process: psutil.Process) -> list[str]:
    """Empty for one that has just ended: PySpark starts short programs of its own before Java."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_ctrl_c_while_java_starts_leaves_no_java_behind() -> None:
    program = "from heirlog.spark import session; session.start('local[1]'); print('started')"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        java = eventually(lambda: java_of(psutil.Process(process.pid)), "PySpark's Java process")
        try:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) != 0
            assert not java.is_running()
        finally:
            if java.is_running():
                java.kill()
        assert process.stdout is not None
        assert process.stdout.read() == b""
