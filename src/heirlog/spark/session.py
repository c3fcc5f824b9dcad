"""A Spark session for a command, a test or a notebook on one machine, or one on a cluster that already runs.

A local session uses loopback addresses with ports that the system chooses, no web UI and no progress bars. With the
same settings several sessions can run at the same time in tests. With another master, Spark's own defaults apply.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from heirlog.spark import interpreter, java, planners, register, scratch, worker_python

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}
_LOGGING = Path(__file__).with_name("log4j2.properties")


_CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
_CHECKPOINT_PACKAGE = "org.apache.spark.sql.execution.streaming.checkpointing"
_CHECKPOINT_CLASS = "FileSystemBasedCheckpointFileManager"
"""To rename a file on a local disk, Spark's default runs the program `readlink` nine times. A micro-batch renames two:
20 processes, and 60 to 100 ms. This class runs four. Neither is atomic there, and both refuse a name that is taken."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_STACK = "-Xss32m"
"""Of each Java thread; only what is used takes memory. When a query is stopped in a batch, Spark looks for the cause in
the error's text with a regular expression that needs a kilobyte of stack for each character (StreamExecution's
PROXY_ERROR): Java's default ends that with a StackOverflowError and a thousand lines on stderr."""


def start(
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    app_name: str = "heirlog",
    log: Path | None = None,
) -> SparkSession:
    """A session with the `heirlog` source in it. `master` may be a Spark Connect address (`sc://host:port`).

    log: a file for Spark's own errors, made with the first of them; without one they go to standard error.
    Raises JavaNotFoundError with a sentence where a local session has no Java to run on, and WorkerPythonError where
    PYSPARK_PYTHON is a Python without heirlog.
    """
    given = dict(conf or {})
    builder = SparkSession.builder.appName(app_name)
    if master.startswith("sc://"):
        builder = builder.remote(master)
        settings: dict[str, str] = {}
    else:
        # where Spark's own errors go to a file, standard error is for the user of a command
        java.provide(without_warning=log is not None)
        name_files_in_utf_8(os.environ)
        # Spark would take the python3 of PATH, which need not be the one that has heirlog
        python = interpreter.program() if master.startswith("local") else sys.executable
        chosen = os.environ.setdefault("PYSPARK_PYTHON", python)
        if chosen == python != sys.executable:
            # it loads while Java starts
            planners.start()
        # `register` would see it too, but only after Java has started
        worker_python.check(chosen, list(filter(None, given.get("spark.submit.pyFiles", "").split(","))))
        builder = builder.master(master)
        options: dict[str, object] = {"log4j2.configurationFile": _LOGGING.as_uri(), "java.io.tmpdir": scratch.folder()}
        if log is not None:
            options |= {"heirlog.log": "file", "heirlog.log.file": log.absolute()}
        ours = map(_java_option, options, options.values())
        given[_JAVA_OPTIONS] = " ".join([*ours, _STACK, given.get(_JAVA_OPTIONS, "")]).strip()
        settings = {}
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            settings |= _LOCAL
    for name, value in {**settings, **given}.items():
        builder = builder.config(name, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    before = tempfile.tempdir
    # PySpark keeps a folder of its own until Java answers
    tempfile.tempdir = str(scratch.folder())
    try:
        with _no_java_left():
            session = builder.getOrCreate()
    finally:
        tempfile.tempdir = before
    if on_interrupt not in (signal.default_int_handler, None) and threading.current_thread() is threading.main_thread():
        # Spark would handle Ctrl-C and cancel its jobs; a program with a handler of its own ends in another way
        signal.signal(signal.SIGINT, on_interrupt)
    if master.startswith("local"):
        _quicken_checkpoints(session)
    register(session)
    return session


def _quicken_checkpoints(session: SparkSession) -> None:
    """Unless the user chose a class, or Spark has moved this one."""
    jvm: Any = session._jvm
    named: Any = jvm
    for part in (*_CHECKPOINT_PACKAGE.split("."), _CHECKPOINT_CLASS):
        named = getattr(named, part)
    if session.conf.get(_CHECKPOINTS, None) is None and isinstance(named, JavaClass):
        session.conf.set(_CHECKPOINTS, f"{_CHECKPOINT_PACKAGE}.{_CHECKPOINT_CLASS}")


@contextmanager
def _no_java_left() -> Iterator[None]:
    """End the Java process if PySpark stops waiting for it, as after Ctrl-C.

    PySpark removes the folder in which Java is to write its port. Java fails there, and never comes to the point at
    which it ends with its parent.
    """
    launched: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            launched.append(self)
            super().__init__(*args, **kwargs)

    # until Java answers, PySpark keeps its process to itself
    names = vars(java_gateway)
    before, names["Popen"] = names["Popen"], Popen
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for process in launched:
                if hasattr(process, "pid"):
                    process.kill()
                    process.wait()
        raise
    finally:
        names["Popen"] = before


def silence_py4j() -> None:
    """For a program that is about to end: Py4J logs, with traces, each call that fails because Java has ended."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    # it uses the root logger for some
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _java_option(name: str, value: object) -> str:
    """As Spark's launcher reads it: a path may have blanks."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"-D{name}={escaped}"'


def name_files_in_utf_8(environment: MutableMapping[str, str]) -> None:
    """Set the locale of the Java process that is started next.

    In the locale C (cron, `LC_ALL=C`) Java cannot handle file names that are not ASCII, and Spark silently skips such
    files."""
    asked = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environment.get(name))), "C")
    if asked in ("C", "POSIX"):
        environment["LC_ALL"] = "C.UTF-8"
