"""An authority that is replaced node by node, while brokers and the controller quorum are at work.

Each node has stores of its own. A node that is killed and started again opens new connections to all others, and they
to it, so each step is tried between nodes that have taken it and nodes that have not.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from patience import eventually

from heirlog.blocking import Client
from heirlog.client.offsets import LATEST
from heirlog.client.security import security_from_properties
from heirlog.local import properties
from heirlog.local.certificates import Authority
from heirlog.local.layout import NodeLayout
from heirlog.local.processes import NodeProcess
from heirlog.local.secure import write_private
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster

HOSTS = ("127.0.0.1", "localhost")


class OwnStores(Cluster):
    """Each node has copies of the stores in its own folder."""

    def stores(self, node: int) -> tuple[Path, Path]:
        """Of its key, and of what it trusts."""
        folder = self.data / "security"
        return folder / f"node-{node}.pem", folder / f"trust-{node}.pem"

    def authority(self) -> Authority:
        folder = self.data / "security"
        return Authority.of((folder / "ca.key").read_text(), (folder / "ca.pem").read_text())

    def take(self, node: int, by: Authority | None, trusted: list[Authority]) -> None:
        """by: who signs its new certificate; None: it keeps the one it has."""
        key, trust = self.stores(node)
        if by is not None:
            write_private(key, by.issue("node", HOSTS))
        trust.write_text("".join(one.certificate_pem for one in trusted))
        before = self.output(node).count("certificates-reloaded")
        os.kill(self.pids[node], signal.SIGHUP)
        eventually(lambda: self.output(node).count("certificates-reloaded") > before)

    def again(self, node: int) -> None:
        self.kill(node)
        self.start(node)

    def _process_for(self, node: NodeLayout) -> NodeProcess:
        key, trust = self.stores(node.node_id)
        if not key.exists():
            write_private(key, (self.data / "security" / "node.pem").read_text())
            trust.write_text(self.authority().certificate_pem)
            given = properties.read(node.properties_path)
            given |= {"ssl.keystore.location": str(key), "ssl.truststore.location": str(trust)}
            write_private(node.properties_path, properties.render(given, "edited"))
        return super()._process_for(node)


def admin(cluster: OwnStores, trusted: list[Authority], without: int = 0) -> Client:
    """without: a node that shows another certificate."""
    given = properties.read(cluster.data / "client.properties")
    del given["ssl.truststore.location"]
    given["ssl.truststore.certificates"] = "".join(one.certificate_pem for one in trusted)
    addresses = dict(zip(cluster.brokers, cluster.bootstrap_servers.split(","), strict=True))
    addresses.pop(without, None)
    return Client(",".join(addresses.values()), security=security_from_properties(given), timeout_s=30.0)


def brokers_known(cluster: OwnStores, trusted: Authority, without: int) -> set[int]:
    with admin(cluster, [trusted], without) as client:
        return {broker.node_id for broker in client.metadata([]).brokers}


def test_an_authority_is_replaced_node_by_node_and_a_node_that_went_ahead_comes_back_when_it_is_mended() -> None:
    new, foreign = Authority.new("new"), Authority.new("foreign")
    written = 0
    with OwnStores(nodes=3, combined=True, security="SASL_SSL") as cluster:
        old = cluster.authority()
        cluster.create_topic("t", 1, 3, {"min.insync.replicas": "2"})

        def write(without: int = 0) -> None:
            nonlocal written
            with admin(cluster, [old, new], without) as client, client.producer() as producer:
                producer.send("t", 0, encode_batch([(None, b"x", (), 0)]))
                producer.flush()
            written += 1

        def check(restarted: int) -> None:
            write()
            cluster.again(restarted)
            cluster.wait_until_ready()
            cluster.wait_until_in_sync()
            write()

        nodes = cluster.node_ids
        for node in nodes:
            cluster.take(node, None, [old, new])
        cluster.take(1, new, [old, new])
        check(2)  # has the old certificate, one of the others the new one
        for node in (2, 3):
            cluster.take(node, new, [old, new])
        cluster.take(1, None, [new])
        check(3)
        for node in (2, 3):
            cluster.take(node, None, [new])
        # a node with an authority of its own gets along with itself only; the others continue without it
        cluster.take(1, foreign, [foreign])
        cluster.again(1)
        eventually(lambda: "authentication-failed" in cluster.output(2) + cluster.output(3))
        eventually(lambda: brokers_known(cluster, new, without=1) == {2, 3})
        write(without=1)
        assert 1 in cluster.pids
        cluster.take(1, new, [new])
        cluster.wait_until_ready()
        cluster.wait_until_in_sync()
        write()
        with admin(cluster, [new]) as client:
            (found,) = client.list_offsets({("t", 0): LATEST}).values()
        assert found.offset == written
